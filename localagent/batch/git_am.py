"""A repository's patches as files that `git am` takes, one a kind of work, each on top of the one before.

Subjects and messages are ours; what comes from the repository stands in them escaped, on lines that neither git nor
mail reads as anything. Not promised: that a tree with CRLF line ends takes them without `git am --keep-cr`.
"""

from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from localagent import __version__
from localagent.batch.batch_report import patches_of
from localagent.batch.fleet import Fleet, WorkKind
from localagent.errors import UsageFault
from localagent.fs.atomic_files import write_through
from localagent.text.visible_text import one_line

_SHOWN = 20


def refuse_inside(folder: Path, fleet: Fleet) -> None:
    """UsageFault where patches would be written into a repository of the fleet."""
    real = folder.resolve()
    inside = [m.name for m in fleet.members if real.is_relative_to(m.source.folder.resolve())]
    if inside:
        raise UsageFault(
            f"--patches: {folder} lies in the repository {inside[0]!r}, and nothing is written there",
            remedy="name a folder outside the fleet",
        )


def write_series(folder: Path, report: dict[str, Any], bundles: Mapping[tuple[str, int], bytes] | None = None) -> int:
    """Write every patch as `<folder>/<repository>/000N-<work>.patch`; answers how many.

    `bundles`: attestations by repository and number, written beside their patches as `.intoto.jsonl`, with the diff
    that they are about, which the mail carries, as `.diff`.
    """
    count = 0
    for row in report["repositories"]:
        diffs = [diff for _, diff in patches_of(row)]
        for number, (name, data) in enumerate(series(row, report), 1):
            place = folder / row["name"] / name
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageFault(f"--patches: {place.parent}: {error.strerror or error}") from error
            write_through(place, data)
            if bundles is not None and (row["name"], number) in bundles:
                write_through(place.with_suffix(".diff"), diffs[number - 1])
                write_through(place.with_suffix(".intoto.jsonl"), bundles[row["name"], number])
            count += 1
    return count


def series(row: dict[str, Any], report: dict[str, Any]) -> list[tuple[str, bytes]]:
    """File names and mails of one repository's patches."""
    steps = list(patches_of(row))
    return [
        (f"{n:04}-{step['work']}.patch", _mail(row, report, step, diff, n, len(steps)))
        for n, (step, diff) in enumerate(steps, 1)
    ]


def _mail(row: dict[str, Any], report: dict[str, Any], step: dict[str, Any], diff: bytes, n: int, of: int) -> bytes:
    began = datetime.fromisoformat(report["began"])
    many = f" {n}/{of}" if of > 1 else ""
    head = [
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
        "From: localagent <localagent@localhost>",
        f"Date: {format_datetime(began)}",
        f"Subject: [PATCH{many}] {_subject(step)}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        "",
        *_body(row, report, step),
        "",
        "Assisted-by: localagent",
        "---",
        "",
    ]
    return "\n".join(head).encode("ascii") + diff + f"-- \nlocalagent {__version__}\n".encode("ascii")


def _subject(step: dict[str, Any]) -> str:
    if step["work"] == WorkKind.INSTRUCTION:
        return f"Change {step['files']} files as instructed"
    if step["work"] == WorkKind.CODEMODS:
        return f"Repair known mistakes in {step['files']} files"
    if step["work"] in (WorkKind.SARIF, WorkKind.TYPE_ERRORS):
        what = "type errors" if step["work"] == WorkKind.TYPE_ERRORS else "findings of other tools"
        return f"Repair {what} in {step['files']} files"
    count = len(step["turned"])
    return f"Repair what {count} failing {'test' if count == 1 else 'tests'} showed"


def _body(row: dict[str, Any], report: dict[str, Any], step: dict[str, Any]) -> list[str]:
    lines = [f"Found by run {report['run']}, which proved it on the tree", f"{row['tree']}."]
    if row["commit"]:
        lines.append(f"That is commit {row['commit']}.")
    told = [f"{_ascii(r['path'])}:{int(r['line'])} {_ascii(r['rule'])}" for r in step["repaired"]]
    told += [
        f"{_ascii(f['path'])}:{int(f['line'])} {_ascii(f['tool'])} {_ascii(f['rule'])}"
        for f in step["findings"]
        if f["state"] == "fixed"
    ]
    told += [_ascii(name) for name in step["turned"]]
    told[:0] = [_ascii(step["evidence"]["instruction"])] if step["work"] == WorkKind.INSTRUCTION else []
    lines += ["", *(f"* {text}" for text in told[:_SHOWN])]
    return [*lines, f"* and {len(told) - _SHOWN} more"] if len(told) > _SHOWN else lines


def _ascii(text: str) -> str:
    return one_line(text, 200).encode("ascii", "backslashreplace").decode("ascii")
