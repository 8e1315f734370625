"""`localagent batch run|report|list|status`: a fleet of repositories overnight, and what came of it."""

import argparse
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.app.evidence.task_evidence import open_signer
from localagent.batch.attestations import attestations, signer_of
from localagent.batch.batch_report import exit_of, headline
from localagent.batch.certificates import make_certificates
from localagent.batch.fleet import Fleet
from localagent.batch.git_am import refuse_inside, write_series
from localagent.batch.html_report import page
from localagent.batch.junit_sarif import junit, sarif
from localagent.batch.run import BatchRun, Begun, begin, fleet_of, resume
from localagent.batch.run_status import counted, finish, listed, report_now
from localagent.batch.runs import RunStore
from localagent.cli.actions import add_action
from localagent.cli.batch_worker import ways
from localagent.cli.gpu_layers import add_gpu_layers, describe_layers, with_layers
from localagent.cli.render import Render
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.report.confidence_text import confidence_line
from localagent.text.strict_json import dump

_ATTEST_WHAT = "--attest needs --patches DIR"
_MAKERS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "html": page,
    "junit": junit,
    "sarif": sarif,
    "report": lambda report: dump(report, indent=1),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    verbs = parser.add_subparsers(dest="batch_verb", metavar="VERB", required=True)
    run = add_action(verbs, "run", "process a fleet; exit 1 if anything needs a person")
    run.add_argument("fleet", nargs="?", type=Path, metavar="FLEET.toml", help="which repositories, and what to do")
    run.add_argument(
        "--resume", nargs="?", const="", metavar="ID", help="resume an interrupted run (default: the newest)"
    )
    run.add_argument("--jobs", type=int, metavar="J", help="repositories in parallel (default: from the fleet file)")
    add_gpu_layers(run, "; on a cluster each machine's own environment says it")
    run.add_argument("--anytime", action="store_true", help="ignore the fleet's time window")
    report = add_action(verbs, "report", "the report of a run")
    report.add_argument("run", nargs="?", default="", metavar="ID", help="default: the newest run")
    status = add_action(verbs, "status", "progress of a run")
    status.add_argument("run", nargs="?", default="", metavar="ID", help="default: the newest run")
    listing = add_action(verbs, "list", "the runs, newest first")
    certs = add_action(verbs, "certs", "certificates for a cluster of machines")
    certs.add_argument("folder", type=Path, metavar="DIR", help="a new folder")
    certs.add_argument("--host", action="append", default=[], metavar="NAME", help="a machine; may be repeated")
    certs.add_argument("--days", type=int, default=365, metavar="N", help="days until they expire (365)")
    for one in (run, report):
        one.add_argument("--patches", type=Path, metavar="DIR", help="write each patch to DIR, for `git am`")
        one.add_argument(
            "--attest", action="store_true", help="with --patches: also write the attestation of each patch"
        )
        one.add_argument("--html", type=Path, metavar="FILE", help="write the report as an HTML page")
        one.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
        one.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0")
        one.add_argument("--report", type=Path, metavar="FILE", help="write the report as JSON")
    for one in (run, report, status, listing, certs):
        one.add_argument("--json", action="store_true", help="one JSON value on standard output")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 settled, 1 something needs a person or was not reached."""
    if args.batch_verb == "list":
        return _list(args, settings, render)
    if args.batch_verb == "certs":
        return _certs(args, render)
    if args.batch_verb == "status":
        return _status(args, settings, render)
    if args.batch_verb == "report":
        record = RunStore(settings.state_dir).open(args.run)
        _refuse_attest(args, settings)
        begun = Begun(run=record, fleet=fleet_of(record, ways()))
        _refuse(args.patches, begun.fleet, settings)
        return _write_reports(args, begun, report_now(begun), settings, render)
    return _run_fleet(args, settings, render)


def _run_fleet(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    faults = []
    if (args.fleet is None) == (args.resume is None):
        faults.append("give either a FLEET.toml or --resume")
    if args.jobs is not None and args.jobs < 1:
        faults.append("--jobs: at least 1")
    if args.attest and args.patches is None:
        faults.append(_ATTEST_WHAT)
    if faults:
        raise UsageFault(faults, remedy="`localagent batch run --help` lists the options")
    _refuse_attest(args, settings)
    settings = with_layers(args, settings)
    describe_layers(settings, render.note)
    if settings.gpu_layers:
        os.environ["LOCALAGENT_GPU_LAYERS"] = settings.gpu_layers  # the workers' environment is this one
    begun = _begun(args, settings)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    jobs = min(args.jobs or begun.fleet.jobs, len(os.sched_getaffinity(0)) * 4)
    many = f"{jobs} at once" if begun.fleet.cluster is None else f"by {begun.fleet.cluster.scheduler}"
    render.note(f"run {begun.run.id}: {len(begun.fleet.members)} repositories, {many}")
    try:
        why = _worked(args, begun, settings, render, jobs)
    except KeyboardInterrupt:
        render.note(f"to resume: localagent batch run --resume {begun.run.id}")
        raise
    report = finish(begun, why)
    if why:
        render.note(f"{why}; to resume: localagent batch run --resume {begun.run.id}")
    return _write_reports(args, begun, report, settings, render)


def _worked(args: argparse.Namespace, begun: Begun, settings: Settings, render: Render, jobs: int) -> str:
    if begun.fleet.cluster is None:
        return BatchRun(begun, settings, ways(), jobs=jobs, told=render.note).work(anytime=args.anytime)
    from localagent.batch.cluster import ClusterCrew, connected  # noqa: PLC0415 - most fleets need none
    from localagent.cli.batch_cluster import work_one  # noqa: PLC0415

    with connected(begun.fleet.cluster) as client:
        crew = ClusterCrew(client, work_one, begun.run, begun.fleet, settings, args.jobs or 0)
        return BatchRun(begun, settings, ways(), jobs=jobs, told=render.note, crew=crew).work(anytime=args.anytime)


def _certs(args: argparse.Namespace, render: Render) -> int:
    made = make_certificates(args.folder, args.host, args.days)
    if args.json:
        render.json({"files": [str(path) for path in made]})
        return 0
    for path in made:
        render.line(str(path))
    render.note("each machine needs ca.pem and the files of its role; ca.key can issue more: store it elsewhere")
    render.note("anyone with one of these keys can run anything on every machine of the cluster")
    return 0


def _begun(args: argparse.Namespace, settings: Settings) -> Begun:
    if args.fleet is not None:
        return begin(
            args.fleet,
            settings,
            ways(),
            anytime=args.anytime,
            agree=lambda fleet: _refuse(args.patches, fleet, settings),
        )
    begun = resume(args.resume, settings, ways())
    _refuse(args.patches, begun.fleet, settings)
    return begun


def _interrupted(_number: int, _frame: object) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # once is enough
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _refuse_attest(args: argparse.Namespace, settings: Settings) -> None:
    """UsageFault for --attest without --patches, or a key that cannot be used; AnswerIsNo without one."""
    if args.attest and args.patches is None:
        raise UsageFault(_ATTEST_WHAT)
    if args.attest:
        signer_of(settings)


def _refuse(patches: Path | None, fleet: Fleet, settings: Settings) -> None:
    """UsageFault before anything begins: patches inside the fleet; a key that no task could be signed with here."""
    if fleet.cluster is None:
        open_signer(settings)
    if patches is not None:
        refuse_inside(patches, fleet)


def _write_reports(
    args: argparse.Namespace, begun: Begun, report: dict[str, Any], settings: Settings, render: Render
) -> int:
    for name, maker in _MAKERS.items():
        if (path := getattr(args, name)) is not None:
            write_through(path, maker(report))
    code = exit_of(report)
    if args.patches is not None:
        bundles, faults = attestations(report, settings) if args.attest else (None, [])
        told = f", {len(bundles)} attested" if bundles is not None else ""
        render.note(f"{write_series(args.patches, report, bundles)} patches below {args.patches}{told}")
        for fault in faults:
            render.note(fault)
        code = 1 if faults else code
    if args.json:
        render.json(report)
        return code
    render.line(headline(report))
    for row in report["repositories"]:
        if row["state"] != "clean":
            likely = "" if row["confidence"] is None else f" ({confidence_line(row['confidence'])})"
            render.line(f"  {row['state']:<15} {row['name']}: {row['reason']}{likely}")
    page_path = begun.run.dir / "report.html"
    render.note(f"the page: {page_path}" if page_path.exists() else "the HTML report is written when the run ends")
    return code


def _list(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    rows, faults = listed(RunStore(settings.state_dir), ways())
    if args.json:
        render.json(rows)
    for row in [] if args.json else rows:
        render.line(f"{row['run']}  {row['state']:<12} {row['answered']:>5} of {row['repositories']:<5} {row['fleet']}")
    if not rows and not args.json:
        render.line("no batch runs yet")
    for fault in faults:
        render.note(fault)
    return 0


def _status(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    row = counted(RunStore(settings.state_dir).open(args.run), ways())
    if args.json:
        render.json(row)
        return 0
    render.line(f"{row['run']}: {row['state']}: {row['answered']} of {row['repositories']} repositories answered")
    for state, count in row["states"].items():
        render.line(f"  {count:>5} {state}")
    if row["open"]:
        more = f" and {len(row['open']) - 10} more" if len(row["open"]) > 10 else ""
        render.line(f"  remaining: {', '.join(row['open'][:10])}{more}")
    return 0
