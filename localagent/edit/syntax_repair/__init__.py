"""Edits of files that do not parse: brackets, indentation, keywords, quotes; found by tokens."""
