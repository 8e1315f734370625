"""The rules of the hook, each with its examples."""

from localagent.lint.lint_rule import LintRule
from localagent.lint.rules import (
    calls,
    comparisons,
    concurrency,
    containers,
    exceptions,
    functions,
    removed_names,
    security,
    statements,
    texts,
    truth,
)

RULES: tuple[LintRule, ...] = (
    *comparisons.RULES,
    *truth.RULES,
    *containers.RULES,
    *exceptions.RULES,
    *functions.RULES,
    *statements.RULES,
    *texts.RULES,
    *security.RULES,
    *calls.RULES,
    *removed_names.RULES,
    *concurrency.RULES,
)
BY_ID = {rule.id: rule for rule in RULES}
