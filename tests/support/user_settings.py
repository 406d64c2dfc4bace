"""Keeping what the user has set for AWS, proxies and Terraform away from what is tested or measured."""

import os

from local_aws.server import for_local_commands


def forget_user_settings() -> None:
    """Take the user's settings out of the environment of this process and of all that it starts."""
    kept = for_local_commands(os.environ)
    kept = {name: value for name, value in kept.items() if not name.startswith("TF_")}
    kept |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    os.environ.clear()
    os.environ.update(kept)
