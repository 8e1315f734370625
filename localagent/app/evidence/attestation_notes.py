"""An attestation as a git note: proposed or written for a commit that holds the patch, read back and verified."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from localagent.app.evidence.attested_patch import attested_facts
from localagent.app.evidence.task_evidence import attest, recorded, recorded_facts
from localagent.app.settings import Settings
from localagent.domain.edit import digest_of
from localagent.errors import AnswerIsNo
from localagent.record.attest.bundle import Attested, verify_bundle
from localagent.record.attest.dsse import NotVerified, Signer
from localagent.record.attest.statement import diff_name, subject_paths
from localagent.record.audit.entry import AuditKind
from localagent.record.store import TaskRecord
from localagent.repo.commit_tree import commit_of
from localagent.repo.git import Git
from localagent.repo.git_notes import REF, command, read_note, unlike, write_note


@dataclass(frozen=True, kw_only=True, slots=True)
class AttestationNote:
    """A signed bundle, the commit that it is about, and the command that would hang it there."""

    commit: str
    bundle: bytes
    repo: Path

    def command(self, file: Path) -> str:
        """For a person to type, with the bundle in `file`."""
        return command(Git(self.repo, {}), file, self.commit)


def noted(settings: Settings, record: TaskRecord, signer: Signer, repo: Path, revision: str) -> AttestationNote:
    """Attest a patch for a commit that holds it; the repository is only read. AnswerIsNo for any other commit."""
    git = Git(repo, {})
    commit = commit_of(git, revision, option="--note")
    kept, _, mine = recorded_facts(settings, record)
    facts = attested_facts(record, kept, mine)
    if other := unlike(git, commit, {(file["path"],): file["after"] for file in facts["files"]}):
        raise AnswerIsNo(
            f"commit {commit[:12]} does not hold the patch of task {record.id}: {', '.join(other[:3])} is another",
            remedy="apply the patch, commit it, and name that commit",
        )
    return AttestationNote(commit=commit, bundle=attest(settings, record, signer), repo=repo)


def write(settings: Settings, record: TaskRecord, note: AttestationNote) -> None:
    """Hang the note on its commit, on the record before and after."""
    data = {
        "task": record.id,
        "repo": str(note.repo),
        "commit": note.commit,
        "bundle": digest_of(note.bundle),
        "by": os.getuid(),
    }
    with recorded(settings, AuditKind.NOTING, AuditKind.NOTED, data):
        write_note(Git(note.repo, {}), note.commit, note.bundle)


def verified(
    repo: Path, revision: str, keys: Mapping[str, Ed25519PublicKey], patch: bytes | None
) -> tuple[Attested, str]:
    """What the note of a commit says, once it holds and the commit holds what it is about; and the commit."""
    git = Git(repo, {})
    commit = commit_of(git, revision, option="--note")
    bundle = read_note(git, commit)
    if bundle is None:
        raise AnswerIsNo(
            f"commit {commit[:12]} has no note below {REF}",
            remedy=f"git fetches notes only when asked: `git fetch origin {REF}:{REF}`",
        )
    found = verify_bundle(bundle, keys, patch=patch)
    files = {subject_paths(n): digest for n, digest in found.subjects.items() if n != diff_name(found.task)}
    if other := unlike(git, commit, files):
        raise NotVerified(
            f"the note is about another commit: {', '.join(other[:3])} of {commit[:12]} is not as attested"
        )
    return found, commit
