"""What a file and its siblings offer as ingredients: names, attributes, calls, texts. Reads bytes, runs nothing."""
