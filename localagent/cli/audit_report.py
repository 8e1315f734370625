"""`localagent audit report`: what was done since a day, for an auditor: in a few lines, as one HTML page, as JSON."""

import argparse
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from localagent.app import Settings
from localagent.app.evidence.redacted_attestation import rules_of_ours
from localagent.app.evidence.task_evidence import audit_log, key_ring, remembered
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged, write_through
from localagent.record.attest.keys import read_public
from localagent.record.audit.heads import UNVERIFIABLE, HeadsCheck, check_heads
from localagent.record.audit.html_page import page
from localagent.record.audit.report import audit_report
from localagent.record.audit.verify_chain import check_audit
from localagent.record.journal import JournalStatus
from localagent.record.redacted.redacted_journal import redacted_audit_report
from localagent.text.strict_json import dump


def add_report(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The action's arguments."""
    parser = actions.add_parser("report", help="report for an auditor", allow_abbrev=False)
    parser.add_argument("--since", required=True, metavar="DATE", help="first day (UTC), such as 2026-07-01")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained HTML page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it as JSON (docs/audit.md)")
    add_keys(parser)
    parser.add_argument("--redact", action="store_true", help="replace names of repositories and the like with numbers")


def add_keys(parser: argparse.ArgumentParser) -> None:
    """`--key FILE`, as often as there are keys."""
    parser.add_argument(
        "--key",
        type=Path,
        action="append",
        metavar="FILE",
        help="heads must be signed by this key; may be repeated (default: the local keys)",
    )


def keys_of(args: argparse.Namespace, settings: Settings) -> Mapping[str, Ed25519PublicKey]:
    """The keys that were named, else those here."""
    if not args.key:
        return key_ring(settings).public_keys()
    return {name: key for path in args.key for name, key in read_public(path).items()}


def report(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0; 1 where the journal does not hold, or nobody known signed it, and the report says so."""
    try:
        since = date.fromisoformat(args.since)
    except ValueError:
        raise UsageFault(f"--since: {args.since!r} is not a date", remedy="use the form 2026-07-01") from None
    if args.html is not None and args.html == args.json:
        raise UsageFault("--html and --json name the same file for two outputs")
    folder, ring = audit_log(settings).folder, key_ring(settings)
    check = check_audit(folder)
    heads, fault = HeadsCheck(), ""
    if check.standing is not JournalStatus.ALTERED:
        try:
            where, known = folder / "heads.jsonl", remembered(settings)
            heads = check_heads(where, check, keys_of(args, settings), known=known)
        except RecordDamaged as damage:
            fault = str(damage)
    found = audit_report(check, heads.heads, ring.notes(), since=since, fault=fault, unknown=heads.unknown)
    if args.redact:
        found = redacted_audit_report(found, rules_of_ours(settings))
    if args.html is not None:
        write_through(args.html, page(found))
    if args.json is not None:
        write_through(args.json, dump(found, indent=2))
    _show(found, render)
    return 1 if found["chain"]["standing"] in (JournalStatus.ALTERED.value, UNVERIFIABLE) else 0


def _show(found: dict[str, Any], render: Render) -> None:
    chain, totals = found["chain"], found["totals"]
    where = f" at {chain['place']}" if chain["place"] else ""
    why = f": {chain['reason']}" if chain["reason"] else ""
    render.line(f"journal: {chain['standing']}{where}{why}; {chain['entries']} entries, head {chain['head']['digest']}")
    outcomes = ", ".join(f"{name} {count}" for name, count in totals["outcomes"].items())
    render.line(f"tasks since {found['since']}: {totals['tasks']}" + (f" ({outcomes})" if outcomes else ""))
    render.line(
        f"patches applied {totals['applied']}, reverted {totals['undone']}, refused {totals['refused_landings']}, "
        f"attested {totals['attested']}"
    )
    for title, counts in (("candidates refused", totals["refused_candidates"]), ("limits hit", totals["limits_hit"])):
        if counts:
            render.line(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    render.line(
        f"approvals {totals['approved']}, withdrawn {totals['withdrawn']}; refused by gate, verify and deps "
        f"{totals['refusals']}; signed heads {chain['signed_heads']}"
    )
