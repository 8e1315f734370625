"""What is signed about a night's patches, for the files beside them: each step's task, as `attest` would say it.

Not promised: attestations of what workers of a cluster found. Their journals and keys are theirs.
"""

from typing import Any

from localagent.app.evidence.task_evidence import BUNDLE, attest, key_ring, open_signer
from localagent.app.settings import Settings
from localagent.batch.batch_report import patches_of
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import read_bounded
from localagent.record.attest.bundle import verify_bundle
from localagent.record.attest.dsse import NotVerified, Signer
from localagent.record.store import TaskRecord, TaskStore

_MOST_BYTES = 64 << 20


def signer_of(settings: Settings) -> Signer:
    """The key, opened. AnswerIsNo where there is none, UsageFault where it cannot be used."""
    signer = open_signer(settings)
    if signer is None:
        raise AnswerIsNo("--attest: there is no signing key", remedy="`localagent key new` creates one")
    return signer


def attestations(report: dict[str, Any], settings: Settings) -> tuple[dict[tuple[str, int], bytes], list[str]]:
    """Bundles by repository and number of the patch, from 1; and of which patches there is none, with the reason."""
    signer = signer_of(settings)
    found: dict[tuple[str, int], bytes] = {}
    faults: list[str] = []
    for row in report["repositories"]:
        for number, (step, diff) in enumerate(patches_of(row), 1):
            try:
                found[row["name"], number] = _attestation(str(step["task"]), diff, settings, signer)
            except (AnswerIsNo, UsageFault) as no:
                faults.append(f"{row['name']}: patch {number} is not attested: {no}")
    return found, faults


def _attestation(task: str, diff: bytes, settings: Settings, signer: Signer) -> bytes:
    """The bundle that the task left, or one made now. NotVerified where it is about another diff."""
    if not task:
        raise AnswerIsNo("it was found by an earlier version, which kept no task of it")
    try:
        record = TaskStore(settings.state_dir).open(task)
    except UsageFault as none:
        raise AnswerIsNo(f"task {task} is not here: a worker of a cluster keeps its own") from none
    keys = dict(key_ring(settings).public_keys())
    bundle = _stored_attestation(record) or attest(settings, record, signer)
    try:
        verify_bundle(bundle, keys, patch=diff)
    except NotVerified as no:
        raise NotVerified(f"what task {task} attests does not fit this patch: {no}", remedy=no.remedy) from no
    return bundle


def _stored_attestation(record: TaskRecord) -> bytes:
    """What was signed when the task ended, nothing if there was no key then."""
    try:
        return read_bounded(record.dir / BUNDLE, _MOST_BYTES)
    except FileNotFoundError:
        return b""
