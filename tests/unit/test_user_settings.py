"""The tests and the benchmark do not depend on their user's settings."""

import os

import pytest

from tests.support.user_settings import forget_user_settings


def test_settings_for_aws_proxies_and_terraform_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "PATH": "/bin",
        "AWS_PROFILE": "nobody",
        "AWS_ENDPOINT_URL": "https://aws.example.com",
        "HOLDFAST_PROFILE": "nobody",
        "HTTPS_PROXY": "http://proxy.example.com",
        "TF_CLI_ARGS": "-lock=false",
        "TF_CLI_CONFIG_FILE": "/nonexistent",
        "TF_HTTP_PASSWORD": "secret",
    }
    monkeypatch.setattr(os, "environ", environment)

    forget_user_settings()

    assert environment == {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy.example.com",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "HOLDFAST_CONFIG_FILE": os.devnull,
    }
