"""Tests of the console in a browser, against a deployed stack with states of a real Terraform."""
