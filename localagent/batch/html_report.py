"""The morning report as one HTML page (`report/templates/batch.html`): no script, nothing from elsewhere."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from localagent.batch.batch_report import headline, patches_of
from localagent.batch.task_result import SETTLED
from localagent.report.confidence_text import confidence_figure
from localagent.report.html import render
from localagent.report.text import confidence_lines

_PATCH_CHARACTERS = 200_000


def page(report: dict[str, Any]) -> bytes:
    """The page."""
    return render(
        "batch.html",
        title=headline(report),
        report=report,
        tiles=_tiles(report),
        asked=[
            (row["name"], row["state"], confidence_figure(row["confidence"]), row["why"], row["what_to_do"])
            for row in report["needs_person"]
        ],
        settled=SETTLED,
        figures=_figures,
        source_of=_source,
        tables=_tables,
        notes=_notes,
        patches=_patches,
        reasons=_reasons,
        most_characters=_PATCH_CHARACTERS,
    )


def _tiles(report: dict[str, Any]) -> Sequence[tuple[object, str]]:
    s = report["summary"]
    return (
        (s["repositories"], "repositories"),
        (s["patches"], "patches to read"),
        (s["turned"], f"of {s['failing']} failing tests turned"),
        (s["repairs"], "mistakes and findings repaired"),
        (len(report["needs_person"]), "need a person"),
        (s["kept_from_before"], "unchanged, answer kept"),
        (_span(s["seconds"]), "of work"),
    )


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _figures(row: dict[str, Any]) -> Sequence[object]:
    """Confidence, tests turned, repairs and seconds of a repository."""
    turned = sum(len(step["turned"]) for step in row["steps"])
    failing = sum(len(step["failing"]) for step in row["steps"])
    repaired = sum(int(step["evidence"].get("repairs", 0)) for step in row["steps"])
    return (
        confidence_figure(row["confidence"]),
        f"{turned} of {failing}" if failing else "",
        repaired or "",
        f"{row['seconds']:.1f}",
    )


def _source(row: dict[str, Any]) -> str:
    at = f" at {row['revision']} ({row['commit'][:12] or 'no commit'})" if row["revision"] else ""
    kept = f"; the answer of {row['same_as']}, the tree is the same" if row["same_as"] else ""
    used = f"{row['seconds']:.1f} s, {row['cpu_seconds']:.1f} s of processor"
    return f"{row['source']}{at}; tree {row['tree'] or 'not read'}; {used}{kept}"


def _patches(row: dict[str, Any]) -> Iterable[tuple[dict[str, Any], str]]:
    return ((step, diff.decode("utf-8", "surrogateescape")) for step, diff in patches_of(row))


def _reasons(told: Sequence[dict[str, Any] | None]) -> list[str]:
    """How likely a patch is right, and what speaks for and against it."""
    return [line for one in told for line in confidence_lines(one)]


def _tables(step: dict[str, Any]) -> Iterator[tuple[Sequence[str], list[tuple[str, ...]]]]:
    yield (
        ("failing", "with"),
        [
            (
                f"{one['id']}{' (turned)' if one['id'] in step['turned'] else ''}",
                f"{one['exception']}: {one['message']}",
            )
            for one in step["failing"]
        ],
    )
    yield (
        ("repaired", "rule", "what it was"),
        [(f"{one['path']}:{one['line']}", one["rule"], one["message"]) for one in step["repaired"]],
    )
    yield (
        ("finding", "of", "what it says", "what became of it"),
        [
            (
                f"{one['path']}:{one['line']}",
                f"{one['tool']} {one['rule']}",
                one["message"],
                f"{one['state']}: {one['why']}" + (f" (proven by {one['proof']})" if one["proof"] else ""),
            )
            for one in step["findings"]
        ],
    )


def _notes(step: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "left as they are", ", ".join(f"{rule} {count}" for rule, count in step["left"].items())
    told = [f"{name.replace('_', ' ')}: {_brief(value)}" for name, value in step["evidence"].items() if value]
    told += [f"{step['kept_passing']} tests passed before and after"] if step["kept_passing"] else []
    told += [f"localagent show {step['task']}"] if step["task"] else []
    yield "evidence", "; ".join(told)


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
