"""Files read within bounds, written atomically, and opened step by step below a folder."""
