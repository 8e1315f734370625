"""The section `[commands]`: prefixes of commands that may, or may not, run in the jail as a check.

Looks at the words of a command, not at what the program then does: the jail confines it either way. Options between the
words of a prefix are not seen through. A rule that denies knows a program in whatever folder it lies; one that allows
wants the word as it stands.
"""

import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from localagent.domain.policy import CommandRule, CommandRules, Permission
from localagent.policy.table import Table


def parse_commands(table: Table, rule_id: Callable[[Table], str]) -> CommandRules:
    """The section's rules; an example that its rule does not answer as it says is a fault."""
    rules: list[CommandRule] = []
    for entry in table.take_tables("rule"):
        rule = CommandRule(
            id=rule_id(entry),
            answer=entry.take_choice("answer", Permission),
            why=entry.take_text("why"),
            argv=entry.take_commands("argv"),
            match=entry.take_texts("match", required=True),
            not_match=entry.take_texts("not_match", required=True),
        )
        if rule.id in {r.id for r in rules}:
            entry.fault("id", f"{rule.id!r} stands twice")
        for key, wanted, examples in (("match", True, rule.match), ("not_match", False, rule.not_match)):
            for n, example in enumerate(examples):
                if wrong := example_fault(rule, example, wanted=wanted):
                    entry.fault(f"{key}[{n}]", wrong)
        if not rule.match:
            entry.fault("match", "needs an example at least: a rule that nothing shows may say something else")
        entry.close()
        rules.append(rule)
    found = CommandRules(otherwise=table.take_choice("otherwise", Permission), rules=tuple(rules))
    table.close()
    return found


def example_fault(rule: CommandRule, example: str, *, wanted: bool) -> str:
    """Why an example is none of its rule, "" if it is."""
    try:
        argv = shlex.split(example)
    except ValueError as error:
        return f"{example!r} is not a command: {error}"
    if not argv:
        return f"{example!r} is not a command"
    if covers(rule, argv) is not wanted:
        return f"{example!r} is {'not ' if wanted else ''}what `argv` describes"
    return ""


def covers(rule: CommandRule, argv: Sequence[str]) -> bool:
    """True if the command begins with the rule's words."""
    if not rule.argv or len(argv) < len(rule.argv):
        return False
    return all(
        any(_is(word, pattern, anywhere=at == 0 and rule.answer is Permission.DENY) for pattern in choice)
        for at, (word, choice) in enumerate(zip(argv, rule.argv, strict=False))
    )


def _is(word: str, pattern: str, *, anywhere: bool) -> bool:
    if anywhere and "/" not in pattern:
        word = word.rpartition("/")[2]
    return fnmatchcase(word, pattern)


def denial_reason(commands: Sequence[CommandRules], argv: Sequence[str]) -> str:
    """Why a command may not run, "" if every layer's rules let it."""
    for rules in commands:
        fitting = [rule for rule in rules.rules if covers(rule, argv)]
        for rule in fitting:
            if rule.answer is Permission.DENY:
                return f"rule {rule.id} denies it: {rule.why}"
        if not fitting and rules.otherwise is Permission.DENY:
            return "no rule of [commands] allows it, and `otherwise` is deny"
    return ""
