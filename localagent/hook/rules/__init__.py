"""The rules of the hook, each with its examples."""

from localagent.hook.rule import Rule
from localagent.hook.rules import calls, comparisons, concurrency, containers, exceptions, functions, security, texts

RULES: tuple[Rule, ...] = (
    *comparisons.RULES,
    *containers.RULES,
    *exceptions.RULES,
    *functions.RULES,
    *texts.RULES,
    *security.RULES,
    *calls.RULES,
    *concurrency.RULES,
)
BY_ID = {rule.id: rule for rule in RULES}
