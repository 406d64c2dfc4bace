"""Tests of the library and the functions on real S3 servers.

Functions begin as Lambda starts them: from their environment.
"""
