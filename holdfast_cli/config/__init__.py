"""The commands' shared options, the settings of profiles, and the blocks of Terraform."""
