"""Shared by all test rooms: makes this folder importable (builders of test inputs live here)."""
