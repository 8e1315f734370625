"""`localagent audit verify|export|sign|rotate|retire|report`: the audit journal, for whoever has to believe it."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from localagent.app import Settings
from localagent.app.evidence.redacted_attestation import rules_of_ours
from localagent.app.evidence.task_evidence import (
    audit_log,
    key_ring,
    open_signer,
    remembered,
    settings_of_state,
    sign_now,
)
from localagent.cli.actions import add_action
from localagent.cli.passphrase import add_passphrase, passphrase_of
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged, write_through
from localagent.record.attest.keys import read_public
from localagent.record.audit.clock import set_back
from localagent.record.audit.entry import DIGEST, line_of
from localagent.record.audit.heads import UNVERIFIABLE, HeadsCheck, began_anew, check_heads, heads_upto
from localagent.record.audit.html_page import page
from localagent.record.audit.report import audit_report
from localagent.record.audit.verify_chain import AuditCheck, EntrySpan, check_audit, check_export
from localagent.record.journal import JournalStatus
from localagent.record.redacted.redacted_journal import (
    check_redacted,
    is_redacted,
    redacted_audit_report,
    redacted_export,
)
from localagent.text.strict_json import dump
from localagent.text.visible_text import counted

# `localagent audit report`: what was done since a day, for an auditor: in a few lines, as one HTML page, as JSON.


def add_report(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The action's arguments."""
    parser = add_action(actions, "report", "report for an auditor")
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    verifying = add_action(actions, "verify", "check the hash chain and signatures")
    verifying.add_argument("--file", type=Path, metavar="FILE", help="check an export instead of the journal")
    verifying.add_argument("--head", default="", metavar="DIGEST", help="digest of an entry that must exist")
    add_keys(verifying)
    verifying.add_argument("--require-signed", action="store_true", help="exit 1 if no head is signed")
    exporting = add_action(actions, "export", "export entries to a file that can be verified elsewhere")
    exporting.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write")
    exporting.add_argument(
        "--redact", action="store_true", help="replace names of repositories and the like with numbers"
    )
    for action in (verifying, exporting):
        action.add_argument("--from", dest="first", type=int, metavar="N", help="first entry")
        action.add_argument("--to", dest="last", type=int, metavar="N", help="last entry")
    signing = add_action(actions, "sign", "sign the newest entry")
    add_passphrase(signing)
    rotating = add_action(actions, "rotate", "start a new file; the chain continues")
    rotating.add_argument(
        "--set-aside",
        action="store_true",
        help="set the journal aside, even if damaged, and start a new one that records its digests",
    )
    retiring = add_action(actions, "retire", "archive old files")
    retiring.add_argument("--days", type=int, required=True, metavar="N", help="only files whose entries are all older")
    retiring.add_argument("--to", type=Path, required=True, metavar="DIR", help="folder to move them to")
    add_report(actions)
    for action in (verifying, exporting, signing, rotating, retiring):
        action.add_argument("--json", action="store_true", help="one JSON object on standard output")
    for action in actions.choices.values():
        action.add_argument(
            "--state", type=Path, metavar="DIR", help="state folder of a recorder or daemon (default: your own journal)"
        )


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 holds or done; 1 altered, with the place; or signed by nobody who is known."""
    if args.state is not None:
        settings = settings_of_state(settings, _state(args.state))
        if args.action in ("sign", "rotate", "retire"):
            only_its_owner(settings.state_dir)
    if args.action == "verify":
        return _verify(args, settings, render)
    if args.action == "export":
        return _export(args, settings, render)
    if args.action == "report":
        return report(args, settings, render)
    if args.action == "sign":
        return _sign(args, settings, render)
    if args.action == "retire":
        return _retire(args, settings, render)
    log = audit_log(settings)
    known = remembered(settings) if args.set_aside else None
    entry = log.set_aside(None if known is None else asdict(known)) if args.set_aside else log.rotate()
    if args.json:
        render.json({"entry": entry.seq, "digest": entry.digest, "data": dict(entry.data)})
    else:
        render.line(f"entry {entry.seq}, {entry.digest}: {entry.kind.value} in {log.folder}")
    return 0


def _state(folder: Path) -> Path:
    """UsageFault where no journal lies there: one that is empty would hold."""
    try:
        there = any((folder / "audit").iterdir())
    except OSError as error:
        raise UsageFault(
            f"--state: {folder / 'audit'}: {error.strerror or error}",
            remedy="name the --state of `serve` or `recorder`, as its owner or as root",
        ) from error
    if not there:
        raise UsageFault(f"--state: {folder / 'audit'} is empty", remedy="name the --state of `serve` or `recorder`")
    return folder.absolute()


def only_its_owner(folder: Path) -> None:
    """UsageFault where files made now would not be those of the state's owner, who could not go on with them."""
    owner = folder.stat().st_uid
    if owner != os.geteuid():
        raise UsageFault(
            f"--state: {folder} belongs to user {owner}: its owner could not read files of another user",
            remedy="run this as that user",
        )


def _span(args: argparse.Namespace) -> EntrySpan:
    faults = [
        f"{name}: must not be negative" for name, n in (("--from", args.first), ("--to", args.last)) if (n or 0) < 0
    ]
    if not faults and args.first is not None and args.last is not None and args.last < args.first:
        faults.append(f"--to {args.last} is before --from {args.first}")
    head = getattr(args, "head", "")
    if head and not DIGEST.fullmatch(head):
        faults.append(f"--head: {head!r} is not sha256: and 64 hexadecimal digits")
    if faults:
        raise UsageFault(faults)
    return EntrySpan(first=args.first, last=args.last)


def _verify(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    span = _span(args)
    where = audit_log(settings).folder / "heads.jsonl"
    if args.file is not None:
        if not args.file.is_file():
            raise UsageFault(f"--file: {args.file} is not a file")
        check, where, known = _exported(args, span), Path(args.file.name), None
    else:
        check, known = check_audit(where.parent, span, head=args.head), remembered(settings)
    heads, wrong = HeadsCheck(), ""
    if check.standing is not JournalStatus.ALTERED and (check.signed or args.file is None):
        try:  # a file without any, a redacted or a retired one, carries none, and is told to
            heads = check_heads(where, check, keys_of(args, settings), span=span, known=known)
        except RecordDamaged as damage:
            wrong = str(damage)
    altered = check.standing is JournalStatus.ALTERED or bool(wrong)
    unsigned = args.require_signed and not heads.heads
    if args.json:
        render.json(_json(check, heads, wrong))
    elif altered:
        render.line(f"altered: {wrong}" if wrong else f"altered at {check.place}: {check.reason}")
        render.line("  the chain itself is intact" if wrong else f"  {len(check.entries)} entries before it are intact")
    else:
        _tell(args, check, heads, render)
    if unsigned and not altered:
        render.note("--require-signed: no head is signed by a known key; add one with --key FILE")
    return 1 if altered or heads.unknown or unsigned else 0


def _tell(args: argparse.Namespace, check: AuditCheck, found: HeadsCheck, render: Render) -> None:
    """What holds, and how far that is signed."""
    if found.unknown:
        render.line(f"{UNVERIFIABLE}: {found.unknown}")
        render.line("  the chain itself is intact; add each signer's key with --key FILE")
    render.line(f"{check.standing.value}: {len(check.entries)} entries, head {check.tip.digest}")
    if check.standing is JournalStatus.TORN:
        render.line(f"  {check.place}: {check.reason}")
    if args.file is not None and check.entries and check.entries[0].seq and args.first is None:
        begins = check.entries[0].seq
        render.line(f"  begins with entry {begins}: earlier entries are not in this file (use --from 0)")
    if back := set_back(check.entries):
        first = back[0]
        said = f"entry {first.seq} says {first.at[:19]}, {first.seconds:,.0f} s before the previous entry"
        render.line(f"  the clock was set back {len(back)} times: {said}")
    if began := began_anew(check):
        render.line(f"  {began}")
    if found.heads:
        last = found.heads[-1]
        heads = counted(len(found.heads), "signed head")
        render.line(f"  {heads}, the newest of entry {last.seq} by key {last.key_id[:16]}")
    elif args.file is not None and is_redacted(args.file):
        render.note("redacted: the hash chain is intact, but it cannot prove the redacted or remaining text")
    elif not found.unknown:
        render.note("no head is signed: anyone who can write these files could have replaced the journal")


def _exported(args: argparse.Namespace, span: EntrySpan) -> AuditCheck:
    """The check of an export; of a redacted one what can be checked of it. UsageFault where --from does not fit it."""
    if not is_redacted(args.file):
        return check_export(
            args.file, head=args.head, span=replace(span, first=-1 if span.first is None else span.first)
        )
    if args.first is not None or args.last is not None:
        raise UsageFault("--from, --to: not with a redacted export", remedy="export the range you want")
    return check_redacted(args.file, head=args.head)


def _json(check: AuditCheck, found: HeadsCheck, wrong: str) -> dict[str, Any]:
    place = check.place
    standing = JournalStatus.ALTERED.value if wrong else check.standing.value
    return {
        "standing": UNVERIFIABLE if found.unknown else standing,
        "entries": len(check.entries),
        "first": check.entries[0].seq if check.entries else None,
        "head": {"entry": check.tip.seq, "digest": check.tip.digest},
        "place": None if place is None else {"file": place.file, "line": place.line, "entry": place.seq},
        "reason": wrong or found.unknown or check.reason,
        "began_anew": began_anew(check),
        "clock_set_back": [asdict(place) for place in set_back(check.entries)],
        "signed_heads": [{"entry": h.seq, "digest": h.digest, "at": h.at, "key": h.key_id} for h in found.heads],
    }


def _export(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    check = check_audit(audit_log(settings).folder, _span(args))
    if check.standing is JournalStatus.ALTERED:
        raise RecordDamaged(
            f"the journal is broken at {check.place}: {check.reason}",
            remedy="`localagent audit rotate --set-aside` sets it aside and starts a new one",
        )
    wanted = [e for e in check.entries if e.seq >= (args.first or 0)]
    if not wanted:
        raise AnswerIsNo("there is no such entry to export")
    if args.redact:
        write_through(args.out, redacted_export(wanted, rules_of_ours(settings)))
    else:
        lines = [line_of(seq=e.seq, prev=e.prev, kind=e.kind, data=e.data, at=e.at) for e in wanted]
        signed = heads_upto(check.signed, wanted[-1].seq)
        write_through(args.out, b"".join((*lines, *signed)))
    head = wanted[-1]
    if args.json:
        render.json({"entries": len(wanted), "first": wanted[0].seq, "last": head.seq, "head": head.digest})
    else:
        render.line(f"entries {wanted[0].seq} to {head.seq} written to {args.out}, head {head.digest}")
    return 0


def _retire(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    if args.days < 1:
        raise UsageFault("--days: must be at least 1")
    log = audit_log(settings)
    check = check_audit(log.folder)
    if check.standing is JournalStatus.ALTERED:
        raise RecordDamaged(f"the journal is broken at {check.place}: {check.reason}; nothing was moved")
    before = f"{datetime.now(UTC) - timedelta(days=args.days):%Y-%m-%dT%H:%M:%S.%f}Z"
    entry = log.retire(before, args.to.absolute())
    files = list(entry.data["files"]) if entry is not None else []
    if args.json:
        render.json({"files": files, "first": None if entry is None else entry.data["first"]})
    elif entry is None:
        render.line("no journal file is that old; `localagent audit rotate` starts a new file")
    else:
        render.line(f"{len(files)} files moved to {args.to}; the journal here begins with entry {entry.data['first']}")
    return 0


def _sign(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    signer = open_signer(settings, passphrase_of(args))
    if signer is None:
        raise AnswerIsNo("there is no signing key", remedy="`localagent key new` creates one")
    signed = sign_now(settings, signer)
    if signed is None:
        raise AnswerIsNo("the journal is empty: there is no head to sign")
    if args.json:
        render.json({"entry": signed.seq, "digest": signed.digest, "at": signed.at, "key": signed.key_id})
    else:
        render.line(f"entry {signed.seq}, {signed.digest}: signed by key {signed.key_id[:16]}")
    return 0
