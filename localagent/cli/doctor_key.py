"""What `doctor` says of the signing key: whether one signs the journal's heads here, and can without a person.

The key is opened as a task opens it. Not promised: that the same is so for another user, or for a service that systemd
hands other credentials; and that nobody copied the key.
"""

from collections.abc import Iterator

from localagent.app import Settings
from localagent.app.evidence.task_evidence import key_ring, open_signer, remembered
from localagent.errors import LocalagentError
from localagent.jail.probe.diagnose import DiagnosisRow
from localagent.jail.probe.selection import ProbeState
from localagent.record.attest.keys import CREDENTIAL, PASSPHRASE, KeyNote, PassphraseMissing

PART = "evidence"
NAME = "signing key"
_MAKE = (
    "`localagent key new` creates one; others can then verify signatures "
    "(`localagent key export`) and detect a rewritten journal"
)
_UNATTENDED = (
    "set LOCALAGENT_PASSPHRASE_FILE to a file (mode 0600) with its passphrase, or pass it as the systemd "
    f"credential {PASSPHRASE}; until then `fix` does not run"
)


def key_rows(settings: Settings) -> Iterator[DiagnosisRow]:
    """One row for the key, one for what it signed last. Neither keeps tasks from running that a fault does not."""
    try:
        note = key_ring(settings).active()
        signer = open_signer(settings) if note is not None else None
    except LocalagentError as fault:
        yield DiagnosisRow(
            part=PART, name=NAME, state=ProbeState.FAULTY, detail=_unopened(settings, fault), remedy=_mend(fault)
        )
        return
    if note is None or signer is None:
        detail = "none: the audit journal and patches are not signed"
        yield DiagnosisRow(part=PART, name=NAME, state=ProbeState.ABSENT, detail=detail, remedy=_MAKE)
        return
    yield DiagnosisRow(
        part=PART, name=NAME, state=ProbeState.WORKS, detail=f"{signer.key_id} signs, {_storage_kind(note, settings)}"
    )
    yield _signed(settings)


def _storage_kind(note: KeyNote, settings: Settings) -> str:
    """How the private part is kept."""
    if not note.created:
        return f"passed by systemd as {CREDENTIAL}"
    if note.encrypted:
        named = settings.passphrase_file is not None
        return f"encrypted; its passphrase comes {'from localagent_PASSPHRASE_FILE' if named else 'from systemd'}"
    return f"not encrypted: anyone who can read {key_ring(settings).folder} can sign"


def _unopened(settings: Settings, fault: LocalagentError) -> str:
    """Which key it is, where that can be said, and why it does not sign."""
    try:
        active = next((note for note in key_ring(settings).notes() if not note.retired), None)
    except LocalagentError:
        active = None
    which = f"{active.id}{', encrypted' if active.encrypted else ''}: " if active is not None else ""
    return f"{which}cannot be used unattended: {fault}"


def _mend(fault: LocalagentError) -> str:
    return _UNATTENDED if isinstance(fault, PassphraseMissing) or not fault.remedy else fault.remedy


def _signed(settings: Settings) -> DiagnosisRow:
    """What the key signed last of this journal."""
    try:
        last = remembered(settings)
    except LocalagentError as fault:
        remedy = fault.remedy or "`localagent audit verify` says more"
        return DiagnosisRow(part=PART, name="signed head", state=ProbeState.FAULTY, detail=str(fault), remedy=remedy)
    if last is None:
        remedy = "the next task signs it, or run `localagent audit sign`"
        return DiagnosisRow(part=PART, name="signed head", state=ProbeState.ABSENT, detail="none yet", remedy=remedy)
    detail = f"entry {last.seq}, {last.digest}"
    return DiagnosisRow(part=PART, name="signed head", state=ProbeState.WORKS, detail=detail)
