"""The strength of a repair in report, journal, evidence and text. Shapes as in a verification (docs/verify.md)."""

from collections.abc import Iterator, Mapping
from typing import Any

from localagent.domain.strength import Share
from localagent.domain.verification import Assessment
from localagent.report.behaviour_text import near_lines
from localagent.report.verify_report import (
    differential_json,
    limit_lines,
    mutants_json,
    strength_json,
    strength_line,
    weak_lines,
)
from localagent.text.visible_text import one_line

_PARTS = (
    ("lines", "changed lines run by tests"),
    ("mutants", "mutants killed"),
    ("functions", "touched functions compared"),
)


def assessment_json(found: Assessment | None) -> dict[str, Any] | None:
    """For the report; null where nothing was accepted or measured."""
    if found is None:
        return None
    return {
        "strength": strength_json(found.strength),
        "mutants": mutants_json(found.mutants),
        "differential": differential_json(found.differential),
        "seconds": round(found.seconds, 3),
        "allowed_seconds": round(found.allowed_seconds, 3),
        "cut": [one_line(text, 500) for text in found.cut],
    }


def strength_event(found: Assessment) -> dict[str, Any]:
    """For the journal and what is signed: the grade, of which claim, its parts as [part, whole]. No text of the source.

    `unexplained` counts inputs by the kind of their difference.
    """
    strength, near = found.strength, found.differential
    if strength is None:
        return {
            "grade": None,
            "claim": None,
            "unexplained": None,
            "lines": None,
            "mutants": None,
            "functions": None,
            "cut": bool(found.cut),
        }
    return {
        "grade": strength.grade.value,
        "claim": strength.claim.value,
        "unexplained": None if near is None else {effect.value: many for effect, many in near.unexplained.items()},
        "lines": _pair(strength.lines),
        "mutants": _pair(strength.mutants),
        "functions": _pair(strength.functions),
        "cut": bool(found.cut),
    }


def _pair(share: Share | None) -> list[int] | None:
    return None if share is None else [share.part, share.whole]


def assessment_lines(told: Mapping[str, Any], *, most: int) -> Iterator[str]:
    """For a person, from the report's JSON: grade, parts, what is missing, `most` changes of behaviour."""
    strength = told["strength"]
    if strength is None:
        yield "strength not measured: no statement that runs is changed"
        return
    yield f"{strength_line(strength['grade'], strength.get('claim'))}, measured in {told['seconds']:.1f} s"
    yield from limit_lines(strength.get("limits", ()))  # tasks of before have none
    yield from weak_lines(strength.get("weak", ()))  # tasks of before have none
    for key, name in _PARTS:
        share = strength[key]
        if share is None:
            yield f"  {name}: not measured: {strength['unknown'].get(key, 'unknown')}"
        elif not share["whole"]:
            yield f"  {name}: {share['note'] or 'nothing of that kind'}"
        else:
            yield f"  {name}: {share['part']} of {share['whole']}"
    yield from (f"  to the next grade: {text}" for text in strength["short"])
    yield from (f"  incomplete: {text}" for text in told["cut"])
    near = told["differential"]
    if near is not None:
        yield from near_lines(near, most=most)
