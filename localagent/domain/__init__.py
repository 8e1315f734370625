"""Frozen values shared by all rooms. No I/O, no third-party imports, nothing that runs."""
