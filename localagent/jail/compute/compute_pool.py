"""Hands files' bytes to confined children, one function for all of them, and takes what they answer.

The parent reads the files; a child sees nothing but bytes. Each child does one job at a time. One that dies of a job
(time, memory, a crash of Python's parser) is replaced, and the job has failed with that reason. No answer is trusted
beyond being JSON: whoever asked checks its shape. Not promised: the order of the answers.
"""

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from localagent.runner.compute_child import read_frame, write_frame

JOB_SECONDS = 10.0
JOB_BYTES = 1 << 30
_PACKAGE = Path(__file__).resolve().parents[3]
_START = (
    "import sys; sys.path += {roots!r}; import {imports}; from localagent.runner import compute_child, landlock;"
    " compute_child.main(sys.argv[1:], landlock.confine)"
)
_WAITING = 64  # answers that may wait to be taken, so that memory stays bounded


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One file to compute on: the function gets `argument` and the file's bytes.

    `read` gives them, or raises OSError, in a thread of the pool.
    """

    path: str
    argument: str
    read: Callable[[], bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobAnswer:
    """What came of a job: `value` is the JSON that the function returned; None, and why, where it failed."""

    path: str
    data: bytes = b""
    value: object = None
    failed: str = ""


class ComputePool:
    """Children that run `function` ("module:name") on (argument, bytes).

    They can read Python's library, localagent, and the folders of `packages`, whose modules are imported before a child
    is confined: native ones need libraries of the system.
    """

    def __init__(
        self,
        function: str,
        *,
        workers: int,
        seconds: float = JOB_SECONDS,
        limit_bytes: int = JOB_BYTES,
        packages: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        roots = list(dict.fromkeys((str(_PACKAGE), *map(str, packages.values()))))
        self._argv = (
            sys.executable, "-I", "-S", "-c", _START.format(roots=roots, imports=", ".join(packages) or "sys"),
            function, str(seconds), str(limit_bytes),
        )  # fmt: skip
        self._workers, self._seconds = workers, seconds

    def answers(self, jobs: Iterable[Job]) -> Iterator[JobAnswer]:
        """Every job's answer, as they come. Children start with the first job and end with the last."""
        waiting: queue.Queue[JobAnswer | BaseException | None] = queue.Queue(_WAITING)
        source, lock, stop = iter(jobs), threading.Lock(), threading.Event()

        def take() -> Job | None:
            with lock:
                return None if stop.is_set() else next(source, None)

        def work() -> None:
            child = _Child(self._argv, self._seconds)
            try:
                while (job := take()) is not None:
                    waiting.put(child.answer(job))
            except BaseException as error:  # noqa: BLE001 - raised again where the answers are taken
                waiting.put(error)
            finally:
                child.end()
                waiting.put(None)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(self._workers)]
        for thread in threads:
            thread.start()
        try:
            yield from self._taken(waiting, len(threads))
        finally:
            stop.set()
            while any(thread.is_alive() for thread in threads):
                _drain(waiting)
                threads[0].join(0.01)

    @staticmethod
    def _taken(waiting: "queue.Queue[JobAnswer | BaseException | None]", running: int) -> Iterator[JobAnswer]:
        while running:
            answer = waiting.get()
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                running -= 1
            else:
                yield answer


def _drain(waiting: "queue.Queue[JobAnswer | BaseException | None]") -> None:
    while True:
        try:
            waiting.get_nowait()
        except queue.Empty:
            return


class _Child:
    """One process, started when it is needed, and anew after it died."""

    def __init__(self, argv: tuple[str, ...], seconds: float) -> None:
        self._argv, self._seconds = argv, seconds
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, job: Job) -> JobAnswer:
        try:
            data = job.read()
        except OSError as error:
            return JobAnswer(path=job.path, failed=f"cannot be read: {error.strerror or error}")
        answer = self._request(job.argument, data)
        if answer is None:
            return JobAnswer(path=job.path, data=data, failed=self._cause())
        value = json.loads(answer)
        failed = value.get("failed", "") if isinstance(value, dict) else ""
        return JobAnswer(path=job.path, data=data, value=None if failed else value, failed=str(failed))

    def _request(self, argument: str, data: bytes) -> bytes | None:
        if self._process is None:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin"}, cwd="/", start_new_session=True,
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            write_frame(self._process.stdin, argument.encode("utf-8", "surrogateescape"))  # type: ignore[arg-type]
            write_frame(self._process.stdin, data)  # type: ignore[arg-type]
        except BrokenPipeError:
            return None
        return read_frame(self._process.stdout)  # type: ignore[arg-type]

    def _cause(self) -> str:
        """Why the child ended, which is no more afterwards."""
        code = self.end()
        if code == -signal.SIGALRM:
            return f"takes longer than {self._seconds:g} s to parse"
        return f"ended the parser ({signal.Signals(-code).name if code < 0 else f'exit status {code}'})"

    def end(self) -> int:
        """End the child; its return code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:  # what was buffered for a child that is gone
                    continue
        try:
            return process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
