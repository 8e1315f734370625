"""What `localagent policy explain` prints: one rule, or a page of all, made of the rules and their examples."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localagent.domain.policy import CommandRule, DangerRule, Policy
from localagent.gate.core.rule import Rule, RuleExample
from localagent.gate.rule_catalogue import DANGER_REMEDY, IN_PATCHES, IN_REPAIRS, RETIRED, RULES

_MOST_LINES, _MOST_CHARS, _MOST_EXAMPLES = 9, 400, 2
_FENCE = "```"
HEAD = """# The rules of the gates

Printed by `localagent policy explain`, with two examples of each kind; `localagent policy explain RULE` prints all
examples of a rule, and `localagent policy test` runs them. What each gate is for: docs/policy.md (repairs) and
docs/gate.md (anybody's patches).
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """A rule and its examples. `text` is all of it, as Markdown."""

    id: str
    kind: str
    severity: str
    why: str
    remedy: str
    match: tuple[str, ...]
    not_match: tuple[str, ...]
    text: str


def explained_ids(policy: Policy) -> tuple[str, ...]:
    """Every id that can be explained under a policy."""
    commands = (rule.id for rules in policy.commands for rule in rules.rules)
    return tuple(dict.fromkeys((*(r.id for r in RULES), *(d.id for d in policy.dangers), *commands)))


def explained(rule_id: str, policy: Policy) -> tuple[Explained, ...]:
    """Every rule of that id: one, unless layers of a policy use an id again; of a retired one, what took its place."""
    if rule_id in RETIRED:
        return (_explained(rule_id, "no rule any more", "none", RETIRED[rule_id], "see there", (), (), 0),)
    found = [_gate(rule, most=len(rule.match) + len(rule.not_match)) for rule in RULES if rule.id == rule_id]
    found += [_danger(rule, most=100) for rule in policy.dangers if rule.id == rule_id]
    found += [_command(rule) for rules in policy.commands for rule in rules.rules if rule.id == rule_id]
    return tuple(found)


def page(policy: Policy) -> str:
    """The whole page, with the dangers and commands of a policy."""
    every = [_gate(rule, most=_MOST_EXAMPLES) for rule in RULES]
    every += [_danger(rule, most=_MOST_EXAMPLES) for rule in policy.dangers]
    every += [_command(rule) for rules in policy.commands for rule in rules.rules]
    table = [f"| [{one.id}](#{one.id}) | {one.kind} | {one.severity} | {one.why} |" for one in every]
    return "\n".join(
        (HEAD, "| rule | of | severity | why |", "|---|---|---|---|", *table, "", *(e.text for e in every))
    )


def _gate(rule: Rule, *, most: int) -> Explained:
    person = "; a person may overrule it" if rule.asks_person else ""
    where = " and ".join(w for w, rules in (("repairs", IN_REPAIRS), ("patches", IN_PATCHES)) if rule in rules)
    kind = where or "reading a patch"
    return _explained(
        rule.id, kind, rule.severity, rule.why, rule.remedy + person,
        [_shown(e) for e in rule.match], [_shown(e) for e in rule.not_match], most,
    )  # fmt: skip


def _danger(rule: DangerRule, *, most: int) -> Explained:
    match, not_match = ([_code(text, "python") for text in texts] for texts in (rule.match, rule.not_match))
    return _explained(rule.id, "dangers", rule.severity, rule.why, DANGER_REMEDY, match, not_match, most)


def _command(rule: CommandRule) -> Explained:
    match, not_match = ([_code(text, "sh") for text in texts] for texts in (rule.match, rule.not_match))
    remedy = "take another command, or have whoever keeps the policy change its [commands]"
    return _explained(rule.id, "commands", rule.answer, rule.why, remedy, match, not_match, 100)


def _explained(
    rule_id: str, kind: str, severity: str, why: str, remedy: str,
    match: Sequence[str], not_match: Sequence[str], most: int,
) -> Explained:  # fmt: skip
    lines = [f"## {rule_id}", "", f"Of: {kind}. Severity: {severity}. Why: {why}.", "", f"What to do: {remedy}.", ""]
    for title, examples in (("Matches:", match), ("Does not match:", not_match)):
        if examples:
            lines += [title, "", *(line for example in examples[:most] for line in (example, ""))]
    return Explained(
        id=rule_id, kind=kind, severity=severity, why=why, remedy=remedy,
        match=tuple(match), not_match=tuple(not_match), text="\n".join(lines),
    )  # fmt: skip


def _shown(example: RuleExample) -> str:
    return "\n".join(_example_lines(example))


def _example_lines(example: RuleExample) -> Iterator[str]:
    """An example as Markdown: what is particular about it, then its text before and after."""
    if example.patch or (not example.after and not example.before and not example.binary):
        yield _code(example.patch, "diff") if example.patch else "An empty input."
        return
    facts = [f"`{_plain(example.path)}`"]
    facts += [f"before `{_plain(example.source)}`"] if example.source else []
    facts += [f"beside `{_plain(example.alias)}`"] if example.alias else []
    facts += [f"modes `{example.modes}`"] if example.modes != "100644:100644" else []
    facts += ["binary"] if example.binary else []
    facts += ["`pkg/gone.py` goes with it"] if example.gone else []
    facts += [f"{example.files} files alike"] if example.files != "1" else []
    facts += [f"a failing test ends in `{example.exception}`"] if example.exception else []
    yield ", ".join(facts) + ":"
    if example.check:
        yield f"checked by `{_plain(example.check)}`,"
    if example.beside:
        yield from ("beside `pkg/rates.py`", _code(example.beside, "python"))
    if example.test and example.test != "absent":
        yield from ("the failing test", _code(example.test, "python"))
    yield from (_code(example.before, "python") if example.before else "nothing before,", "then")
    yield _code(example.after, "python") if example.after else "nothing."


def _code(text: str, language: str) -> str:
    lines = text.rstrip("\n").split("\n")
    cut = len(lines) > _MOST_LINES or len(text) > _MOST_CHARS
    shown = "\n".join(lines[:_MOST_LINES])[:_MOST_CHARS]
    more = f"\n... ({len(lines):,} lines, {len(text):,} characters)" if cut else ""
    fence = _FENCE if _FENCE not in shown else f"{_FENCE}``"
    return f"{fence}{language}\n{_plain(shown)}{more}\n{fence}"


def _plain(text: str) -> str:
    """Only what can be seen: everything else as an escape, so that the page hides nothing of what rules are about."""
    return "".join(c if c == "\n" or " " <= c <= "~" else json.dumps(c)[1:-1] for c in text)
