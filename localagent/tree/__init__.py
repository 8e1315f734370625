"""The user's repository: the only code that reads or changes it. Never runs git's hooks or filters; `git.py` alone starts git."""
