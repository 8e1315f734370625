"""`jail run`: code that runs in a jail for a caller."""
