"""What the repository's code says: the index brought up to date, searched and mapped. Nothing of it runs."""
