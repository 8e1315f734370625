"""A bisection's answer as text and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from localagent.domain.bisection import BisectEnd, BisectResult, CommitSummary, CommitVerdict, MinimalHunks
from localagent.report.behaviour_text import near_lines
from localagent.report.verify_report import differential_json
from localagent.text.visible_text import one_line, visible

SCHEMA = "localagent/bisect/1"
_SHOWN_SUSPECTS, _SHOWN_FILES, _SHOWN_HUNKS, _SHOWN_LINES = 20, 20, 10, 24
_SHOWN_DIFFERENCES = 10


def bisect_json(result: BisectResult) -> dict[str, Any]:
    """All of it; verdicts by commit, in the order they came."""
    told = asdict(replace(result, behaviour=None))
    if told["hunks"] is not None:
        del told["hunks"]["reverts"], told["hunks"]["changes"]  # whole files
    return {"schema": SCHEMA, **told, "behaviour": differential_json(result.behaviour)}


def bisect_text(result: BisectResult) -> str:
    """For people: the commit as git shows one, then the hunks that matter."""
    return "\n".join(visible(line) for line in _lines(result))


def bisect_log(result: BisectResult) -> str:
    """The verdicts as `git bisect replay` takes them: to it the last bad commit is the oldest one."""
    lines = ["git bisect start", f"git bisect bad {result.bad}"]
    lines += [f"git bisect good {good}" for good in result.good]
    found = result.first_bad.commit if result.first_bad is not None else ""
    judged = sorted(result.judged.items(), key=lambda item: item[0] == found)
    lines += [f"git bisect {judgement.verdict.value} {commit}" for commit, judgement in judged]
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _lines(result: BisectResult) -> Iterator[str]:
    yield result.reason
    if result.first_bad is not None:
        yield from _commit(result.first_bad)
    if result.end is BisectEnd.UNDECIDED:
        for commit in result.suspects[:_SHOWN_SUSPECTS]:
            judgement = result.judged.get(commit)
            yield f"  {commit}" + (
                f"  {judgement.verdict.value}: {one_line(judgement.reason, 160)}" if judgement else ""
            )
        if len(result.suspects) > _SHOWN_SUSPECTS:
            yield f"  and {len(result.suspects) - _SHOWN_SUSPECTS} more"
    if result.symptom and result.end is not BisectEnd.PASSES_AT_BAD:
        name, kind = next(iter(result.symptom.items()))
        more = f" and {len(result.symptom) - 1} more" if len(result.symptom) > 1 else ""
        yield f"fails at the bad commit: {name}: {one_line(kind, 200)}{more}"
    if result.hunks is not None:
        yield from _hunks(result.hunks)
    if (behaviour := differential_json(result.behaviour)) is not None:
        yield from near_lines(behaviour, most=_SHOWN_DIFFERENCES, whole=True, all_by="--json")
    skipped = sum(j.verdict is CommitVerdict.SKIP for j in result.judged.values())
    among = max(result.commits, result.tested, len(result.judged))
    yield (
        f"tested {result.tested} commits of {among:,} in {result.runs} runs, "
        f"{skipped} could not be judged, {result.seconds:.1f} s"
    )


def _commit(commit: CommitSummary) -> Iterator[str]:
    yield f"  Author: {one_line(commit.author, 200)}"
    yield f"  Date:   {commit.date}"
    yield f"  {one_line(commit.subject, 200)}"
    for status, path in commit.files[:_SHOWN_FILES]:
        yield f"    {status} {path}"
    if len(commit.files) > _SHOWN_FILES:
        yield f"    and {len(commit.files) - _SHOWN_FILES} more files"


def _hunks(hunks: MinimalHunks) -> Iterator[str]:
    least = "none of them can be left out" if hunks.complete else "there was no time to leave out more"
    which = "its one hunk" if hunks.total == 1 else f"{hunks.kept} of its {hunks.total} hunks"
    yield f"of {which} this is enough to make the tests fail ({least}):"
    for hunk in hunks.hunks[:_SHOWN_HUNKS]:
        yield f"  {hunk.path}:{hunk.line}"
        if not hunk.before and not hunk.after:
            yield "    (no text)"
        lines = [f"-{line}" for line in hunk.before.splitlines()] + [f"+{line}" for line in hunk.after.splitlines()]
        for line in lines[:_SHOWN_LINES]:
            yield f"    {line}"
        if len(lines) > _SHOWN_LINES:
            yield f"    and {len(lines) - _SHOWN_LINES} more lines"
