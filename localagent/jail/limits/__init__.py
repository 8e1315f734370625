"""Limits of a jail: rlimits, cgroups, disk and process usage."""
