"""`localagent gate`: put anybody's patch to the gates. Nothing of the repository runs and nothing in it is changed."""

import argparse
import sys
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.refusals import refused_patch
from localagent.app.review.patch_gate import GateRequest, review_patch
from localagent.cli.render import Render
from localagent.daemon.client.approval_client import service_of
from localagent.domain.review import PatchVerdict
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.protocol.http_client import DEFAULT_SOCKET
from localagent.repo.diff.parse_diff import MAX_PATCH_BYTES
from localagent.report.review_formats import junit, page, sarif
from localagent.report.review_report import review_json, review_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "patch", metavar="PATCH", help="a unified diff, as `git diff` writes it; - reads standard input"
    )
    parser.add_argument(
        "--repo", type=Path, default=Path(), metavar="DIR", help="the repository it is for (default: .)"
    )
    add_baseline(parser)
    parser.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
    add_daemon(parser)
    parser.add_argument("--all", action="store_true", help="run every gate, even after one has refused")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/gate.md)")
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0, for code scanning")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML, one test case per gate")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained HTML page")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 allowed; 1 refused, or needs a person. UsageFault lists every fault of the arguments."""
    faults: list[str] = []
    if not args.repo.is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    faults += baseline_faults(args.baseline)
    outputs = [(n, p) for n, p in (("sarif", args.sarif), ("junit", args.junit), ("html", args.html)) if p is not None]
    if len({p for _, p in outputs}) < len(outputs):
        faults.append("--sarif, --junit and --html name the same file for two outputs")
    data = read_patch(args.patch, faults)
    if faults:
        raise UsageFault(faults, remedy="`localagent gate --help` lists the options")
    request = GateRequest(
        patch=data,
        repo=args.repo,
        policy=args.policy,
        everything=args.all,
        service=service_of(args.daemon),
        baseline=args.baseline,
    )
    review = review_patch(request, settings)
    makers = {"sarif": sarif, "junit": junit, "html": page}
    for name, path in outputs:
        write_through(path, makers[name](review))
    if review.verdict is not PatchVerdict.ALLOWED:
        warning = refused_patch(
            settings,
            "gate",
            repo=args.repo,
            patch=review.digest,
            verdict=review.verdict.value,
            decisions=review.decisions,
            policy=args.policy,
        )
        if warning:
            render.note(f"warning: {warning}")
    if args.json:
        render.json(review_json(review))
    else:
        render.text(review_text(review))
    return review.exit


def add_baseline(parser: argparse.ArgumentParser) -> None:
    """`--baseline`, for verbs that read a patch."""
    parser.add_argument(
        "--baseline", default="", metavar="REV", help="the commit to compare against (default: the working tree)"
    )


def baseline_faults(revision: str) -> list[str]:
    """What is wrong with a revision before git is asked."""
    return [f"--baseline: {revision!r} looks like an option, not a revision"] if revision.startswith("-") else []


def add_daemon(parser: argparse.ArgumentParser) -> None:
    """`--daemon`, for verbs that ask whose approvals count."""
    parser.add_argument(
        "--daemon",
        type=Path,
        metavar="SOCKET",
        help=f"ask this daemon for approvals, if the policy requires them from others (default: {DEFAULT_SOCKET})",
    )


def read_patch(name: str, faults: list[str]) -> bytes:
    """The patch's bytes, one more than is read at most: the reader of patches says what is too much."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(MAX_PATCH_BYTES + 1)
        with Path(name).open("rb") as stream:
            return stream.read(MAX_PATCH_BYTES + 1)
    except OSError as error:
        faults.append(f"{name}: cannot be read: {error.strerror or error}")
    except ValueError:
        faults.append(f"{name!r} is not a file name")
    return b""
