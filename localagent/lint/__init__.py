"""Rules on Python files and their proven fixes."""
