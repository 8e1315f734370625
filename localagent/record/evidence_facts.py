"""What is known for certain about an ended task, in figures and digests: the file `evidence.json` beside the report.

Attestations are made from it alone. The audit journal carries its digest, so a later change of it shows.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from localagent.domain.confidence import Confidence
from localagent.domain.edit import Candidate, Patch, digest_of
from localagent.domain.outcome import FullResult
from localagent.domain.task import Task, TaskResult
from localagent.fs.atomic_files import RecordDamaged
from localagent.report.confidence_text import short
from localagent.report.strength_text import strength_event
from localagent.report.task_report import compared_json, confidence_json, model_json
from localagent.text.strict_json import load

SCHEMA = "localagent/evidence/1"


class Builder(StrEnum):
    """Who made a task's patch: the search, rules that answer findings, the hook's repairs, or a model."""

    FIX = "fix"
    REMEDIATE = "remediate"
    HOOK = "hook"
    DO = "do"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOrigin:
    """What a patch was made for. `findings`: digests of the logs that name them, none where we looked ourselves.

    `below`: digests of the patches that it goes on top of; they are part of what was tested, and not of it. `rules`: of
    the hook alone, those that it repaired by.
    """

    builder: Builder = Builder.FIX
    findings: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """As JSON values; nothing of what is not so."""
        found = {"findings": list(self.findings), "below": list(self.below), "rules": list(self.rules)}
        return {"builder": self.builder.value, **{name: value for name, value in found.items() if value}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What a task ran with that neither its request nor its result says. `policy` is the digest of the file's bytes."""

    version: str
    started: str
    ended: str
    policy: str
    policy_name: str
    least_level: str
    use_model: bool
    model: str
    backend: str
    tools: Mapping[str, str]
    ways: tuple[str, ...] = ()
    origin: TaskOrigin = field(default_factory=TaskOrigin)


def facts_of(
    task: Task,
    result: TaskResult,
    setting: Setting,
    diff: bytes,
    journal: tuple[int, str],
    *,
    proposed: Sequence[bytes] = (),
) -> dict[str, Any]:
    """As JSON values. `journal`: lines and tip of the task's own journal. `proposed`: the proposals' diffs."""
    full, baseline, patch = result.full, result.baseline, result.patch
    unknown = itertools.repeat(None)
    others = itertools.chain(result.proposed, unknown), proposed, itertools.chain(result.confidences, unknown)
    return {
        "schema": SCHEMA,
        "task": task.id,
        "version": setting.version,
        "origin": setting.origin.json(),
        "started": setting.started,
        "ended": setting.ended,
        "repo": task.repo,
        "asked": _asked(task, setting),
        "outcome": result.verdict.value,
        "exit": result.exit,
        "snapshot": result.snapshot_digest,
        "policy": {"name": setting.policy_name, "digest": setting.policy, "least_level": setting.least_level},
        "model": model_json(result),
        "threads": result.threads,
        "jail": {"backend": result.jail_backend, "level": result.jail_level},
        "python": baseline.python if baseline else "",
        "tools": {**setting.tools, **({"pytest": baseline.pytest} if baseline and baseline.pytest else {})},
        "patch": None if patch is None else patch.digest,
        "diff": digest_of(diff) if diff else None,
        "files": _files(patch),
        "proposals": [_proposal(n, *p) for n, p in enumerate(zip(result.proposals, *others, strict=False), 1)],
        **compared_json(full),
        "flaky": list(baseline.flaky) if baseline else [],
        "checks": dict(result.checks) or (dict(full.checks) if full else {}),
        "strength": None if result.assessment is None else strength_event(result.assessment),
        "confidence": short(confidence_json(result.confidence)),
        "enumerated": result.enumerated,
        "denied": dict(sorted(result.denied.items())),
        "verified": result.verified,
        "plausible": result.plausible,
        "limits_hit": dict(sorted(result.limits_hit.items())),
        "journal": {"lines": journal[0], "tip": journal[1]},
    }


def _asked(task: Task, setting: Setting) -> dict[str, Any]:
    """What the task was asked for, and with what."""
    return {
        "tests": list(task.tests),
        "checks": list(task.checks),
        "text": digest_of(task.text.encode("utf-8", "surrogateescape")) if task.text else "",
        "seed": task.seed,
        "python": task.python,
        "max_candidates": task.budget.max_candidates,
        "max_seconds": task.budget.max_seconds,
        "jobs": task.budget.jobs,
        "choosing": task.choosing.value,
        **_guard_facts(task, setting),
        **({"min_confidence": task.min_confidence} if task.min_confidence else {}),
        "use_model": setting.use_model,
        "model": setting.model,
        "backend": setting.backend,
        "ways": list(setting.ways),
    }


def _guard_facts(task: Task, setting: Setting) -> dict[str, Any]:
    """The guard that was asked for; only the search has one."""
    if setting.origin.builder is not Builder.FIX:
        return {}
    return {"guard": list(task.guard.specs), "guard_seconds": task.guard.seconds}


def _files(patch: Patch | None) -> list[dict[str, str]]:
    changed = () if patch is None else patch.changes
    return [{"path": c.path, "before": digest_of(c.before), "after": digest_of(c.after)} for c in changed]


def _proposal(
    number: int, candidate: Candidate, full: FullResult | None, diff: bytes, confidence: Confidence | None
) -> dict[str, Any]:
    """What is attested when a person takes it, no test where none ran: named as in an accepted patch's facts."""
    return {
        "number": number,
        "patch": candidate.patch.digest,
        "diff": digest_of(diff),
        "files": _files(candidate.patch),
        **compared_json(full),
        "checks": dict(full.checks) if full else {},
        "confidence": short(confidence_json(confidence)),
    }


def parse_facts(data: bytes, where: str) -> dict[str, Any]:
    """Facts as they were written. RecordDamaged for anything else."""
    try:
        found = load(data)
    except ValueError as error:
        raise RecordDamaged(f"{where} is damaged: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise RecordDamaged(f"{where} is not the evidence of a task")
    return found
