"""Edits that the model writes: spans, completions, chat replies."""
