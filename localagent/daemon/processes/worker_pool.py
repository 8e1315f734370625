"""Starts a worker for each task as there is room, and settles what each left. Nothing here blocks for long.

A worker that does not end when told is killed with everything of its session; jails end with their launcher.
"""

import logging
import os
import signal
import socket
import struct
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from localagent.app.settings import Settings
from localagent.daemon.processes.instruction_task import forget_sessions
from localagent.daemon.processes.recorder_service import RecorderElsewhere
from localagent.daemon.processes.shared_process import SupervisedProcess, order_of_settings
from localagent.daemon.processes.spawn import start_process
from localagent.daemon.processes.worker import PATIENCE_SECONDS, STOPPED
from localagent.daemon.store.approval_store import mark_recorded, untold
from localagent.daemon.store.leases import Lease, LeaseEnded, approvals, cancelled, release, settle, take, waiting
from localagent.daemon.store.task_store import Rows
from localagent.domain.guard import guard_of
from localagent.errors import AnswerIsNo, CannotEnforce
from localagent.jail.files.workspace import remove_tree
from localagent.protocol.task_order import TaskOrder
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.remote_log import APPROVED_BY, ask_recorder

WORK = "work"
TERM_SECONDS = 20.0
RECORD_SECONDS = 10  # for the recorder to confirm an approval, and until it is asked again
SLACK_SECONDS = 300.0  # beyond a task's own budget: its baseline, its full check
_log = logging.getLogger("localagent.daemon")


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """How many workers there are, and the files that say what each of them may do.

    `recorder` is the socket of a recorder that somebody else starts; None: one of the daemon's own.
    """

    workers: int
    configuration: Path
    policy: Path
    recorder: Path | None = None


@dataclass(slots=True)
class _Running:
    lease: Lease
    process: "subprocess.Popen[bytes]"
    place: Path
    parent: int
    until: float
    why: LeaseEnded = LeaseEnded.DIED
    told_at: float | None = None


class DaemonWorkers:
    """The workers of one daemon. `step` again and again; `drain` and then `empty`; `end` at the last."""

    def __init__(self, rows: Rows, folder: Path, settings: Settings, terms: Terms) -> None:
        self._rows, self._folder, self._settings, self._terms = rows, folder, settings, terms
        self._running: dict[str, _Running] = {}
        self._unsettled: list[tuple[Lease, LeaseEnded, str]] = []
        self._draining = False
        self._approve_at = 0.0
        cache = self._cache = settings.cache_dir.parent
        self._model = SupervisedProcess(
            "model_host", {**order_of_settings(settings), "policy": str(terms.policy)}, cache=cache
        )
        self._recorder: SupervisedProcess | RecorderElsewhere = (
            RecorderElsewhere(terms.recorder)
            if terms.recorder
            else SupervisedProcess("recorder", {"folder": str(folder)}, cache=cache)
        )

    def sweep(self) -> None:
        """Remove what workers of an earlier daemon left. They end with it; what they still hold goes a little later."""
        (self._folder / WORK).mkdir(exist_ok=True)
        (self._folder / WORK).chmod(0o711)
        self.tidy()
        forget_sessions(self._folder, self._rows)

    @property
    def empty(self) -> bool:
        """True when no worker is left and every lease was settled."""
        return not self._running and not self._unsettled

    def drain(self) -> None:
        """Start nothing more."""
        self._draining = True

    def step(self) -> None:
        """Settle those that ended, pass on what is asked of those that run, start what there is room for.

        AnswerIsNo where the database takes nothing just now; nothing is forgotten, the next step goes on.
        """
        self._give_back()
        self._model.step()
        self._recorder.step()
        for running in [x for x in self._running.values() if _ended(x.process)]:
            self._settle(running)
        self._pass_on()
        self._approve()
        while not self._draining and len(self._running) < self._terms.workers and waiting(self._rows):
            if not self._recorder.ready():
                return  # nothing is begun that cannot be put on the record
            lease = take(self._rows)
            if lease is None:
                return
            self._start(lease)

    def _approve(self) -> None:
        """Approvals go on the record, then their tasks into the queue; without an entry none of them counts."""
        if time.monotonic() < self._approve_at:
            return
        for approval in approvals(self._rows):
            if not self._on_record(
                approval.task, approval.uid, approval.by, AuditKind.APPROVED, {"what": "task", "by": approval.by}
            ):
                return
            release(self._rows, approval)
        for one in untold(self._rows):
            word, by = one.word, one.word.uid if one.withdrawn_by is None else one.withdrawn_by
            kind = AuditKind.APPROVED if one.withdrawn_by is None else AuditKind.WITHDRAWN
            data = {"what": "patch", "by": by, "patch": word.patch, "change": word.change, "task": word.task}
            if not self._on_record(word.task, one.asker, by, kind, data):
                return
            mark_recorded(self._rows, one)

    def _on_record(self, task: str, asker: int, by: int, kind: AuditKind, data: dict[str, object]) -> bool:
        """One entry about an approval; False where the recorder does not confirm it just now."""
        line = self._recorder.line({"ordered_task": task, "ordered_by": asker, APPROVED_BY: by})
        if line is None:
            return False
        try:
            with socket.socket(fileno=line) as held:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", RECORD_SECONDS, 0))
                ask_recorder(held.fileno(), kind, data)
        except AnswerIsNo as no:
            _log.error("an approval of task %s is not on the record and does not count yet: %s", task, no)
            self._approve_at = time.monotonic() + RECORD_SECONDS
            return False
        return True

    def stop(self) -> None:
        """Tell every worker to end; their tasks go back into the queue."""
        for running in self._running.values():
            self._tell(running, LeaseEnded.STOPPED)

    def end(self) -> None:
        """Kill what is left and settle it; the processes that served them end."""
        for running in list(self._running.values()):
            running.why = LeaseEnded.STOPPED if running.why is LeaseEnded.DIED else running.why
            with suppress(AnswerIsNo):  # the next daemon takes back what this one could not write
                self._settle(running)
        self._model.end()
        self._recorder.end()

    def _start(self, lease: Lease) -> None:
        place = self._folder / WORK / f"{lease.task}.{lease.token[:8]}"
        try:
            row = self._rows.find(lease.task, lease.uid)
            place.mkdir()
            place.chmod(0o711)
            hear, parent = os.pipe2(os.O_CLOEXEC)
            order: dict[str, object] = {
                "folder": str(self._folder),
                "place": str(place),
                "configuration": str(self._terms.configuration),
                "policy": str(self._terms.policy),
                **order_of_settings(self._settings),
                "lease": asdict(lease),
                "parent": hear,
            }
            process = self._with_lines(lease, order, hear, use_model=row is not None and _ranks(row.order))
        except (OSError, AnswerIsNo, CannotEnforce) as fault:
            self.tidy()
            self._unsettled.append((lease, LeaseEnded.DIED, f"its worker could not be started: {fault}"))
            self._give_back()
            return
        budget = row.order.max_seconds if row is not None else 0.0
        guard = guard_of(row.order.guard, row.order.guard_seconds).task_seconds if row is not None else 0.0
        until = time.monotonic() + 2 * budget + guard + SLACK_SECONDS + PATIENCE_SECONDS
        self._running[lease.task] = _Running(lease=lease, process=process, place=place, parent=parent, until=until)

    def _with_lines(
        self, lease: Lease, order: dict[str, object], hear: int, *, use_model: bool
    ) -> "subprocess.Popen[bytes]":
        """The worker, with its lines to recorder and model; nothing of them stays open here."""
        given = [hear]
        try:
            recorder = self._recorder.line({"ordered_task": lease.task, "ordered_by": lease.uid})
            if recorder is None:
                raise CannotEnforce("the recorder of the audit journal is not there just now")
            given.append(recorder)
            model = self._model.line({}) if use_model else None
            given += [] if model is None else [model]
            return start_process(
                "processes.worker", {**order, "recorder": recorder, "model": model}, tuple(given), self._cache
            )
        finally:
            for number in given:
                os.close(number)

    def _pass_on(self) -> None:
        wanted = cancelled(self._rows) if self._running else frozenset()
        now = time.monotonic()
        for task, running in self._running.items():
            if task in wanted:
                self._tell(running, LeaseEnded.CANCELLED)
            elif now > running.until:
                self._tell(running, LeaseEnded.DIED)
            if running.told_at is not None and now - running.told_at > TERM_SECONDS:
                _kill(running.process)

    @staticmethod
    def _tell(running: _Running, why: LeaseEnded) -> None:
        if running.told_at is None:
            running.why, running.told_at = why, time.monotonic()
            with suppress(ProcessLookupError):  # not by Popen, which would reap it where we do not look
                os.kill(running.process.pid, signal.SIGTERM)

    def _settle(self, running: _Running) -> None:
        """Everything of the worker's session ends before its lease does."""
        _kill(running.process)
        code = running.process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        why = running.why
        if code == STOPPED and why is LeaseEnded.DIED and running.told_at is not None:
            how = "took too long"
        del self._running[running.lease.task]
        os.close(running.parent)
        self.tidy()
        self._unsettled.append((running.lease, why, f"its worker {how}"))
        self._give_back()

    def _give_back(self) -> None:
        """Settle the leases of workers that are gone; what cannot be written now stays for the next time."""
        while self._unsettled:
            settle(self._rows, *self._unsettled[0])
            del self._unsettled[0]
            forget_sessions(self._folder, self._rows)

    def tidy(self) -> None:
        """Remove the folders of workers that are gone; what is still being let go of, the next time."""
        busy = {running.place for running in self._running.values()}
        for place in (self._folder / WORK).iterdir():
            if place not in busy:
                with suppress(OSError):
                    remove_tree(place)


def _ranks(order: TaskOrder) -> bool:
    """Whether the shared model process is asked: for repairs alone."""
    return order.use_model and not order.instruction


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it has ended; it is not reaped, so that its number stays its own until its session is killed."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Everything in the session of a process of ours that was not reaped yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
