"""`localagent key new|list|export|rotate`: the key that signs heads of the audit journal and attestations."""

import argparse
from dataclasses import asdict, replace
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.task_evidence import audit_log, key_ring
from localagent.cli.actions import add_action
from localagent.cli.audit import only_its_owner
from localagent.cli.passphrase import add_passphrase, passphrase_of
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import write_through
from localagent.record.attest.keys import KeyNote, KeyRing
from localagent.record.audit.entry import AuditKind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    making = add_action(actions, "new", "create the first key")
    rotating = add_action(actions, "rotate", "create a new key and retire the active one")
    listing = add_action(actions, "list", "every key, active and retired")
    exporting = add_action(actions, "export", "print a public key as PEM")
    for action in (making, rotating):
        add_passphrase(action)
    exporting.add_argument(
        "id", nargs="?", default="", metavar="ID", help="key id or a prefix (default: the active key)"
    )
    exporting.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    for action in (making, rotating, listing):
        action.add_argument("--json", action="store_true", help="one JSON object on standard output")
    for action in actions.choices.values():
        action.add_argument("--state", type=Path, metavar="DIR", help="use the keys of a recorder with this --state")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0, or the fault. A private key never leaves its file."""
    if args.state is not None:
        settings = _of_state(args, settings)
    ring = key_ring(settings)
    if args.action == "list":
        return _list(args, ring, render)
    if args.action == "export":
        return _export(args, ring, render)
    log = audit_log(settings)
    log.ready()
    passphrase = passphrase_of(args)
    if args.action == "new":
        made = ring.new(passphrase)
        log.append(AuditKind.KEY_MADE, {"key": made.id, "encrypted": made.encrypted})
    else:
        old, made = ring.rotate(passphrase)
        log.append(AuditKind.KEY_ROTATED, {"key": made.id, "retired": old.id, "encrypted": made.encrypted})
    if args.json:
        render.json(asdict(made))
        return 0
    render.line(f"key {made.id}")
    if not made.encrypted:
        render.note(f"not encrypted: anyone who can read {ring.folder} can sign; --passphrase-file encrypts it")
    render.note("store the public key where the journal's writers cannot change it: localagent key export --out FILE")
    return 0


def _of_state(args: argparse.Namespace, settings: Settings) -> Settings:
    """Keys and journal of a recorder's state. UsageFault where it is not there, or its owner's to write alone."""
    folder = args.state.absolute()
    if not folder.is_dir():
        raise UsageFault(f"--state: {folder} is not a directory", remedy="name the --state of `recorder`")
    if args.action in ("new", "rotate"):
        only_its_owner(folder)
    return replace(settings, state_dir=folder, data_dir=folder)


def _list(args: argparse.Namespace, ring: KeyRing, render: Render) -> int:
    notes, active = ring.notes(), ring.active()
    if args.json:
        render.json({"active": None if active is None else active.id, "keys": [asdict(n) for n in notes]})
        return 0
    for note in notes:
        state = f"retired {note.retired}" if note.retired else "active"
        render.line(f"{note.id}  made {note.created}  {state}{'  encrypted' if note.encrypted else ''}")
    if active is not None and active not in notes:
        render.line(f"{active.id}  passed by systemd, active")
    if active is None:
        render.line("no key is active: `localagent key new` creates one")
    return 0


def _export(args: argparse.Namespace, ring: KeyRing, render: Render) -> int:
    note = _wanted(args.id, ring)
    if args.out is not None:
        write_through(args.out, note.public.encode("ascii"))
        render.note(f"key {note.id} written to {args.out}")
    else:
        render.text(note.public.rstrip("\n"))
    return 0


def _wanted(start: str, ring: KeyRing) -> KeyNote:
    active = ring.active()
    if not start:
        if active is None:
            raise AnswerIsNo("no key is active", remedy="`localagent key new` creates one")
        return active
    found = [n for n in {*ring.notes(), *([active] if active else [])} if n.id.startswith(start)]
    if len(found) != 1:
        raise UsageFault(f"{start!r} names {len(found)} keys", remedy="`localagent key list` lists them")
    return found[0]
