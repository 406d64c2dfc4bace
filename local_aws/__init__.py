"""The AWS on this machine: what `make up` and the tests start, deploy to and stop again."""
