"""The user's repository: the only code that reads or changes it. Never runs git, its hooks or filters."""
