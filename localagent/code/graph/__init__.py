"""The code graph: what each Python file says of its names, and what they stand for over all files."""
