"""What the audit journal says of a span of time, as JSON: tasks, patches, approvals, refusals, limits, keys, chain.

Says only what entries say, and whether they hold: nothing is read but the journal, so a report needs no task's folder.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from localagent.record.attest.keys import KeyNote
from localagent.record.audit.clock import set_back
from localagent.record.audit.clock import since as from_day
from localagent.record.audit.entry import AuditKind, Entry
from localagent.record.audit.heads import UNVERIFIABLE, SignedHead
from localagent.record.audit.verify_chain import AuditCheck
from localagent.record.journal import JournalStatus

SCHEMA = "localagent/audit-report/1"
_LANDINGS = {
    *(AuditKind.APPLYING, AuditKind.APPLIED, AuditKind.UNDOING, AuditKind.UNDONE, AuditKind.REFUSED),
    *(AuditKind.NOTING, AuditKind.NOTED),
}
_JUDGED = frozenset({"gate", "verify", "deps"})  # verbs that only judge: what they refuse is no landing
_NOTABLE = {
    AuditKind.TORN_LINE_CUT,
    AuditKind.SET_ASIDE,
    AuditKind.SEGMENT,
    AuditKind.KEY_MADE,
    AuditKind.KEY_ROTATED,
}


def audit_report(
    check: AuditCheck,
    heads: Sequence[SignedHead],
    keys: Sequence[KeyNote],
    *,
    since: date,
    fault: str = "",
    unknown: str = "",
) -> dict[str, Any]:
    """The report from `since` (UTC) on. `fault`: why signed heads do not hold; `unknown`: whose key is not known."""
    entries = from_day(check.entries, since)
    tasks = _tasks(entries)
    return {
        "schema": SCHEMA,
        "since": f"{since:%Y-%m-%d}",
        "chain": {
            **_chain(check, heads, fault, unknown),
            "clock_set_back": [asdict(place) for place in set_back(check.entries)],
        },
        "keys": [{"id": k.id, "made": k.created, "retired": k.retired, "encrypted": k.encrypted} for k in keys],
        "entries": len(entries),
        "totals": _totals(entries, tasks),
        "tasks": tasks,
        "landings": [_entry_json(e) for e in entries if e.kind in _LANDINGS and not _is_judged(e)],
        "refusals": [_entry_json(e) for e in entries if _is_judged(e)],
        "approvals": [_entry_json(e) for e in entries if e.kind in (AuditKind.APPROVED, AuditKind.WITHDRAWN)],
        "replays": [_entry_json(e) for e in entries if e.kind is AuditKind.REPLAYED],
        "notable": [_entry_json(e) for e in entries if e.kind in _NOTABLE],
    }


def _chain(check: AuditCheck, heads: Sequence[SignedHead], fault: str, unknown: str) -> dict[str, Any]:
    newest = heads[-1] if heads else None
    standing = JournalStatus.ALTERED.value if fault else check.standing.value
    return {
        "standing": UNVERIFIABLE if unknown else standing,
        "entries": len(check.entries),
        "head": {"entry": check.tip.seq, "digest": check.tip.digest},
        "place": None if check.place is None else str(check.place),
        "reason": fault or unknown or check.reason,
        "signed_heads": len(heads),
        "newest_signed": None if newest is None else {"entry": newest.seq, "at": newest.at, "key": newest.key_id},
    }


def _is_judged(entry: Entry) -> bool:
    """Whether it is the refusal of a verb that only judges."""
    return entry.kind is AuditKind.REFUSED and str(entry.data.get("what")) in _JUDGED


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {"entry": entry.seq, "at": entry.at, "kind": entry.kind.value, **_plain(entry.data)}


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """An entry's data without names that the report gives itself."""
    return {name: value for name, value in data.items() if name not in ("entry", "at", "kind")}


def _tasks(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """One row a task, in the order they began in this span; `outcome` unfinished while no end is on the record."""
    rows: dict[str, dict[str, Any]] = {}
    for entry in entries:
        task = entry.data.get("task")
        if not isinstance(task, str) or entry.kind not in _OF_TASKS:
            continue
        row = rows.setdefault(task, _row(task))
        data = entry.data
        match entry.kind:
            case AuditKind.TASK_STARTED:
                row.update(started=entry.at, repo=str(data.get("repo")), by=data.get("by"), builder=_builder(data))
            case AuditKind.TASK_ENDED:
                row.update({name: _fitting(data.get(name), row[name]) for name in _ENDED}, ended=entry.at)
            case AuditKind.ATTESTED:
                row["attested"] = True
            case AuditKind.APPLIED:
                row["applied"] = entry.at
            case AuditKind.UNDONE:
                row["undone"] = entry.at
    return list(rows.values())


def _builder(data: Mapping[str, Any]) -> str:
    """Who made the patch; entries of earlier versions do not say, and then it was `fix`."""
    origin = data.get("origin")
    return str(origin.get("builder", "fix")) if isinstance(origin, Mapping) else "fix"


def _fitting(value: object, default: object) -> object:
    """A value of the default's kind, else the default: the chain says who wrote an entry, not that it makes sense."""
    wanted = {type(None): str | int, dict: Mapping}.get(type(default), type(default))
    return value if isinstance(value, wanted) else default


# A word of a person names the task that was ordered, which at a daemon is not the name of the attempt at it.
_OF_TASKS = frozenset(
    {AuditKind.TASK_STARTED, AuditKind.TASK_ENDED, AuditKind.ATTESTED, AuditKind.APPLIED, AuditKind.UNDONE}
)
_ENDED = ("outcome", "exit", "jail", "policy", "model", "patch", "verified", "denied", "limits_hit")


def _row(task: str) -> dict[str, Any]:
    return {
        "task": task,
        "builder": "fix",
        "repo": "",
        "by": None,
        "started": "",
        "ended": "",
        "outcome": "unfinished",
        "exit": None,
        "jail": {},
        "policy": "",
        "model": {},
        "patch": None,
        "verified": 0,
        "denied": {},
        "limits_hit": {},
        "attested": False,
        "applied": "",
        "undone": "",
    }


def _totals(entries: Sequence[Entry], tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kinds = Counter(e.kind for e in entries)
    return {
        "tasks": len(tasks),
        "outcomes": _sorted(Counter(str(t["outcome"]) for t in tasks)),
        "by_day": dict(sorted(Counter(str(t["started"])[:10] for t in tasks if t["started"]).items())),
        "refused_candidates": _summed(t["denied"] for t in tasks),
        "limits_hit": _summed(t["limits_hit"] for t in tasks),
        "levels": _sorted(Counter(str(t["jail"].get("level") or "none") for t in tasks if t["ended"])),
        "candidates": sum(t["verified"] for t in tasks if isinstance(t["verified"], int)),
        "attested": sum(bool(t["attested"]) for t in tasks),
        "applied": kinds[AuditKind.APPLIED],
        "undone": kinds[AuditKind.UNDONE],
        "refused_landings": kinds[AuditKind.REFUSED] - sum(map(_is_judged, entries)),
        "refusals": sum(map(_is_judged, entries)),
        "approved": kinds[AuditKind.APPROVED],
        "withdrawn": kinds[AuditKind.WITHDRAWN],
    }


def _summed(parts: Iterable[Any]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, Mapping):
            total.update({str(k): v for k, v in part.items() if isinstance(v, int)})
    return _sorted(total)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
