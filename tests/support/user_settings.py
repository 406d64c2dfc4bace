"""Keeps the user's settings for AWS, Holdfast, proxies and Terraform away from tests and measurements."""

import os

from local_aws.server import for_local_commands


def forget_user_settings() -> None:
    """Remove the user's settings from the environment of this process and of all processes that it starts."""
    kept = for_local_commands(os.environ)
    kept = {name: value for name, value in kept.items() if not name.startswith(("TF_", "HOLDFAST_"))}
    files = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "HOLDFAST_CONFIG_FILE")
    kept |= dict.fromkeys(files, os.devnull)
    os.environ.clear()
    os.environ.update(kept)
