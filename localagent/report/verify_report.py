"""A verification as JSON (`localagent/verify/1`, see docs/verify.md) and as text for a person. Both bounded."""

from collections.abc import Iterator, Sequence
from typing import Any

from localagent import __version__
from localagent.domain.review import PatchVerdict
from localagent.domain.strength import Share, Strength
from localagent.domain.verification import (
    Basis,
    Contracts,
    Difference,
    Differential,
    FunctionReach,
    Mutants,
    Necessity,
    PropertyBreak,
    Symbolic,
    UnneededPart,
    Verification,
    VerifyVerdict,
)
from localagent.report.behaviour_text import merged, near_lines
from localagent.report.guard_text import guard_json, guard_line
from localagent.report.review_report import review_json, review_text
from localagent.text.visible_text import ends, one_line

SCHEMA = "localagent/verify/1"
_MOST_IDS = 2_000
_SHOWN_DIFFERENCES = 10
_SHOWN_ALIVE = 5
HEAD = {
    VerifyVerdict.VERIFIED: "Patch verified",
    VerifyVerdict.CHARACTERIZED: "Patch does not change behaviour on the inputs tried (characterization, not tests)",
    VerifyVerdict.UNPROVEN: "Patch not proven",
    VerifyVerdict.TOO_WEAK: "Patch refused: its evidence is too weak",
    VerifyVerdict.REFUSED: "Patch refused",
    VerifyVerdict.REFUTED: "Patch refuted: it does not do what it claims",
    VerifyVerdict.NEEDS_PERSON: "Patch needs a person",
    VerifyVerdict.COULD_NOT: "Patch could not be verified",
    VerifyVerdict.CANNOT_ENFORCE: "Nothing ran: the jail cannot be enforced",
    VerifyVerdict.INTERRUPTED: "Verification interrupted",
}
_BASIS = {
    Basis.TESTS: "tests that run the changed code",
    Basis.CHECKS: "the given checks",
    Basis.CHARACTERIZATION: "old against new on many inputs",
    Basis.TYPES: "mypy: nothing new",
    Basis.GATES: "the gates",
}


def verification_json(v: Verification) -> dict[str, Any]:
    """The verification as JSON types; every field is always there."""
    full, near = v.full, v.differential
    return {
        "schema": SCHEMA,
        "localagent": __version__,
        "verdict": v.verdict.value,
        "claim": v.claim.value if v.claim is not None else None,
        "claim_inferred": v.claim_inferred,
        "exit": v.exit,
        "reason": one_line(v.reason, 4_000),
        "remedy": one_line(v.remedy, 1_000),
        "rests_on": [basis.value for basis in v.rests_on],
        "patch": v.patch,
        "repo": v.repo,
        "seed": v.seed,
        "baseline_commit": v.baseline_commit or None,
        "gates": review_json(v.review) if v.review is not None else None,
        "comparison": None
        if full is None
        else {
            "fail_to_pass": _ids(full.fail_to_pass),
            "pass_to_pass": _ids(full.pass_to_pass),
            "pass_to_fail": _ids(full.pass_to_fail),
            "still_failing": _ids(full.still_failing),
            "left_alone": _ids(v.left_alone),
            "flaky": _ids(v.baseline.flaky if v.baseline is not None else ()),
            "added": _ids(v.added),
            "removed": _ids(v.removed),
        },
        "guard": guard_json(full.guard if full is not None else None),
        "checks": {} if full is None else {one_line(k): one_line(t, 1_000) for k, t in full.checks.items()},
        "differential": differential_json(near),
        "crosshair": _symbolic(v.symbolic),
        "contracts": _contracts(v.contracts),
        "mutants": mutants_json(v.mutants),
        "necessity": necessity_json(v.necessity),
        "strength": strength_json(v.strength),
        "min_strength": v.least_strength or None,
        "seconds": dict(v.seconds),
        "jail": {"backend": v.jail_backend, "level": v.jail_level},
        "python": v.baseline.python if v.baseline is not None else "",
        "pytest": v.baseline.pytest if v.baseline is not None else "",
        "warnings": [one_line(w, 1_000) for w in v.warnings],
    }


def _ids(names: Sequence[str]) -> list[str]:
    return [one_line(name, 500) for name in names[:_MOST_IDS]]


def differential_json(near: Differential | None) -> dict[str, Any] | None:
    """Old against new, null where nobody was asked."""
    if near is None:
        return None
    return {
        "inputs": near.inputs,
        "functions": [_compared(f) for f in near.functions],
        "demanded": near.demanded,
        "explained": near.explained,
        "unexplained": {effect.value: many for effect, many in near.unexplained.items()},
        "function_changes": [
            {
                "path": c.path,
                "function": one_line(c.function),
                "effect": c.effect.value,
                "parameter": one_line(c.parameter, 80),
            }
            for c in near.function_changes
        ],
        "differences": [_difference(d) for d in near.differences],
        "differences_left_out": near.differences_left_out,
        "properties_held": dict(near.properties_held),
        "broken_properties": [_broken(b) for b in near.broken_properties],
        "notes": [one_line(n, 500) for n in near.notes],
    }


def _compared(f: FunctionReach) -> dict[str, Any]:
    return {
        "path": f.path,
        "function": one_line(f.function),
        "compared": f.compared,
        "agreed": f.agreed,
        "answered": f.answered,
        "reached": f.reached,
        "in_place": f.in_place,
        "why": one_line(f.why),
    }


def _difference(d: Difference) -> dict[str, Any]:
    return {
        "path": d.path,
        "function": one_line(d.function),
        "call": ends(d.call, 700),
        "old": one_line(d.old, 400),
        "new": one_line(d.new, 400),
        "origin": d.origin.value,
        "crash": d.crash,
        "effect": d.effect.value,
        "explained": d.explained,
    }


def _broken(b: PropertyBreak) -> dict[str, Any]:
    return {
        "path": b.path,
        "function": one_line(b.function),
        "property": one_line(b.name),
        "held": b.held,
        "call": one_line(b.call, 700),
        "old": one_line(b.old, 400),
        "new": one_line(b.new, 400),
    }


def _symbolic(symbolic: Sequence[Symbolic] | None) -> list[dict[str, Any]] | None:
    if symbolic is None:
        return None
    return [
        {"path": s.path, "function": one_line(s.function), "said": s.said.value, "why": one_line(s.why, 500)}
        for s in symbolic
    ]


def _contracts(contracts: Sequence[Contracts] | None) -> list[dict[str, Any]] | None:
    if contracts is None:
        return None
    return [
        {
            "path": c.path,
            "function": one_line(c.function),
            "said": c.said.value,
            "why": one_line(c.why, 500),
            "broken": [
                {"contract": one_line(b.contract, 400), "line": b.line, "found": one_line(b.found, 400), "held": b.held}
                for b in c.broken
            ],
            "dropped": [one_line(text, 400) for text in c.dropped],
        }
        for c in contracts
    ]


def mutants_json(mutants: Mutants | None) -> dict[str, Any] | None:
    """Mutants, null where none were tried."""
    if mutants is None:
        return None
    return {
        "tried": mutants.tried,
        "killed": mutants.killed,
        "alike": mutants.alike,
        "space": mutants.space,
        "alive": [one_line(text, 300) for text in mutants.alive],
        "note": one_line(mutants.note),
    }


def necessity_json(necessity: Necessity | None) -> dict[str, Any] | None:
    """The parts of a patch that no turned test needs, null where none was taken back."""
    if necessity is None:
        return None
    return {
        "parts": necessity.parts,
        "asked": necessity.asked,
        "unneeded": _parts(necessity.unneeded),
        "alternatives": _parts(necessity.alternatives),
        "differences": necessity.differences,
        "example": one_line(necessity.example, 1_000),
        "note": one_line(necessity.note),
    }


def _parts(parts: Sequence[UnneededPart]) -> list[dict[str, Any]]:
    return [{"path": p.path, "line": p.line, "text": one_line(p.text, 300)} for p in parts]


def strength_json(strength: Strength | None) -> dict[str, Any] | None:
    """The grade with its parts, null where there is none."""
    if strength is None:
        return None
    return {
        "grade": strength.grade.value,
        "claim": strength.claim.value,
        "limits": [one_line(text, 1_000) for text in strength.limits],
        "lines": _share(strength.lines),
        "mutants": _share(strength.mutants),
        "functions": _share(strength.functions),
        "unknown": {name: one_line(why) for name, why in strength.unknown.items()},
        "short": [one_line(text) for text in strength.short],
        "others": strength.others,
        "weak": [one_line(text, 500) for text in strength.weak],
    }


def weak_lines(weak: Sequence[str]) -> Iterator[str]:
    """For a person: that the tests are weak here, and what shows it; nothing where nothing does."""
    if weak:
        yield f"  the tests are weak here: {'; '.join(one_line(text, 500) for text in weak)}"


def strength_line(grade: str, claim: str | None) -> str:
    """The grade with what it is a grade of; reports of before name no claim."""
    return f"strength {grade} of A to E" + (f", of the claim: {claim}" if claim is not None else "")


def limit_lines(limits: Sequence[str]) -> Iterator[str]:
    """For a person: what speaks against the claim."""
    yield from (f"  against the claim: {one_line(text, 1_000)}" for text in limits)


def _share(share: Share | None) -> dict[str, Any] | None:
    if share is None:
        return None
    missing = [one_line(text, 300) for text in share.missing]
    return {"part": share.part, "whole": share.whole, "missing": missing, "note": one_line(share.note)}


def headline(v: Verification) -> str:
    """What was shown, in a few words."""
    return v.headline or HEAD[v.verdict]


def verification_text(v: Verification) -> str:
    """For a person: the answer, what it rests on, the comparison, the strength with its parts, what changed."""
    return "\n".join(_lines(v))


def _lines(v: Verification) -> Iterator[str]:
    yield f"{headline(v)}: {one_line(v.reason, 4_000)}"
    if v.remedy:
        yield f"  what to do: {one_line(v.remedy, 1_000)}"
    if v.full is None and v.review is not None and v.verdict in (VerifyVerdict.REFUSED, VerifyVerdict.NEEDS_PERSON):
        yield ""
        yield review_text(v.review)
        return
    if v.rests_on:
        same = {Basis.TESTS: "the tests, whose outcome did not change"} if v.strength is None else {}
        yield "rests on: " + "; ".join({**_BASIS, **same}[basis] for basis in v.rests_on)
    if v.full is not None:
        yield from _comparison(v)
    if v.strength is not None:
        yield from _strength_lines(v)
    if (near := differential_json(v.differential)) is not None:
        yield from near_lines(near, most=_SHOWN_DIFFERENCES, whole=True, all_by="--json, --html")
    for s in v.symbolic or ():
        yield f"CrossHair on {one_line(s.function)}: {s.said}" + (f" ({one_line(s.why, 200)})" if s.why else "")
    for c in v.contracts or ():
        yield f"contracts of {one_line(c.function)}: {c.said}" + (f" ({one_line(c.why, 200)})" if c.why else "")
        for b in c.broken:
            yield f"  broken: {one_line(b.contract, 200)}: {one_line(b.found, 300)}"
        yield from (f"  no longer there: {one_line(text, 200)}" for text in c.dropped)
    if v.jail_backend:
        took = sum(v.seconds.values())
        yield f"ran in {v.jail_backend}, level {v.jail_level}; seed {v.seed}; {took:.1f} s"
    if v.review is not None and v.review.verdict is PatchVerdict.NEEDS_PERSON:
        yield ""
        yield review_text(v.review)


def _comparison(v: Verification) -> Iterator[str]:
    full = v.full
    assert full is not None
    for name, ids in (
        ("fail-to-pass", full.fail_to_pass),
        ("pass-to-pass", full.pass_to_pass),
        ("pass-to-fail", full.pass_to_fail),
        ("still failing", full.still_failing),
        ("added", v.added),
        ("removed", v.removed),
    ):
        if ids or name in ("fail-to-pass", "pass-to-pass", "pass-to-fail"):
            some = ", ".join(one_line(i) for i in ids[:3]) + (", …" if len(ids) > 3 else "")
            yield f"  {name}: {len(ids)}" + (f"  {some}" if ids and name != "pass-to-pass" else "")
    for name, said in full.checks.items():
        if name in ("ruff", "mypy", "shuffled"):
            yield f"  {name}: {one_line(said)}"
    if (guard := guard_json(full.guard)) is not None:
        yield f"  {guard_line(guard)}"


def _strength_lines(v: Verification) -> Iterator[str]:
    strength = v.strength
    assert strength is not None
    yield strength_line(strength.grade, f"{strength.claim}{' (inferred)' if v.claim_inferred else ''}")
    yield from limit_lines(strength.limits)
    yield from weak_lines(strength.weak)
    for name, key, share in (
        ("changed lines run by tests", "lines", strength.lines),
        ("mutants killed", "mutants", strength.mutants),
        ("touched functions compared", "functions", strength.functions),
    ):
        told = str(share) if share is not None else f"not measured: {strength.unknown.get(key, 'unknown')}"
        if share is not None and not share.whole:
            told = share.note or "nothing of that kind"
        elif share is not None and share.note:
            told += f" ({one_line(share.note)})"
        yield f"  {name}: {told}"
        if share is not None:
            mark = "alive" if key == "mutants" else "not"
            yield from merged(f"      {mark}: {one_line(text, 300)}" for text in share.missing)[0][:_SHOWN_ALIVE]
    if v.necessity is not None:
        yield from _necessity_lines(v.necessity)
    for text in strength.short:
        yield f"  to the next grade: {one_line(text)}"


def _necessity_lines(necessity: Necessity) -> Iterator[str]:
    if necessity.note:
        yield f"  parts that the repaired tests need: {one_line(necessity.note)}"
        return
    needed = necessity.asked - len(necessity.unneeded)
    more = f" ({necessity.parts - necessity.asked} of {necessity.parts} not tried)" * (
        necessity.parts > necessity.asked
    )
    yield f"  parts that the repaired tests need: {needed} of {necessity.asked}{more}"
    for part in necessity.unneeded[:_SHOWN_ALIVE]:
        yield f"      not needed: {part.path}:{part.line}: {one_line(part.text, 300)}"
    for part in necessity.alternatives[:_SHOWN_ALIVE]:
        yield f"      one of several, needed: {part.path}:{part.line}: {one_line(part.text, 300)}"
    if necessity.example:
        yield f"      because of it: {one_line(necessity.example, 300)}"
