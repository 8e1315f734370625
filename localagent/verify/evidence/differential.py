"""Old against new: the touched functions of both trees, asked in jails with equal inputs, and where they disagree.

Inputs are calls that tests make, variations of these, and literals made up from hints and recorded values. A call on
which one tree disagrees with itself is not counted. Not promised: that agreement on these inputs is equality, that a
disagreement is a fault, or anything of functions that no test reaches and whose arguments are not plain data.
"""

import ast
import concurrent.futures as cf
import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from localagent.code.source_text import parse_or_none
from localagent.domain.outcome import Baseline, Outcome
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Differential, InputOrigin
from localagent.errors import UsageFault
from localagent.jail.files.transfer import read_regular
from localagent.text.visible_text import shortened
from localagent.verify.baseline import test_discovery
from localagent.verify.evidence.behaviour_diff import Comparison, TreeCall, Twin, calls_of, missed_of
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.parameters import FunctionParameters, signature_of
from localagent.verify.worker.function_regions import FunctionRegion, regions
from localagent.verify.worker.jail_pool import JailPool, JailWorker
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.warm_worker import Warm
from localagent.verify.worker.worker_client import DIFFER_SECONDS, DifferRequest, OpenRequest, WorkerLost
from localagent.verify.worker.worker_messages import Collected, Item, Malformed
from localagent.verify.worker.worker_spec import WorkerUse

# Names that undo one another: `encode` and `decode`, `to_x` and `from_x`. A guess, tried before it is believed.

_PAIRS = (
    ("encode", "decode"), ("dumps", "loads"), ("dump", "load"), ("serialize", "deserialize"), ("pack", "unpack"),
    ("compress", "decompress"), ("escape", "unescape"), ("quote", "unquote"), ("encrypt", "decrypt"),
    ("flatten", "unflatten"), ("format", "parse"), ("render", "parse"), ("to", "from"), ("parse", "format"),
)  # fmt: skip


def inverse_name(name: str) -> str:
    """The name of the function that, by its name, takes back what this one does; "" if none is known."""
    parts = name.split("_")
    for one, other in _PAIRS:
        for word, opposite in ((one, other), (other, one)):
            if word in parts:
                return "_".join(opposite if part == word else part for part in parts)
    return ""


TESTS_LIMIT = 40
LEAST_CALLS = 5  # that both trees answer: see `FunctionReach.least`
FUNCTIONS_LIMIT = 30
EXAMPLES, LEAST_EXAMPLES, EXAMPLES_IN_ALL = 200, 50, 1_200
_SOURCES, _SOURCE_BYTES = 2_000, 1_000_000
_WORD = re.compile(rb"\w+")
_TEST = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
_EVERY_ATTRIBUTE = frozenset({b"__dict__", b"vars", b"asdict", b"astuple", b"getmembers", b"pickle", b"__getstate__"})
_FIRST_SHARE = 0.55  # of the time, for the first of two trees that are asked one after the other
PROBE = RepoPath("test_localagent_probe.py")


@dataclass(kw_only=True, slots=True)
class Side:
    """One tree: its jails, the functions as they stand there, what it answered.

    `texts` are files whose bytes tell it from the other tree where both share a worker. `worker`, `session` and
    `collected` are where it is open and what that offers; `lost` says why it is not. `unasked` says why it is asked no
    more, though it is open.
    """

    jails: JailPool
    texts: Mapping[RepoPath, bytes]
    session: str
    places: list[tuple[str, int, str]]
    inverses: list[tuple[int, str, int, str]]
    worker: JailWorker | None = None
    collected: Collected | None = None
    items: dict[str, Item] = field(default_factory=dict)
    calls: dict[str, TreeCall] = field(default_factory=dict)
    missed: dict[int, str] = field(default_factory=dict)
    lost: str = ""
    unasked: str = ""


class Differ:
    """One comparison. Where `share` is true, `after` has the store of `before`: both trees are sessions of one worker.

    What is asked later than `until` (monotonic clock) is not answered; `examples` inputs of a function are made up.
    """

    def __init__(
        self,
        before: JailPool,
        after: JailPool,
        request: OpenRequest,
        files: Sequence[ChangedFile],
        *,
        seed: int,
        home: Path,
        share: bool = False,
        examples: int = EXAMPLES,
    ) -> None:
        self._request, self._seed, self._home = request, seed, home
        self._examples, self._share, self.until = examples, share, math.inf
        self._files = files
        every = [twin for file in files for twin in _twins(file)]
        self._twins, self._notes = every[:FUNCTIONS_LIMIT], list[str]()
        if len(every) > FUNCTIONS_LIMIT:
            self._notes.append(f"{len(every) - FUNCTIONS_LIMIT} more touched functions were not compared")
        self._letters, self._numbers = _dictionary(files)
        self._defaulted = [n for n, twin in enumerate(self._twins) if twin.defaults_differ()]
        self._sides = (
            Side(
                jails=before,
                texts={f.path: f.before for f in files},
                session="hot",
                places=[_region_key(t.file.source, t.old) for t in self._twins],
                inverses=list(_inverses(self._twins, new=False)),
            ),
            Side(
                jails=after,
                texts={f.path: f.after for f in files},
                session="patched" if share else "hot",
                places=[_region_key(t.file.path, t.new) for t in self._twins],
                inverses=list(_inverses(self._twins, new=True)),
            ),
        )

    def compare(self, baseline: Baseline | None, wanted: Sequence[str], turned: Sequence[str]) -> Differential:
        """Ask both trees. `wanted` are tests that run the touched functions; `turned` those that the patch turns."""
        if not self._twins:
            return Differential(functions=(), notes=tuple(self._notes))
        try:
            self.open(with_tests=baseline is not None)
            return self.ask(baseline, wanted, turned)
        finally:
            self.close()

    @property
    def after(self) -> Side:
        """The tree after."""
        return self._sides[1]

    def open(self, *, with_tests: bool, warm: Warm | None = None) -> None:
        """Open both trees, side by side in workers of their own; `lost` of a side says why it is not open.

        Where they share one, `warm` may be it, with the tree before open.
        """
        if self._share and warm is not None:
            before = self._sides[0]
            before.worker, before.session, before.items = warm.worker, warm.session, dict(warm.items)
        with cf.ThreadPoolExecutor(1 if self._share else 2, thread_name_prefix="differ") as pool:
            list(pool.map(lambda side: self._open(side, with_tests=with_tests), self._sides))

    def enter(self, side: Side) -> None:
        """Bring a shared worker's files to a tree: what is imported late, and what tests start, reads them."""
        if self._share and side.worker is not None:
            for path, text in side.texts.items():
                side.worker.workspace.write(path, text)

    def close(self) -> None:
        """End both workers."""
        for side in self._sides:
            if side.worker is not None:
                side.worker.close()

    def ask(self, baseline: Baseline | None, wanted: Sequence[str], turned: Sequence[str]) -> Differential:
        """As `compare`, in workers that are open."""
        if not self._twins:
            return Differential(functions=(), notes=tuple(self._notes))
        turning = frozenset(turned)
        late = {t.id for t in baseline.tests if t.outcome is Outcome.TIMED_OUT} if baseline is not None else set()
        names = list(dict.fromkeys((*turned, *wanted)))[:TESTS_LIMIT]
        with cf.ThreadPoolExecutor(1 if self._share else 2, thread_name_prefix="differ") as pool:
            before, after = self._sides
            early = [n for n in names if n not in late]

            def ask_tests(every_way: Sequence[int] = ()) -> None:
                begin = time.monotonic()
                half = begin + _FIRST_SHARE * (self.until - begin) if self._share else self.until
                jobs = [
                    pool.submit(self._ask, before, early, (), turning, half, every_way),
                    pool.submit(self._ask, after, names, (), turning, self.until, every_way),
                ]
                for job in jobs:
                    job.result()

            ask_tests()
            if unpaired := self._unpaired():
                ask_tests(unpaired)
            given = self._given()
            for job in [pool.submit(self._ask, side, (), given, turning) for side in self._sides]:
                job.result()
        before, after = self._sides
        why = [reason for side in self._sides if (reason := side.lost or side.unasked)]
        found = Comparison(
            self._twins,
            before.calls,
            after.calls,
            lost=next(iter(why), ""),
            missed={**after.missed, **before.missed},
            known=_KnownNames(before.jails.place.store, [f.before for f in self._files]),
        ).result()
        return replace(found, notes=tuple(dict.fromkeys((*self._notes, *why))))

    # -- asking

    def _open(self, side: Side, *, with_tests: bool) -> None:
        if side.worker is not None:
            return
        probe = {} if with_tests else {PROBE: _probe([t.file.path if side is self._sides[1] else t.file.source
                                                       for t in self._twins])}  # fmt: skip
        try:
            shared = self._sides[0].worker if self._share else None
            side.worker = shared or side.jails.start(probe, WorkerUse.QUICK)
            self.enter(side)
            if side.worker.client.pytest is None:
                side.lost = "the project's Python has no pytest, and functions are reached through it"
                return
            request = replace(self._request, session=side.session, swap=True)
            if not with_tests:
                folders = [
                    f
                    for f in test_discovery.SOURCE_FOLDERS
                    if any(t.file.path.startswith(f + "/") for t in self._twins)
                ]
                paths = tuple(f"{side.jails.place.repo}/{folder}" for folder in folders)
                request = replace(request, args=(str(PROBE),), pythonpath=(*request.pythonpath, *paths))
            answer = SuiteWorker(side.worker.client, request).open()
        except WorkerLost as lost:
            side.jails.check()
            side.lost = str(lost)
            return
        if not isinstance(answer, Collected):
            said = answer.text.strip()[-200:] or f"{answer.failure.exception}: {shortened(answer.failure.message, 200)}"
            side.lost = f"the functions could not be imported: {said}"
        elif answer.errors and not answer.items:
            failure = next(iter(answer.errors.values()))
            side.lost = f"the functions could not be imported: {failure.exception}: {shortened(failure.message, 200)}"
        else:
            side.collected = answer
            side.items = {item.id: item for item in answer.items}

    def _ask(
        self,
        side: Side,
        names: Sequence[str],
        given: Sequence[tuple[int, str, str]],
        turning: frozenset[str],
        until: float = math.inf,
        every_way: Sequence[int] = (),
    ) -> None:
        if side.lost or side.unasked or side.worker is None or (not names and not given):
            return
        left = min(until, self.until) - time.monotonic()
        if left <= 0:
            side.unasked = "the time for it was used up"
            return
        items = [side.items[n] for n in names if n in side.items]
        try:
            asked = DifferRequest(
                items=items,
                functions=side.places,
                inverses=side.inverses,
                given=given,
                letters=self._letters,
                numbers=self._numbers,
                seed=self._seed,
                defaulted=self._defaulted,
                every_way=every_way,
                session=side.session,
                wall_seconds=min(DIFFER_SECONDS, max(0.1, left)),
            )
            self.enter(side)
            answer = side.worker.client.differ(asked)
            if "calls" not in answer:
                side.unasked = "whoever asks the functions ended, or did not answer in time"
                return
            for number, why in missed_of(answer, len(self._twins)).items():
                side.missed.setdefault(number, why)
            by_index = {item.index: item.id for item in items}
            for call in calls_of(answer, len(self._twins), by_index, turning):
                known = side.calls.get(call.key)
                side.calls[call.key] = call if known is None else replace(known, answer=known.answer or call.answer)
        except WorkerLost as lost:
            side.jails.check()
            side.lost = str(lost)
        except Malformed as fault:
            side.unasked = f"its answer could not be read: {fault}"

    def _unpaired(self) -> list[int]:
        """Functions that one tree answers on enough calls of tests, and the other on others, or none runs what changed.

        Where copies of arguments do in one tree, the other may need forks: calls made in two ways are not compared. And
        what is defined inside a function is called by others: that shows in place.
        """
        before, after = (side.calls for side in self._sides)
        many = [Counter(call.function for call in calls.values() if not call.in_place) for calls in (before, after)]
        both = [call for key, call in after.items() if key in before]
        paired = Counter(call.function for call in both)
        run = {call.function for call in both if self._twins[call.function].runs_change(call.lines)}
        asked = [n for n in range(len(self._twins)) if max(c[n] for c in many) >= LEAST_CALLS]
        return [n for n in asked if paired[n] < LEAST_CALLS or n not in run]

    def _given(self) -> list[tuple[int, str, str]]:
        """What tests passed, for whichever tree has not seen it, and literals made up on top of it."""
        found: dict[tuple[int, str, str], None] = {}
        seen: dict[int, dict[tuple[str, str], None]] = {}
        for side in self._sides:
            for call in side.calls.values():
                if call.literal is not None:
                    found.setdefault((call.function, *call.literal))
                    if call.origin in (InputOrigin.DEMANDED, InputOrigin.TESTED):
                        seen.setdefault(call.function, {}).setdefault(call.literal)
        for number, twin in enumerate(self._twins if self._examples else ()):
            signature = signature_of(twin.file.before[twin.old.start : twin.old.end])
            if signature is None or (twin.old.class_name and number not in seen and not _static(twin)):
                continue
            for args, kwargs in self._made(number, twin, signature, list(seen.get(number, {}))):
                found.setdefault((number, args, kwargs))
        return list(found)

    def _made(
        self, number: int, twin: Twin, signature: FunctionParameters, seen: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        from localagent.verify.evidence.hypothesis_inputs import made_inputs  # noqa: PLC0415 - Hypothesis is slow to import

        values = []
        for args, kwargs in seen:
            try:
                values.append((tuple(ast.literal_eval(args)), dict(ast.literal_eval(kwargs))))
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                continue  # the worker said that it is a literal, and it is not
        key = f"{self._seed} {twin.file.source} {twin.name} {number}"
        share = max(LEAST_EXAMPLES, EXAMPLES_IN_ALL // len(self._twins))
        return made_inputs(
            signature,
            values,
            self._letters,
            self._numbers,
            key=key,
            home=self._home,
            examples=min(self._examples, share),
        )

    # -- comparing


class _KnownNames:
    """Whether sources of a tree, or some texts, say a name, or go through whatever attributes an object has.

    Tests do not count: those of the patch may lie in the tree, and what they look at they judge themselves.
    A tree of too many sources, or one that cannot be read, knows every name.
    """

    def __init__(self, store: Path, texts: Sequence[bytes]) -> None:
        self._store, self._texts = store, texts
        self._found: frozenset[bytes] | None = None

    def __call__(self, name: str) -> bool:
        if self._found is None:
            sources = (path for path in self._store.rglob("*.py") if not _TEST.fullmatch(path.name))
            paths = list(itertools.islice(sources, _SOURCES + 1))
            try:
                texts = [read_regular(path, _SOURCE_BYTES) for path in paths]
            except UsageFault:
                texts = []
            whole = len(texts) == len(paths) <= _SOURCES
            words = frozenset(word for text in (*self._texts, *texts) for word in _WORD.findall(text))
            self._found = words if whole else _EVERY_ATTRIBUTE
        return name.encode() in self._found or not self._found.isdisjoint(_EVERY_ATTRIBUTE)


def _twins(file: ChangedFile) -> Iterator[Twin]:
    changed = file.executable()
    for old, new in file.touched():
        inside = frozenset(n - new.line for n in changed if new.body_line <= n <= new.last_line)
        yield Twin(file=file, old=old, new=new, changed=inside)


def _region_key(path: RepoPath, region: FunctionRegion) -> tuple[str, int, str]:
    return (str(path), region.line, region.name)


def _inverses(twins: Sequence[Twin], *, new: bool) -> Iterator[tuple[int, str, int, str]]:
    """Functions of the same file that, by their names, undo a touched one."""
    for number, twin in enumerate(twins):
        known = regions(twin.file.after if new else twin.file.before)
        wanted = inverse_name(twin.new.name)
        for other in known.functions if known is not None and wanted and not twin.new.class_name else ():
            if other.name == wanted and other.class_name is None:
                yield (number, *_region_key(twin.file.path if new else twin.file.source, other))
                break


def _dictionary(files: Sequence[ChangedFile]) -> tuple[list[str], list[int]]:
    """Letters and numbers written in the touched files, both versions: equal for both trees."""
    letters: dict[str, None] = {}
    numbers: dict[int, None] = {}
    for file in files:
        for text in (file.before, file.after):
            tree = parse_or_none(text)
            for node in ast.walk(tree) if tree is not None else ():
                if isinstance(node, ast.Constant):
                    if type(node.value) is int and abs(node.value) <= 1000:
                        numbers.setdefault(node.value)
                    elif isinstance(node.value, str) and len(node.value) == 1 and node.value.isprintable():
                        letters.setdefault(node.value)
    return list(letters)[:40], list(numbers)[:40]


def _static(twin: Twin) -> bool:
    return b"@staticmethod" in twin.file.before[twin.old.start : twin.old.body_start]


def _probe(paths: Sequence[RepoPath]) -> bytes:
    """A test file that imports the touched modules, for repositories without tests."""
    lines = ["import importlib"]
    for path in dict.fromkeys(paths):
        parts = list(path.removesuffix(".py").split("/"))
        if len(parts) > 1 and parts[0] in test_discovery.SOURCE_FOLDERS:
            parts = parts[1:]
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if path.endswith(".py") and all(part.isidentifier() for part in parts):
            lines.append(f"importlib.import_module({'.'.join(parts)!r})")
    return "\n".join((*lines, "def test_probe():", "    pass", "")).encode("utf-8", "surrogateescape")
