"""A verification in the shape of a patch's review, so that SARIF, JUnit and the HTML page say it as they say `gate`'s.

What was asked beside the gates (tests, tools, old against new, strength) stands as further gates with rules `verify-*`.
"""

from collections.abc import Iterator
from dataclasses import replace

from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.paths import RepoPath
from localagent.domain.review import PatchReview, PatchVerdict, RuleText, Section
from localagent.domain.verification import PersonReason, Verification, VerifyVerdict
from localagent.report.verify_report import headline

TOOL = "localagent verify"
_MOST = 200


def _rule(id_: str, severity: Severity, why: str, remedy: str, *, person: bool = False) -> RuleText:
    return RuleText(id=id_, severity=severity, why=why, remedy=remedy, asks_person=person)


_CONFIRM = "leave the examples as they are, or confirm them"
_MEND, _LOOK, _TEST = "fix the patch", "check the input", "add tests for what the patch changes"
_RULES = (
    _rule("verify-pass-to-fail", Severity.HIGH, "a test that passed before the patch fails with it", _MEND),
    _rule("verify-still-failing", Severity.HIGH, "a test that fails before the patch fails with it", _MEND),
    _rule("verify-run", Severity.HIGH, "the tests do not confirm the patch", "see the message"),
    _rule("verify-tool", Severity.MEDIUM, "ruff or mypy has new findings", "fix the findings"),
    _rule("verify-strength", Severity.MEDIUM, "the evidence is weaker than required", _TEST),
    _rule("verify-refuted", Severity.HIGH, "an input or a test contradicts the claim", _MEND),
    _rule("verify-claim", Severity.LOW, "the patch does more than it claims", _LOOK),
    _rule("verify-unproven", Severity.MEDIUM, "there is no evidence for the patch", _TEST),
    _rule("verify-answer", Severity.HIGH, "no verdict could be reached", "see the message"),
    _rule(
        "verify-differs",
        Severity.LOW,
        "old and new return different results, and no test requires it",
        _LOOK,
        person=True,
    ),
    _rule("verify-contract", Severity.HIGH, "a contract that was confirmed before is broken", _MEND),
    _rule("verify-contract-asked", Severity.LOW, "a contract is broken or gone", _LOOK, person=True),
    _rule("verify-doctest", Severity.LOW, "what a doctest expects is altered", _CONFIRM, person=True),
    _rule("verify-property", Severity.LOW, "a property that held before is broken", _LOOK, person=True),
)
_MAPPED = {VerifyVerdict.NEEDS_PERSON: PatchVerdict.NEEDS_PERSON}


def as_review(v: Verification) -> PatchReview:
    """The gates' decisions and those of everything that was asked after them."""
    base = v.review
    decisions = [*(_approved(base) if base is not None else ()), *_decisions(v)]
    if not v.verdict.yes and all(d.answer is Allow.ALLOW for d in decisions):
        decisions.append(Decision(gate="tests", answer=Allow.ERROR, findings=(_finding("verify-answer", v.reason),)))
    rules = {**(base.rules if base is not None else {}), **{rule.id: rule for rule in _RULES}}
    asked = ("contracts",) if v.contracts is not None else ()
    gates = tuple(
        dict.fromkeys((*(base.gates if base is not None else ()), "tests", "tools", "behaviour", *asked, "strength"))
    )
    return PatchReview(
        verdict=PatchVerdict.ALLOWED if v.verdict.yes else _MAPPED.get(v.verdict, PatchVerdict.REFUSED),
        policy=base.policy if base is not None else "",
        digest=v.patch,
        gates=gates,
        decisions=tuple(decisions),
        rules=rules,
        files=base.files if base is not None else (),
        not_asked=base.not_asked if base is not None else {},
        patch_line=base.patch_line if base is not None else 0,
        remedy=base.remedy if base is not None else "",
        tool=TOOL,
        title=f"{headline(v)}: {v.reason}" + (f" (claim: {v.claim})" if v.claim is not None else ""),
        exit_code=v.exit,
        sections=tuple(_sections(v)),
    )


def _approved(base: PatchReview) -> tuple[Decision, ...]:
    """The gates' decisions; what a person approved is allowed."""
    if base.approval is None:
        return base.decisions
    return tuple(replace(decision, answer=Allow.ALLOW) for decision in base.decisions)


def _finding(rule: str, message: str, path: RepoPath | None = None) -> Finding:
    severity = next(r.severity for r in _RULES if r.id == rule)
    return Finding(rule=rule, severity=severity, path=path, line=0, message=message)


def _decision(gate: str, found: list[Finding], *, allow: bool = False) -> Decision:
    answer = Allow.ALLOW if allow or not found else Allow.DENY
    return Decision(gate=gate, answer=answer, findings=tuple(found[:_MOST]))


def _decisions(v: Verification) -> Iterator[Decision]:
    full = v.full
    if full is not None:
        found = [_finding("verify-pass-to-fail", f"{name} passed before") for name in full.pass_to_fail]
        left = set(v.left_alone)
        found += [_finding("verify-still-failing", f"{n} still fails") for n in full.still_failing if n not in left]
        said = ("still failing", "breaks tests or checks", "ruff ", "mypy ")
        found += [_finding("verify-run", reason) for reason in full.reasons if not reason.startswith(said)]
        found += [_finding("verify-run", f"{name} is gone") for name in v.removed]
        yield _decision("tests", found)
        yield _decision("tools", [_finding("verify-tool", r) for r in full.reasons if r.startswith(("ruff ", "mypy "))])
    near = v.differential
    if near is not None:
        found = [
            _finding("verify-differs", f"{d.call}: {d.old} -> {d.new} ({d.origin})", d.path) for d in near.differences
        ]
        found += [
            _finding(
                "verify-property", f"{b.name} held on {b.held} inputs, not on {b.call}: {b.old} -> {b.new}", b.path
            )
            for b in near.broken_properties
        ]
        yield _decision("behaviour", found, allow=v.asked is not PersonReason.BEHAVIOUR)
    against = [
        _finding(
            "verify-contract" if b.held else "verify-contract-asked", f"{c.function}: {b.contract}: {b.found}", c.path
        )
        for c in v.contracts or ()
        for b in c.broken
    ]
    against += [
        _finding("verify-contract-asked", f"{c.function} no longer has the contract {text}", c.path)
        for c in v.contracts or ()
        for text in c.dropped
    ]
    if v.contracts is not None:
        yield _decision("contracts", against)
    if v.verdict is VerifyVerdict.TOO_WEAK:
        yield _decision("strength", [_finding("verify-strength", v.reason)])
    elif v.verdict is VerifyVerdict.UNPROVEN:
        yield _decision("strength", [_finding("verify-unproven", v.reason)])
    elif v.verdict is VerifyVerdict.REFUTED:
        yield _decision("strength", [_finding("verify-refuted", v.reason)])
    elif v.strength is not None:
        yield _decision("strength", [_finding("verify-claim", text) for text in v.strength.limits], allow=True)
    if v.asked is PersonReason.DOCTESTS:
        yield _decision("tests", [_finding("verify-doctest", v.reason)])


def _sections(v: Verification) -> Iterator[Section]:
    full, strength, near = v.full, v.strength, v.differential
    if full is not None:
        rows = [
            ("fail-to-pass", full.fail_to_pass), ("pass-to-pass", full.pass_to_pass),
            ("pass-to-fail", full.pass_to_fail), ("still failing", full.still_failing),
            ("added", v.added), ("removed", v.removed),
        ]  # fmt: skip
        told = [(name, str(len(ids)), ", ".join(ids[:20])) for name, ids in rows]
        yield Section(title="tests", head=("comparison", "how many", "among them"), rows=tuple(told))
    if strength is not None:
        parts = (("lines", strength.lines), ("mutants", strength.mutants), ("functions", strength.functions))
        told = [
            (name, str(share) if share is not None else strength.unknown.get(name, ""),
             "; ".join(share.missing) if share is not None else "")
            for name, share in parts
        ]  # fmt: skip
        told += [("against the claim", text, "") for text in strength.limits]
        told += [("the tests are weak here", text, "") for text in strength.weak]
        yield Section(
            title=f"strength {strength.grade} of the claim: {strength.claim}",
            head=("part", "measured", "missing"),
            rows=tuple(told),
        )
    if near is not None and near.differences:
        rows_ = tuple(
            (d.call, d.old, d.new, d.origin.value, "explained" if d.explained else d.effect.value)
            for d in near.differences
        )
        yield Section(title="old against new", head=("input", "old", "new", "where from", "kind"), rows=rows_)
    if near is not None and near.broken_properties:
        broken = tuple((b.function, b.name, b.call, f"{b.old} -> {b.new}") for b in near.broken_properties)
        yield Section(title="broken properties", head=("function", "property", "input", "old, new"), rows=broken)
