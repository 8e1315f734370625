"""The operators' catalogue as Markdown; `docs/edit-space.md` is this text."""

from itertools import groupby

from localagent.edit.operator_registry import operators

_HEAD = """# The edit space

The edits that `fix` tries, by kind (*operator*). The page is generated:
`python -c "from localagent.edit.operators_page import markdown; print(markdown(), end='')"`.

Each edit replaces bytes of one file, which must parse afterwards; two edits with the same syntax tree count as one. The
prior says how likely a kind of edit is, on a log scale: 0 for common ones, above 0 for those that the failure's own
message suggests. Features of the edited code raise or lower it; `models/prior.json` overrides single weights.
*Known* means that it occurs elsewhere in the file, *usual* that it is on a fixed list.

The model also writes edits of its own (`span`), unless `--no-writing` forbids it; they are ranked by `written` in
`models/order.json` and by their log-probability ([ADR 0021](adr/0021-the-model-writes-spans.md)).
"""


def markdown() -> str:
    """The whole catalogue, one table per family."""
    out = [_HEAD]
    for family, rows in groupby(operators().values(), key=lambda o: o.family):
        title = family.replace("_", " ").capitalize()
        out.append(f"## {title}\n\n| operator | prior | what it does |\n|---|---|---|")
        out += [f"| `{o.name}` | {o.prior:+.1f} | {o.concept.replace('|', chr(92) + '|')} |" for o in rows]
        out.append("")
    return "\n".join(out).rstrip() + "\n"
