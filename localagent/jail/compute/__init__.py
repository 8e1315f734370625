"""Processes that only compute: they get bytes, see no files but Python's, and end where a job is too much."""
