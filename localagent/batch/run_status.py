"""Runs from outside: how far each is, and its report written beside its answers."""

from collections import Counter
from typing import Any

from localagent.batch.batch_ports import WorkerCommands
from localagent.batch.batch_report import report_of
from localagent.batch.html_report import page
from localagent.batch.junit_sarif import junit, sarif
from localagent.batch.run import Begun, fleet_of
from localagent.batch.runs import RunRecord, RunStore
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged, write_private
from localagent.text.strict_json import dump


def finish(begun: Begun, why: str) -> dict[str, Any]:
    """The report, kept in the run's folder in every form. `why` it ended before all was reached, or ""."""
    report = report_of(begun.run, begun.fleet, why_ended=why)
    for name, data in (
        ("report.html", page(report)),
        ("junit.xml", junit(report)),
        ("report.sarif", sarif(report)),
        ("report.json", dump(report, indent=1)),
    ):
        write_private(begun.run.dir / name, data)
    for lock in begun.run.dir.glob("key-*.lock"):
        lock.unlink(missing_ok=True)
    return report


def report_now(begun: Begun) -> dict[str, Any]:
    """The report as things stand, nothing written."""
    return report_of(begun.run, begun.fleet)


def counted(run: RunRecord, ways: WorkerCommands) -> dict[str, Any]:
    """How far a run is: running, finished, or ended before it was."""
    fleet = fleet_of(run, ways)
    states: Counter[str] = Counter()
    left = []
    for number, member in enumerate(fleet.members):
        try:
            answer = run.answer(number)
        except RecordDamaged:
            answer = None
        if answer is None:
            left.append(member.name)
        else:
            states[answer.state.value] += 1
    with run.alone("run") as lock:
        state = "running" if lock is None else "ended early" if left else "finished"
    return {
        "run": run.id,
        "fleet": fleet.name,
        "began": run.plan.began,
        "state": state,
        "repositories": len(fleet.members),
        "answered": len(fleet.members) - len(left),
        "states": dict(sorted(states.items())),
        "open": left,
    }


def listed(store: RunStore, ways: WorkerCommands) -> tuple[list[dict[str, Any]], list[str]]:
    """Every run that can be read, newest first, and what is wrong with the others."""
    rows, faults = [], []
    for name in store.names():
        try:
            rows.append(counted(store.load(name), ways))
        except (RecordDamaged, UsageFault) as damage:
            faults.append(str(damage))
    return rows, faults
