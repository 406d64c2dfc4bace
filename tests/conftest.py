"""What holds for every test."""

from tests.user_settings import forget_user_settings


def pytest_configure() -> None:
    """Nothing of the user's settings reaches a test; some make clients while they are collected."""
    forget_user_settings()
