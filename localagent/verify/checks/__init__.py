"""The quick and the full check of a candidate: tests, commands, static tools, the guard."""
