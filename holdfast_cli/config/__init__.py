"""What a command is for: its arguments, the settings of a profile, and the blocks of Terraform."""
