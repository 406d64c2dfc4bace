"""Freeze states, so that no command acquires their locks.

A freeze of a state is a lock object with a mark (`states`). A pattern is frozen state by state, and a record
of frozen patterns (`record`) refuses what begins a state; `patterns` adds to the record and removes from it.
"""
