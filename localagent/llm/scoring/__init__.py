"""How likely edits are, by the model: prompts, windows, scores."""
