"""`localagent doctor --attack`: tries in the real jail, on this machine, what hostile code would try.

0 when none escaped, 1 otherwise, 4 when there is no jail. Nothing leaves the machine; every target is made for it.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence

from localagent.app import Settings
from localagent.app.inventory.attack_suite import attack, kinds, ordered, usable
from localagent.cli.backend import backend_of
from localagent.cli.render import Render
from localagent.jail.attacks.row import AttackRow, AttackVerdict

EVERY = 20  # rows between two lines of progress


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """Try every attack by every backend asked for; the exit code."""
    jails = usable(backend_of(args))
    wanted = kinds().total * len(jails)
    rows: list[AttackRow] = []
    for row in attack(jails, settings):
        rows.append(row)
        if row.result is AttackVerdict.ESCAPED:
            render.note(f"  escaped: {row.name} ({row.backend}): {row.why}")
        if len(rows) % EVERY == 0:
            render.note(f"  {len(rows)} of {wanted} tried")
    rows = list(ordered(rows))
    if args.json:
        render.json({"attacks": [row.as_json() for row in rows]})
    else:
        for line in table(rows):
            render.line(line)
    return 1 if any(row.result is AttackVerdict.ESCAPED for row in rows) else 0


def table(rows: Sequence[AttackRow]) -> Iterator[str]:
    """By backend and category, aligned; last a line that sums up."""
    width = max((len(row.name) for row in rows), default=0)
    heading = ""
    for row in rows:
        if heading != (heading := f"{row.category} ({row.backend}, level {row.level})"):
            yield heading
        yield f"  {row.name:<{width}}  {row.result:<14}  {row.why}".rstrip()
    yield summary(rows)


def summary(rows: Sequence[AttackRow]) -> str:
    """Counts of the results and how many backends."""
    counts = Counter(row.result for row in rows)
    backends = len({row.backend for row in rows})
    said = ", ".join(f"{counts[result]} {result}" for result in AttackVerdict)
    word = "backend" if backends == 1 else "backends"
    return f"{len(rows)} attacks on {backends} {word}: {said}"
