"""The nightly batch: many repositories, one after the other or a few at once, each in a process of its own.

A front end: it builds on `app` and changes no repository. The hook's rules are handed in (see `ports`).
"""
