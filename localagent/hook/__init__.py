"""The pre-commit hook: known mistakes found without a model, and repaired where the repair cannot change what a sane program does."""
