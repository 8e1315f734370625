"""Runs forgeries and leftovers through the real worker and the full check, and judges: good means escaped.

Held is said only where the outcome is bad for the reason expected (a forgery), or where a leftover was left and the
next candidate did not meet it. A worker that is lost without a reason counts as escaped: nothing was shown.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.domain.outcome import Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Event, Snapshot, Task
from localagent.errors import LocalagentError
from localagent.jail.attacks.attack import Category
from localagent.jail.attacks.row import AttackRow, AttackVerdict
from localagent.jail.boundaries import Wall
from localagent.jail.files.workspace import remove_tree
from localagent.jail.limits.profile import load
from localagent.ports import Jail
from localagent.verify.attacks import leftovers
from localagent.verify.attacks.forgery import FORGERIES, SOURCE, TEST, Forgery, ForgeryKind
from localagent.verify.attacks.leftovers import LEFTOVERS
from localagent.verify.verifier import JailVerifier
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_client import OpenRequest, RunRequest, WorkerClient, WorkerLost
from localagent.verify.worker.worker_messages import Collected
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse

OPTIONS = ("--tb=no",)
AT_ONCE = 3
NAMES: tuple[str, ...] = (*(entry.name for entry in FORGERIES), *(f"leaving {entry.name}" for entry in LEFTOVERS))


class _Nobody:
    def emit(self, event: Event) -> None:
        """Nobody follows this task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgeryBench:
    """Where small repositories are made and tried, in one backend's jails."""

    jail: Jail
    scratch: Path
    sandbox_dir: Path

    @contextlib.contextmanager
    def store(self, files: Mapping[str, str]) -> Iterator[Path]:
        """A folder that holds `store/` with these files, removed at the end."""
        root = Path(tempfile.mkdtemp(prefix="localagent-attack-", dir=self.scratch))
        try:
            root.chmod(0o711)
            for name, text in files.items():
                path = root / "store" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            yield root
        finally:
            remove_tree(root)

    @contextlib.contextmanager
    def worker(self, files: Mapping[str, str]) -> Iterator[WorkerClient]:
        """A warm worker over a repository of these files."""
        with self.store(files) as root:
            limits = {use: load(self.sandbox_dir / f"{use.value}.toml").limits for use in WorkerUse}
            place = WorkerSpec.make(
                jail=self.jail,
                repo=str(root / "repo"),
                store=root / "store",
                scratch=root,
                python=sys.executable,
                limits=limits,
            )
            with JailPool(place).start({}, WorkerUse.QUICK) as worker:
                yield worker.client


def run(bench: ForgeryBench, ways: Collection[ForgeryKind] = tuple(ForgeryKind)) -> Iterator[AttackRow]:
    """One row for each forgery (those judged in these ways) and leftover."""
    bodies = _by(ForgeryKind.BODY)
    work: list[Callable[[], list[AttackRow]]] = [partial(_leftovers, bench)]
    work += [partial(_judged_full, bench, entry) for entry in _by(ForgeryKind.FULL) if ForgeryKind.FULL in ways]
    work += [partial(_judged_bodies, bench, bodies)] if ForgeryKind.BODY in ways else []
    work += [
        partial(_judged_session, bench, entry) for entry in _by(ForgeryKind.SESSION) if ForgeryKind.SESSION in ways
    ]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="forgery") as pool:
        for done in as_completed([pool.submit(part) for part in work]):
            yield from done.result()


def _by(way: ForgeryKind) -> list[Forgery]:
    return [entry for entry in FORGERIES if entry.way is way]


def _judged_bodies(bench: ForgeryBench, entries: Sequence[Forgery]) -> list[AttackRow]:
    return list(_rows(bench, entries, _bodies(bench, entries)))


def _judged_session(bench: ForgeryBench, entry: Forgery) -> list[AttackRow]:
    return list(_rows(bench, [entry], [_session(bench, entry)]))


def _judged_full(bench: ForgeryBench, entry: Forgery) -> list[AttackRow]:
    return list(_rows(bench, [entry], [_full(bench, entry)]))


def repository(entries: Sequence[Forgery]) -> dict[str, str]:
    """One repository with a test for each body."""
    rows = ["from m import f"]
    for number, entry in enumerate(entries):
        rows += [f"def test_{number}():", f"    {entry.body}"]
    return {"m.py": SOURCE, "test_m.py": "\n".join(rows) + "\n"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _ForgeryOutcome:
    """What was said of one forgery: whether it is good, and the reason's word with a text."""

    good: bool
    reason: str
    text: str = ""


def _rows(bench: ForgeryBench, entries: Sequence[Forgery], said: Sequence[_ForgeryOutcome]) -> Iterator[AttackRow]:
    for entry, told in zip(entries, said, strict=True):
        word = next((reason for reason in sorted(entry.reasons) if reason in told.reason), "")
        result, why = AttackVerdict.HELD, f"{Wall.RECORDS.value}: {word}"
        if told.good or not word:
            result = AttackVerdict.ESCAPED
            why = "it was taken for good" if told.good else f"not for the reason expected: {told.reason} {told.text}"
        yield _row(bench, entry.name, Category.VERDICT, result, why.strip())


def _row(bench: ForgeryBench, name: str, category: Category, result: AttackVerdict, why: str) -> AttackRow:
    jail = bench.jail
    return AttackRow(name=name, category=category.value, backend=jail.backend, level=jail.level, result=result, why=why)


def _forgery_outcome(result: TestResult | None) -> _ForgeryOutcome:
    if result is None:
        return _ForgeryOutcome(good=False, reason="no-result")
    if result.failure is None:
        return _ForgeryOutcome(good=result.outcome.good, reason=str(result.outcome))
    return _ForgeryOutcome(good=result.outcome.good, reason=result.failure.exception, text=result.failure.message)


def _collect_and_run(client: WorkerClient) -> list[_ForgeryOutcome]:
    """Every collected test, in order; one word where the tests are refused or the worker is lost."""
    got = client.open(OpenRequest(options=OPTIONS))
    if not isinstance(got, Collected):
        return [_ForgeryOutcome(good=False, reason=str(got.why), text=got.text[-200:])]
    ran = client.run(
        RunRequest(items=got.items, cpu_seconds=2.0, wall_seconds=10.0, memory_bytes=256 << 20, budget_seconds=60.0)
    )
    by_id = {result.id: result for result in ran.results.values()}
    return [_forgery_outcome(by_id.get(item.id)) for item in got.items]


def _bodies(bench: ForgeryBench, entries: Sequence[Forgery]) -> list[_ForgeryOutcome]:
    try:
        with bench.worker(repository(entries)) as client:
            said = _collect_and_run(client)
    except (WorkerLost, LocalagentError) as fault:
        said = [_ForgeryOutcome(good=False, reason="lost", text=str(fault))]
    return said if len(said) == len(entries) else said[:1] * len(entries)


def _session(bench: ForgeryBench, entry: Forgery) -> _ForgeryOutcome:
    try:
        with bench.worker({"m.py": SOURCE, "test_m.py": TEST, **entry.files}) as client:
            return (_collect_and_run(client) or [_ForgeryOutcome(good=False, reason="nothing collected")])[0]
    except (WorkerLost, LocalagentError) as fault:
        return _ForgeryOutcome(good=False, reason="lost", text=str(fault))


def _full(bench: ForgeryBench, entry: Forgery) -> _ForgeryOutcome:
    files = {"m.py": SOURCE, "test_m.py": TEST, **entry.files}
    with bench.store(files) as root:
        repo = str(root / "repo")
        verifier = JailVerifier(
            jail=bench.jail,
            task=Task(id="attack", repo=repo, budget=Budget(max_seconds=100.0)),
            snapshot=Snapshot(root=repo, store=str(root / "store"), entries={}, digest=""),
            python=sys.executable,
            scratch=root,
            sandbox_dir=bench.sandbox_dir,
            policy=None,
            sink=_Nobody(),
        )
        try:
            baseline = verifier.baseline()
            full = verifier.full(_candidate(entry), baseline, seed=1)
        except LocalagentError as fault:
            return _ForgeryOutcome(good=False, reason="lost", text=str(fault))
        finally:
            verifier.cancel()
    return _ForgeryOutcome(good=full.accepted, reason="; ".join(full.reasons))


def _candidate(entry: Forgery) -> Candidate:
    change = FileChange(path=RepoPath("m.py"), before=SOURCE.encode(), after=entry.body.encode())
    return Candidate(number=1, patch=Patch(changes=(change,)), edits=(), cost=0.0, round=1, parent=None)


def _leftovers(bench: ForgeryBench) -> list[AttackRow]:
    """All are left by one candidate, and looked for by the next."""
    try:
        with bench.worker(leftovers.repository()) as client:
            got = client.open(OpenRequest(options=OPTIONS))
            items = {item.id: item for item in got.items} if isinstance(got, Collected) else {}
            seen: dict[str, TestResult] = {}
            for kind in ("leave", "look"):
                wanted = [items[name] for name in _ids(kind) if name in items]
                request = RunRequest(items=wanted, cpu_seconds=5.0, wall_seconds=20.0, budget_seconds=60.0)
                seen |= {result.id: result for result in client.run(request).results.values()}
    except (WorkerLost, LocalagentError) as fault:
        why = f"not tried: {fault}"
        return [_row(bench, f"leaving {entry.name}", Category.STATE, AttackVerdict.ESCAPED, why) for entry in LEFTOVERS]
    rows = []
    for number, entry in enumerate(LEFTOVERS):
        left = seen.get(leftovers.test_id("leave", number))
        looked = seen.get(leftovers.test_id("look", number))
        rows.append(_row(bench, f"leaving {entry.name}", Category.STATE, *_met(left, looked)))
    return rows


def _ids(kind: str) -> list[str]:
    return [leftovers.test_id(kind, number) for number in range(len(LEFTOVERS))]


def _met(left: TestResult | None, looked: TestResult | None) -> tuple[AttackVerdict, str]:
    if left is None or left.outcome is not Outcome.PASSED:
        return (
            AttackVerdict.ESCAPED,
            f"could not be left: {_forgery_outcome(left).reason} {_forgery_outcome(left).text}",
        )
    if looked is not None and looked.outcome is Outcome.PASSED:
        return AttackVerdict.HELD, f"{Wall.OWN_PROCESS.value}: nothing met"
    return (
        AttackVerdict.ESCAPED,
        f"the next candidate met it: {_forgery_outcome(looked).reason} {_forgery_outcome(looked).text}",
    )
