"""Patches that somebody else must approve, by way of the daemon: asking whose word counts, and giving one.

The daemon alone knows who asked, by the kernel's word; so a daemon that runs as whoever asks is not believed (root's
is). What it answers is parsed strictly. Not promised: that two accounts are two persons.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localagent.domain.review import PatchApproval
from localagent.errors import AnswerIsNo, InternalFault, UsageFault
from localagent.fs.atomic_files import read_bounded, write_private
from localagent.protocol.http_client import DEFAULT_SOCKET, Client
from localagent.protocol.task_order import DIGEST, TASK_ID
from localagent.record.store import TaskRecord

_NOTED = "daemon"  # in a task's folder: the socket of the daemon that worked on it
_MOST_PATH = 4096
_TEXTS = ("task", "patch", "change", "policy", "who", "reason", "at")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceApprovals:
    """The approvals that a daemon holds for patches of this user's tasks there."""

    socket: Path

    def standing(self, patch: str, change: str, repo: str) -> tuple[PatchApproval, ...]:
        """Those of others, for exactly this patch and change. CannotEnforce where no daemon can be believed."""
        if not DIGEST.fullmatch(change):
            return ()
        client = Client(self.socket, own=False)
        try:
            found = client.get(f"/v1/approvals?patch={patch}&change={change}").json()
        finally:
            client.close()
        try:
            return tuple(_approval(one, repo) for one in found["approvals"] if one["by"] != os.getuid())
        except (TypeError, KeyError, ValueError) as fault:
            raise InternalFault(f"the daemon's answer about approvals is not as agreed: {fault}") from fault


def service_of(named: Path | None, record: TaskRecord | None = None) -> ServiceApprovals | None:
    """The daemon that is named, that a task was ordered of, or the machine's; None where there is none."""
    socket = named if named is not None else noted(record) if record is not None else None
    if socket is None and DEFAULT_SOCKET.exists():
        socket = DEFAULT_SOCKET
    return None if socket is None else ServiceApprovals(socket=socket)


def note(record: TaskRecord, socket: Path) -> None:
    """Keep with a task which daemon works on it."""
    write_private(record.dir / _NOTED, os.fsencode(socket.absolute()))


def noted(record: TaskRecord) -> Path | None:
    """The daemon's socket that was kept with a task, None for a task of this process's own."""
    try:
        return Path(os.fsdecode(read_bounded(record.dir / _NOTED, _MOST_PATH)))
    except FileNotFoundError:
        return None


def refuse_remote(record: TaskRecord) -> None:
    """AnswerIsNo for a session that a daemon worked on: what came of it is here, the rest is not."""
    if noted(record) is not None:
        raise AnswerIsNo(
            f"session {record.id} was a daemon's: it can be shown and exported, not gone on with",
            remedy="order it again, and say in the instruction what was asked",
        )


def patches_of(client: Client, task: str) -> list[dict[str, Any]]:
    """A task's patches as the daemon shows them. UsageFault for what is no id."""
    if not TASK_ID.fullmatch(task):
        raise UsageFault(
            f"{task!r:.80} is no id of a task of the daemon", remedy="`localagent tasks list` shows them whole"
        )
    found = client.get(f"/v1/tasks/{task}/approvals").json()
    try:
        return [
            {
                "number": int(one["number"]),
                "verdict": str(one["verdict"]),
                "patch": str(one["patch"]),
                "change": str(one["change"]),
                "asked": [str(line) for line in one["asked"]],
                "people": [str(name) for name in one["people"]],
                "diff": str(one["diff"]),
                "approvals": [{key: str(word[key]) for key in ("who", "at", "reason")} for word in one["approvals"]],
            }
            for one in found["patches"]
        ]
    except (TypeError, KeyError, ValueError) as fault:
        raise InternalFault(f"the daemon's answer about a task's patches is not as agreed: {fault}") from fault


def speak(client: Client, task: str, patch: dict[str, Any], reason: str, *, withdraw: bool) -> dict[str, Any]:
    """Approve a patch of a task as it was shown, or take that back; what the daemon answers."""
    body = {"patch": patch["patch"], "change": patch["change"], "reason": reason}
    found = client.post(f"/v1/tasks/{task}/approvals" + ("/withdraw" if withdraw else ""), body).json()
    if not isinstance(found, dict) or not isinstance(found.get("recorded"), bool):
        raise InternalFault("the daemon's answer to an approval is not as agreed")
    return found


def _approval(found: dict[str, Any], repo: str) -> PatchApproval:
    texts = {key: found[key] for key in _TEXTS}
    if not all(isinstance(text, str) for text in texts.values()) or not TASK_ID.fullmatch(texts["task"]):
        raise ValueError("a text that is none")
    return PatchApproval(**texts, repo=repo, findings="\n".join(str(line) for line in found["asked"]))
