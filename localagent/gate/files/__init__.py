"""Rules on which files a change touches, how large it is, and whether they parse."""
