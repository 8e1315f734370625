"""Plausible candidates and what they do, for tests of the choice and of its doubts."""

from collections.abc import Mapping

from localagent.domain.behaviour import Behaviours
from localagent.domain.edit import Candidate, Edit, EditEffect, FileChange, Patch, Splice
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.confidence_model import ConfidenceModel
from localagent.repair.acceptance.ranking import RankedCandidate

M = RepoPath("m.py")


def edit(*effects: EditEffect) -> Edit:
    splice = Splice(start=0, end=1, text=b"b")
    return Edit(path=M, splices=(splice,), operator="o", line=1, end_line=1, prior=0, effects=frozenset(effects))


def candidate(number: int, cost: float, *edits: Edit) -> Candidate:
    change = FileChange(path=M, before=b"a\n", after=b"b\n")
    return Candidate(number=number, patch=Patch(changes=(change,)), edits=edits, cost=cost)


def near(rows: Mapping[int, tuple[str, ...]]) -> Behaviours:
    width = max((len(r) for r in rows.values()), default=0)
    return Behaviours(rows=rows, kept=(True,) * width, seen=(False,) * width)


def alone(made: Candidate) -> list[RankedCandidate]:
    return [RankedCandidate(candidate=made, cost=0.0, row=())]


SWAP, COLON = edit(EditEffect.MOVES_BOUNDARY), edit(EditEffect.MENDS_SYNTAX)


def standings(*costs: float, row: str = "") -> list[RankedCandidate]:
    return [
        RankedCandidate(candidate=candidate(n, c, SWAP), cost=c, row=(row or f"ok:{n}",))
        for n, c in enumerate(costs, start=1)
    ]


NO_OPINION = ConfidenceModel(name="none", bias=2.5, weights={}, centres={}, order={}, models=frozenset())
"""A confidence that is the same for whatever is asked about, and changes no order."""
