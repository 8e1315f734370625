"""Refusals of the verbs that only judge (`gate`, `verify`, `deps`), on the record: digests and words of ours alone.

A question that was answered stays answered: where the journal takes no entry, that is told beside the answer, and the
answer is the same. Not promised: that what was allowed is on the record; a patch that lands is, when it does.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from localagent.app.evidence.task_evidence import audit_log
from localagent.app.policies import OpenPolicy, open_policy
from localagent.app.settings import Settings
from localagent.domain.dependency import DependencyVerdict, Ruling
from localagent.domain.edit import digest_of
from localagent.domain.gate import Decision
from localagent.fs.atomic_files import CannotRecord, RecordDamaged
from localagent.record.audit.entry import AuditKind

_MOST = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def refused_patch(
    settings: Settings,
    what: str,
    *,
    repo: Path,
    patch: str,
    verdict: str,
    decisions: Sequence[Decision],
    policy: Path | None,
) -> str:
    """Put on the record that `what` did not let a patch in; a warning where that cannot be, else "".

    `patch` is the digest of the diff, as approvals name it.
    """
    rules = sorted({finding.rule for decision in decisions for finding in decision.findings})
    opened = open_policy(settings, policy, repo)
    return _record_refusal(
        settings, opened, what, {"repo": str(repo.resolve()), "patch": patch, "verdict": verdict}, rules
    )


def refused_names(settings: Settings, opened: OpenPolicy, answer: DependencyVerdict, rulings: Iterable[Ruling]) -> str:
    """The same for dependencies that may not come in: their names where they are names, how many in any case."""
    refused = [ruling for ruling in rulings if ruling.answer is not DependencyVerdict.ALLOWED]
    names = sorted({ruling.name for ruling in refused if _NAME.fullmatch(ruling.name)})
    data: dict[str, object] = {"verdict": answer.value, "names": names[:_MOST], "count": len(refused)}
    return _record_refusal(settings, opened, "deps", data, [])


def _record_refusal(
    settings: Settings, opened: OpenPolicy, what: str, data: dict[str, object], rules: Sequence[str]
) -> str:
    found = {"rules": list(rules[:_MOST])} if rules else {}
    entry = {"what": what, **data, **found, "policy": digest_of(opened.recorded()), "by": os.getuid()}
    try:
        audit_log(settings).append(AuditKind.REFUSED, entry)
    except (CannotRecord, RecordDamaged) as no:
        return f"this refusal is not on the record: {no}" + (f" ({no.remedy})" if no.remedy else "")
    return ""
