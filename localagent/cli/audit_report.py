"""`localagent audit report`: what was done since a day, for an auditor: in a few lines, as one HTML page, as JSON."""

import argparse
from datetime import date
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.evidence import audit_log, key_ring
from localagent.app.redacting import rules_of_ours
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.record.audit.check import check_audit
from localagent.record.audit.heads import SignedHead, check_heads
from localagent.record.audit.page import page
from localagent.record.audit.report import audit_report
from localagent.record.files import RecordDamaged, write_through
from localagent.record.journal import Standing
from localagent.record.jsontext import dump
from localagent.record.redacted.journal import redacted_audit_report


def add_report(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The action's arguments."""
    parser = actions.add_parser("report", help="what was done, for an auditor", allow_abbrev=False)
    parser.add_argument("--since", required=True, metavar="DATE", help="from this day on (UTC), as 2026-07-01")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one HTML page that needs nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it as JSON (docs/audit.md)")
    parser.add_argument("--redact", action="store_true", help="names of repositories and the like are numbers in it")


def report(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0; 1 where the journal does not hold, and the report says so."""
    try:
        since = date.fromisoformat(args.since)
    except ValueError:
        raise UsageFault(f"--since: {args.since!r} is not a day", remedy="write it as 2026-07-01") from None
    if args.html is not None and args.html == args.json:
        raise UsageFault("--html and --json name one file for two outputs")
    folder, ring = audit_log(settings).folder, key_ring(settings)
    check = check_audit(folder)
    heads: tuple[SignedHead, ...] = ()
    fault = ""
    if check.standing is not Standing.ALTERED:
        try:
            heads = check_heads(folder, check, ring.public_keys())
        except RecordDamaged as damage:
            fault = str(damage)
    found = audit_report(check, heads, ring.notes(), since=since, fault=fault)
    if args.redact:
        found = redacted_audit_report(found, rules_of_ours(settings))
    if args.html is not None:
        write_through(args.html, page(found))
    if args.json is not None:
        write_through(args.json, dump(found, indent=2))
    _show(found, render)
    return 1 if found["chain"]["standing"] == Standing.ALTERED.value else 0


def _show(found: dict[str, Any], render: Render) -> None:
    chain, totals = found["chain"], found["totals"]
    where = f" at {chain['place']}" if chain["place"] else ""
    why = f": {chain['reason']}" if chain["reason"] else ""
    render.line(f"journal: {chain['standing']}{where}{why}; {chain['entries']} entries, head {chain['head']['digest']}")
    outcomes = ", ".join(f"{name} {count}" for name, count in totals["outcomes"].items())
    render.line(f"tasks since {found['since']}: {totals['tasks']}" + (f" ({outcomes})" if outcomes else ""))
    render.line(
        f"patches applied {totals['applied']}, taken back {totals['undone']}, refused {totals['refused_landings']}, "
        f"attested {totals['attested']}"
    )
    for title, counts in (("candidates refused", totals["refused_candidates"]), ("limits hit", totals["limits_hit"])):
        if counts:
            render.line(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    render.line(
        f"approvals {totals['approved']}, withdrawn {totals['withdrawn']}; refused by gate, verify and deps "
        f"{totals['refusals']}; signed heads {chain['signed_heads']}"
    )
