"""Bisection: the first bad commit, and which of its hunks matter."""
