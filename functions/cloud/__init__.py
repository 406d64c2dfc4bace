"""The protocol of `cloud {}` and `backend "remote"`."""
