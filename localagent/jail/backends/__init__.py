"""Bubblewrap and nsjail: pure builders of their command lines."""
