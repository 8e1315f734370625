"""The user's repository: the only code that reads or changes it. Only `git.py` and `git_hook.py` start git."""
