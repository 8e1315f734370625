"""The audit report as one HTML page (`report/templates/audit.html`): no script, no link, charts as inline SVG."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localagent.record.audit.heads import UNVERIFIABLE
from localagent.report.html import render

_Section = tuple[str, Sequence[str], list[Sequence[object]]]
_MOST_DAYS = 12
_TASK_HEAD = (
    *("task", "by", "repository", "outcome", "jail", "run", "refused", "limits", "patch"),
    *("attested", "applied", "undone"),
)
_KEY_HEAD = ("key", "made", "retired", "encrypted")


def page(report: Mapping[str, Any]) -> bytes:
    """The page's bytes."""
    chain, totals = report["chain"], report["totals"]
    return render(
        "audit.html",
        title=f"localagent audit since {report['since']}",
        since=report["since"],
        chain=chain,
        state=chain["standing"] if chain["standing"] in ("whole", "torn", "altered", UNVERIFIABLE) else "altered",
        charts={
            "tasks by outcome": totals["outcomes"],
            "tasks by day": dict(list(totals["by_day"].items())[-_MOST_DAYS:]),
            "candidates refused, by rule": totals["refused_candidates"],
            "limits hit": totals["limits_hit"],
            "levels of the jail": totals["levels"],
        },
        sections=list(_sections(report)),
    )


def _sections(report: Mapping[str, Any]) -> Iterator[_Section]:
    yield "Totals", ("what", "how many"), [(k, v) for k, v in report["totals"].items() if isinstance(v, int)]
    yield "Tasks", _TASK_HEAD, [_task(row) for row in report["tasks"]]
    yield _events("Patches written and taken back, notes written", report["landings"])
    yield _events("Approvals of patches, dependencies and held tasks", report["approvals"])
    yield _events("Refused by gate, verify and deps", report["refusals"])
    yield _events("Replays", report["replays"])
    yield _events("Keys and the journal itself", report["notable"])
    keys = report["keys"]
    yield (
        "Keys",
        _KEY_HEAD,
        [(k["id"], k["made"], k["retired"] or "active", "yes" if k["encrypted"] else "no") for k in keys],
    )


def _task(row: Mapping[str, Any]) -> Sequence[object]:
    jail = row["jail"]
    return (
        row["task"],
        row["builder"],
        row["repo"],
        row["outcome"],
        f"{jail.get('backend', '')} {jail.get('level', '')}".strip(),
        row["verified"],
        _counts(row["denied"]),
        _counts(row["limits_hit"]),
        str(row["patch"] or "")[:19],
        "yes" if row["attested"] else "",
        row["applied"][:19],
        row["undone"][:19],
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _events(title: str, events: Sequence[Mapping[str, Any]]) -> _Section:
    rows: list[Sequence[object]] = []
    for event in events:
        rest = {k: v for k, v in event.items() if k not in ("entry", "at", "kind")}
        rows.append((event["entry"], event["at"][:19], event["kind"], ", ".join(f"{k} {v}" for k, v in rest.items())))
    return title, ("entry", "at", "what", "details"), rows
