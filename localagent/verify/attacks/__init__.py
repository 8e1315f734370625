"""Attacks on the verdict: what code under test does to be called good, or to be met by the next candidate.

They run through the real warm worker and the real full check. Not promised, and so not tried: that code which knows our
worker and shares pytest's process cannot rewrite what is said of its own tests (docs/security.md).
"""
