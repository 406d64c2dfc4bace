"""The command's options, profiles and settings, and the blocks that it writes for Terraform."""
