"""`localagent verify`: proof for anybody's patch. Gates first, then both trees in jails. The tree is only read."""

import argparse
from pathlib import Path

from localagent.app import Settings
from localagent.app.cancellation import Stop
from localagent.app.evidence.refusals import refused_patch
from localagent.app.fix.model_setup import free_cores
from localagent.app.review.verify_patch import run_verify
from localagent.app.review.verify_run import VerifyRequest
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.exit_signals import stop_on_signals
from localagent.cli.fix import add_guard, command_fault
from localagent.cli.gate import add_baseline, add_daemon, baseline_faults, read_patch
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.daemon.client.approval_client import service_of
from localagent.domain.claim import Claim
from localagent.domain.guard import VERIFY_SECONDS, guard_faults, guard_of
from localagent.domain.strength import Grade
from localagent.domain.verification import Verification
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.report.review_formats import junit, page, sarif
from localagent.report.verify_report import verification_json, verification_text
from localagent.report.verify_review import as_review
from localagent.text.strict_json import dump

AUTO = "auto"
_CLAIMS = (Claim.FIXES.value, Claim.PRESERVES.value, Claim.ADDS.value, AUTO)
_OUTPUTS = ("report", "sarif", "junit", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    p.add_argument("patch", metavar="PATCH", help="a unified diff, as `git diff` writes it; - reads standard input")
    p.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help="the repository it is for (default: .)")
    add_baseline(p)
    p.add_argument(
        "--test",
        action="append",
        default=[],
        metavar="SPEC",
        help="tests that must pass, as pytest takes them; may be repeated",
    )
    add_guard(p, VERIFY_SECONDS)
    p.add_argument("--check", action="append", default=[], metavar="CMD", help="a command that must exit 0 (no shell)")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
    add_daemon(p)
    p.add_argument("--seed", type=int, default=0, metavar="K", help="random seed (0)")
    grades = [grade.value for grade in Grade]
    p.add_argument(
        "--claim", choices=_CLAIMS, default=AUTO, help="what the patch claims to do (default: auto, inferred)"
    )
    p.add_argument("--min-strength", choices=grades, metavar="A..E", help="refuse the patch if the evidence is weaker")
    p.add_argument("--crosshair", action="store_true", help="also run CrossHair (needs the extra [crosshair])")
    add_backend(p)
    p.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/verify.md)")
    p.add_argument("--report", type=Path, metavar="FILE", help="write the same JSON to FILE, whatever the verdict")
    p.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0, for code scanning")
    p.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML, one test case per check")
    p.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained HTML page")
    p.add_argument("--quiet", action="store_true", help="do not show progress")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 verified or characterized; 1 any other answer. UsageFault lists every fault of the arguments."""
    request = _request(args)
    stop = Stop()
    stop_on_signals(stop)
    verification = run_verify(request, settings, PlainSink(render, quiet=args.quiet or args.json), stop)
    _write(args, verification)
    _record(args, settings, verification, render)
    if args.json:
        render.json(verification_json(verification))
    else:
        render.text(verification_text(verification))
        for warning in verification.warnings:
            render.note(f"warning: {warning}")
    return verification.exit


def _request(args: argparse.Namespace) -> VerifyRequest:
    faults: list[str] = []
    if not args.repo.is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    faults += baseline_faults(args.baseline)
    faults += [fault for fault in map(command_fault, args.check) if fault]
    faults += guard_faults(args.guard, args.guard_seconds)
    named = [(name, getattr(args, name)) for name in _OUTPUTS if getattr(args, name) is not None]
    for name, path in named:
        if not path.absolute().parent.is_dir():
            faults.append(f"--{name}: the directory {path.absolute().parent} does not exist")
        if path.is_dir():
            faults.append(f"--{name}: {path} is a directory, not a file")
    if len({path for _, path in named}) < len(named):
        faults.append("--report, --sarif, --junit and --html name the same file for two outputs")
    patch = read_patch(args.patch, faults)
    if faults:
        raise UsageFault(faults, remedy="`localagent verify --help` lists the options")
    return VerifyRequest(
        patch=patch,
        repo=args.repo,
        baseline=args.baseline,
        tests=tuple(args.test),
        checks=tuple(args.check),
        guard=guard_of(args.guard, args.guard_seconds),
        python=args.python,
        seed=args.seed,
        policy=args.policy,
        backend=backend_of(args),
        least=Grade(args.min_strength) if args.min_strength else None,
        claim=None if args.claim == AUTO else Claim(args.claim),
        crosshair=args.crosshair,
        jobs=min(2, free_cores()),
        service=service_of(args.daemon),
    )


def _record(args: argparse.Namespace, settings: Settings, verification: Verification, render: Render) -> None:
    """A patch that was not let in, on the record; a warning where that cannot be."""
    if verification.exit != 1 or not verification.patch:
        return
    decisions = verification.review.decisions if verification.review is not None else ()
    warning = refused_patch(
        settings,
        "verify",
        repo=args.repo,
        patch=verification.patch,
        verdict=verification.verdict.value,
        decisions=decisions,
        policy=args.policy,
    )
    if warning:
        render.note(f"warning: {warning}")


def _write(args: argparse.Namespace, verification: Verification) -> None:
    """The files that were asked for. What cannot be shown as a review of a patch (nothing was read) has none."""
    if args.report is not None:
        write_through(args.report, dump(verification_json(verification), indent=2))
    review = as_review(verification)
    for name, maker in (("sarif", sarif), ("junit", junit), ("html", page)):
        path = getattr(args, name)
        if path is not None:
            write_through(path, maker(review))
