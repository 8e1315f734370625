"""The operators' catalogue as Markdown; `docs/edit-space.md` is this text."""

from itertools import groupby

from localagent.edit.operator_registry import operators

_HEAD = """# The edit space

Generated from the operators' registry:
`python -c "from localagent.edit.operators_page import markdown; print(markdown(), end='')"`.
Each edit is a set of byte splices of one file that parses afterwards; two edits with the same syntax tree are one.
The prior is on a log scale: 0 is the most likely kind of edit, features of a place add to it or take from it,
and edits that a failure's own message suggests stand above 0. `models/prior.json` replaces single weights.

Beside these, `span` edits are written by the model where it is allowed to: not enumerated, priced by `written` of
`models/order.json` and by their log-probability ([ADR 0021](adr/0021-the-model-writes-spans.md)).
"""


def markdown() -> str:
    """The whole catalogue, one table per family."""
    out = [_HEAD]
    for family, rows in groupby(operators().values(), key=lambda o: o.family):
        out.append(f"## {family.capitalize()}\n\n| operator | prior | what it does |\n|---|---|---|")
        out += [f"| `{o.name}` | {o.prior:+.1f} | {o.concept.replace('|', chr(92) + '|')} |" for o in rows]
        out.append("")
    return "\n".join(out).rstrip() + "\n"
