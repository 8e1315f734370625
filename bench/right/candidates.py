"""Plausible patches as files: what a search found, kept so that labels and signals are made without searching.

They hold code of the projects and stay in the work folder; none of them is part of this repository.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.domain.edit import Candidate, Edit, EditEffect, FileChange, Patch, Scope, Splice
from localagent.domain.paths import RepoPath

SCHEMA = "localagent-bench-right-candidates-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What one search found. `verified` programs ran; the task ended with `outcome`, and took `chosen` or none."""

    name: str
    candidates: tuple[Candidate, ...]
    verified: int
    outcome: str
    chosen: int | None
    seconds: float


def save(path: Path, found: Found) -> None:
    """One file per fact."""
    sources: dict[str, str] = {}
    for candidate in found.candidates:
        sources.update({str(c.path): _text(c.before) for c in candidate.patch.changes})
    told = {
        "schema": SCHEMA,
        "name": found.name,
        "verified": found.verified,
        "outcome": found.outcome,
        "chosen": found.chosen,
        "seconds": found.seconds,
        "sources": sources,
        "candidates": [_candidate(c) for c in found.candidates],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told, indent=1), encoding="utf-8")


def load(path: Path) -> Found:
    """What `save` wrote."""
    told = json.loads(path.read_text("utf-8"))
    if told["schema"] != SCHEMA:
        raise ValueError(f"{path}: schema {told['schema']!r}")
    sources = {RepoPath(p): _bytes(text) for p, text in told["sources"].items()}
    return Found(
        name=told["name"],
        candidates=tuple(_read(c, sources) for c in told["candidates"]),
        verified=told["verified"],
        outcome=told["outcome"],
        chosen=told["chosen"],
        seconds=told["seconds"],
    )


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "number": candidate.number,
        "cost": candidate.cost,
        "round": candidate.round,
        "parent": candidate.parent,
        "model_score": candidate.model_score,
        "after": {str(c.path): _text(c.after) for c in candidate.patch.changes},
        "edits": [_edit(e) for e in candidate.edits],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    scope = edit.scope
    return {
        "path": str(edit.path),
        "splices": [[s.start, s.end, _text(s.text)] for s in edit.splices],
        "operator": edit.operator,
        "line": edit.line,
        "end_line": edit.end_line,
        "prior": edit.prior,
        "note": edit.note,
        "effects": sorted(edit.effects),
        "scope": None if scope is None else {name: getattr(scope, name) for name in Scope.__dataclass_fields__},
    }


def _read(told: Mapping[str, Any], sources: Mapping[RepoPath, bytes]) -> Candidate:
    changes = sorted((RepoPath(p), _bytes(text)) for p, text in told["after"].items())
    return Candidate(
        number=told["number"],
        patch=Patch(changes=tuple(FileChange(path=p, before=sources[p], after=text) for p, text in changes)),
        edits=tuple(
            Edit(
                path=RepoPath(e["path"]),
                splices=tuple(Splice(start=s, end=t, text=_bytes(text)) for s, t, text in e["splices"]),
                operator=e["operator"],
                line=e["line"],
                end_line=e["end_line"],
                prior=e["prior"],
                note=e["note"],
                effects=frozenset(EditEffect(name) for name in e.get("effects", ())),
                scope=None if e["scope"] is None else Scope(**e["scope"]),
            )
            for e in told["edits"]
        ),
        cost=told["cost"],
        round=told["round"],
        parent=told["parent"],
        model_score=told["model_score"],
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
