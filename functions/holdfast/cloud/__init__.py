"""Workspaces: the state part of the protocol that `cloud {}` and `backend "remote"` speak.

What is the same everywhere is said in `holdfast.state`.
"""
