"""Processes that only compute: they get bytes and answer, see no file but Python's own, and end when a job is too much."""
