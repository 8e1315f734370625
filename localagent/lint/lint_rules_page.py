"""docs/rules.md, made of the rules themselves: what is tested is what is described."""

from collections.abc import Iterator

from localagent.lint.engine import OWN
from localagent.lint.lint_rule import Bad, LintRule
from localagent.lint.rules import RULES

HEAD = """# The rules of the hook

*safe*: `localagent hook fix` makes the repair, because reasonable programs behave as before. *suggestion*: the repair
may change behaviour, so it is only shown (`--suggestions`). *by hand*: only a person can repair it. How the hook works,
and how to suppress a finding: [hook.md](hook.md). The examples are the rules' tests; `python scripts/rules_page.py`
generates this page.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((HEAD, *_table(), "", *(line for rule in RULES for line in _section(rule)), *_own()))


def _table() -> Iterator[str]:
    yield "| rule | best grade | runs |"
    yield "|---|---|---|"
    for rule in RULES:
        yield f"| [{rule.id}](#{rule.id}) | {rule.best_repair} | {'always' if rule.standard else 'with `--select`'} |"


def _section(rule: LintRule) -> Iterator[str]:
    yield from (f"## {rule.id}", "", f"{rule.text} {rule.why}", "")
    for number, example in enumerate(rule.bad):
        yield from _example(example, first=number == 0)
    yield from ("Let pass:", "", "```python", "\n# --\n".join(code.rstrip("\n") for code in rule.good), "```", "")


def _example(example: Bad, *, first: bool) -> Iterator[str]:
    yield from ("Found:" if first else "Also:", "", "```python", example.code.rstrip("\n"), "```", "")
    if example.fixed is not None:
        yield from (f"Repaired ({example.grade}):", "", "```python", example.fixed.rstrip("\n"), "```", "")


def _own() -> Iterator[str]:
    yield from ("## About suppressions and files", "")
    for name, text in OWN.items():
        yield f"- `{name}`: {text}."
    yield ""
