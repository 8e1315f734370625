"""`localagent attest`: sign what is known about an accepted patch, or verify such statements; needs nothing else."""

import argparse
import os
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.attestation_notes import AttestationNote, noted, verified, write
from localagent.app.evidence.attested_files import attested_file_count
from localagent.app.evidence.redacted_attestation import rules_of_ours
from localagent.app.evidence.task_evidence import attest, key_ring, open_signer
from localagent.cli.passphrase import add_passphrase, passphrase_of
from localagent.cli.render import Render
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_through
from localagent.record.attest.bundle import Attested, verify_bundle
from localagent.record.attest.keys import read_public
from localagent.record.attest.statement import TEST_RESULT
from localagent.record.store import TaskStore
from localagent.repo.git_notes import REF
from localagent.text.visible_text import one_line

_MOST_BYTES = 64 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb: `attest ID`, `attest verify FILE`; either with a git note in the file's place."""
    parser.add_argument("target", metavar="ID|verify", help="the task whose patch to attest; or `verify`, then a file")
    parser.add_argument("bundle", nargs="?", type=Path, metavar="FILE", help="with verify: the statements to verify")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the statements to FILE (default: standard output)"
    )
    parser.add_argument(
        "--patch", type=Path, metavar="FILE", help="with verify: the diff that the statements must match"
    )
    parser.add_argument("--tree", type=Path, metavar="DIR", help="with verify: also check the files of this tree")
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="with verify: trust only this public key (default: every local key)"
    )
    parser.add_argument(
        "--note",
        metavar="COMMIT",
        help="print the command that adds it as a git note to COMMIT; with verify: read that note",
    )
    parser.add_argument("--write", action="store_true", help="with --note: write the note (refs/notes/localagent)")
    parser.add_argument(
        "--repo", type=Path, metavar="DIR", help="with --note: where that commit is (default: the task's)"
    )
    parser.add_argument("--redact", action="store_true", help="replace names of files and tests with numbers")
    parser.add_argument("--json", action="store_true", help="with verify: one JSON object on standard output")
    add_passphrase(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 signed or verified; 1 refused, with the reason. UsageFault lists every fault of the arguments."""
    faults = _faults(args)
    if faults:
        raise UsageFault(
            faults,
            remedy="`localagent attest ID [--out FILE] [--note COMMIT [--write]]`, or `localagent attest verify FILE`",
        )
    return _verify(args, settings, render) if args.target == "verify" else _attest(args, settings, render)


def _faults(args: argparse.Namespace) -> list[str]:
    faults = ["--repo: only with --note"] if args.repo is not None and args.note is None else []
    if args.target == "verify":
        faults += ["verify: name the file, or --note COMMIT"] if args.bundle is None and args.note is None else []
        faults += ["verify: a file or a note, not both"] if args.bundle is not None and args.note is not None else []
        making = {"--out": args.out is not None, "--write": args.write, "--redact": args.redact}
        if args.tree is not None and not args.tree.is_dir():
            faults.append(f"--tree: {args.tree} is not a directory")
        return faults + [f"verify: {name} is not used with `verify`" for name, given in making.items() if given]
    given = {
        "FILE": args.bundle,
        "--patch": args.patch,
        "--tree": args.tree,
        "--key": args.key,
        "--json": args.json or None,
    }
    faults += [f"{name}: only with verify" for name, value in given.items() if value is not None]
    if args.note is None:
        return faults + (["--write: only with --note"] if args.write else [])
    faults += (
        ["--note: which command to print depends on --out FILE; or --write"] if not (args.out or args.write) else []
    )
    return faults + (["--note: a note names the files of its commit, so --redact cannot be"] if args.redact else [])


def _attest(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    record = TaskStore(settings.state_dir).open(args.target)
    signer = open_signer(settings, passphrase_of(args))
    if signer is None:
        raise AnswerIsNo("there is no signing key", remedy="`localagent key new` creates one")
    note: AttestationNote | None = None
    if args.note is not None:
        note = noted(settings, record, signer, args.repo or Path(record.task.repo), args.note)
        bundle = note.bundle
    else:
        bundle = attest(settings, record, signer, redact=rules_of_ours(settings) if args.redact else None)
    if args.out is not None:
        write_through(args.out, bundle)
        render.note(f"signed with key {signer.key_id[:16]}: {args.out}")
    elif note is None:
        render.text(bundle.decode("ascii").rstrip("\n"))
    if note is not None and args.write:
        write(settings, record, note)
        render.line(f"written: note for commit {note.commit} in {REF}")
    elif note is not None:
        render.note("nothing was written; to add the note, run:")
        render.line(note.command(args.out))
    return 0


def _verify(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    keys = read_public(args.key) if args.key is not None else key_ring(settings).public_keys()
    if not keys:
        raise UsageFault("no public key is available", remedy="name the signer's with --key")
    patch = None if args.patch is None else _read(args.patch)
    if args.note is not None:
        found, commit = verified(args.repo or Path(), args.note, keys, patch)
        render.note(f"commit {commit} has every file as attested")
    else:
        found = verify_bundle(_read(args.bundle), keys, patch=patch)
    if args.tree is not None:
        render.note(f"{args.tree} has every file as attested: {attested_file_count(found, args.tree)}")
    notes = {n.id: n.retired for n in key_ring(settings).notes()} if args.key is None else {}
    _show(args, found, notes.get(found.key_id, ""), render)
    return 0


def _show(args: argparse.Namespace, found: Attested, retired: str, render: Render) -> None:
    if args.json:
        subjects = dict(found.subjects)
        render.json(
            {
                "verified": True,
                "task": found.task,
                "key": found.key_id,
                "retired": retired,
                "subjects": subjects,
                "tests": str(found.predicates[TEST_RESULT]["result"]),
            }
        )
        return
    render.line(f"verified: task {one_line(found.task)}, signed by key {found.key_id}")
    render.line(f"  tests: {_tests(found)}")
    for name, digest in found.subjects.items():
        render.line(f"  {digest}  {one_line(name, 4096)}")
    if args.patch is None:
        render.note("the diff was not compared; use --patch FILE")
    if args.tree is None and args.note is None:
        render.note("the files were not compared; use --tree DIR")
    if retired:
        render.note(f"that key was retired {retired}; the signature does not show when it was made")


def _tests(found: Attested) -> str:
    """What is attested of the tests: that the statements hold does not say that all of them pass."""
    told = found.predicates[TEST_RESULT]
    names = ("passedTests", "warnedTests", "failedTests")
    passed, warned, failed = (len(told[name]) for name in names)
    return f"{one_line(told['result'], 40)} ({passed} passed, {warned} flaky, {failed} failed)"


def _read(path: Path) -> bytes:
    try:
        return read_bounded(Path(os.path.realpath(path)), _MOST_BYTES)  # a loop of links is left to the reading
    except FileNotFoundError as error:
        raise UsageFault(f"{path}: there is no such file", remedy="name a file written by `attest --out`") from error
    except RecordDamaged as error:
        raise UsageFault(str(error), remedy="name a regular file of at most 64 MiB") from error
