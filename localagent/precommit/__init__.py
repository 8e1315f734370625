"""The pre-commit hook: known mistakes found without a model; repaired where no sane program behaves otherwise."""
