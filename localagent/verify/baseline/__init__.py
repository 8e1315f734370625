"""The unpatched tree: which tests there are, and how they end."""
