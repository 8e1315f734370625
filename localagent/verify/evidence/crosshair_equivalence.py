"""CrossHair's word on touched functions: a solver looks for an input on which old and new answer otherwise. In a jail.

It finds what nobody would draw (`n == 123456`), and runs the repository's code by localagent's own interpreter, which
lacks the project's dependencies: what cannot be imported there is said. Only plain functions are asked. Not promised:
that functions without a found difference are equal; nor that the code under test has not written this answer itself,
for which reason it can only add differences.
"""

import importlib.util
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Difference, InputOrigin, Symbolic, SymbolicResult
from localagent.errors import UsageFault
from localagent.jail.files.binds import interpreter_binds
from localagent.verify.baseline import test_discovery
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.function_regions import FunctionRegion
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_messages import clean
from localagent.verify.worker.worker_spec import WorkerUse

FUNCTION_SECONDS, SECONDS = 10.0, 60.0
FUNCTIONS_LIMIT = 10
BEFORE = "la_before_"
_DIFFERENCES, _TEXT = 5, 400
_GIVEN = re.compile(r"Given: \((?P<args>.*)\),?")
_ANSWER = re.compile(r"\s*\S+ : (?P<said>(?:returns|raises) .*)")
_EXHAUSTED = "All paths exhausted, functions are likely the same!"
_NONE = "No differences found."


def require_crosshair() -> None:
    """UsageFault where the extra is not installed."""
    if importlib.util.find_spec("crosshair") is None:
        raise UsageFault(
            "--crosshair: CrossHair is not installed beside localagent",
            remedy="install the extra [crosshair] in localagent's own environment (`pip install --require-hashes "
            "-r requirements/crosshair.txt`), or leave --crosshair away",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _ModulePair:
    """Where the old text stands beside the new one, and both modules' names."""

    beside: RepoPath
    before: str
    after: str


def ask_crosshair(jails: JailPool, files: Sequence[ChangedFile]) -> tuple[Symbolic, ...]:
    """What it says of each touched function. `jails` hold the tree after."""
    until = time.monotonic() + SECONDS
    return tuple(_one(jails, file, old, new, until) for file, old, new in touched(files))


def touched(files: Sequence[ChangedFile]) -> Iterator[tuple[ChangedFile, FunctionRegion, FunctionRegion]]:
    """The functions that are asked about, as they were and as they are."""
    pairs = [(file, old, new) for file in files for old, new in file.touched()]
    yield from pairs[:FUNCTIONS_LIMIT]


def _one(jails: JailPool, file: ChangedFile, old: FunctionRegion, new: FunctionRegion, until: float) -> Symbolic:
    jails.check()

    def answer(said: SymbolicResult, why: str = "", found: tuple[Difference, ...] = ()) -> Symbolic:
        return Symbolic(path=file.path, function=_name(new), said=said, why=why, differences=found)

    place = _module_pair(file.path)
    if new.class_name is not None:
        return answer(SymbolicResult.NOT_ASKED, "it is a method")
    if place is None:
        return answer(SymbolicResult.NOT_ASKED, "its file has no name that can be imported beside another")
    left = until - time.monotonic()
    if left < 1.0:
        return answer(SymbolicResult.NOT_ASKED, f"the {SECONDS:.0f} s for all functions were used up")
    seconds = min(FUNCTION_SECONDS, left)
    with jails.place.workspace({place.beside: file.before}, WorkerUse.QUICK) as workspace:
        options = ("--exception_equivalence", "SAME_TYPE", "--per_condition_timeout", f"{seconds:.1f}")
        words = ("diffbehavior", *options, f"{place.before}.{old.name}", f"{place.after}.{new.name}")
        result = jails.place.jail.run(spec(jails, str(workspace.tree), words, seconds))
    said, why, found = read_answer(result)
    shown = tuple(
        Difference(
            path=file.path,
            function=_name(new),
            call=f"{_name(new)}({call})",
            old=was,
            new=now,
            origin=InputOrigin.SYMBOLIC,
            crash=now.startswith("raises ") and not was.startswith("raises "),
        )
        for call, was, now in found
    )
    return answer(said, why, shown)


def _name(region: FunctionRegion) -> str:
    return f"{region.class_name}.{region.name}" if region.class_name else region.name


def _module_pair(path: RepoPath) -> _ModulePair | None:
    parts = path.removesuffix(".py").split("/")
    inside = parts[1:] if len(parts) > 1 and parts[0] in test_discovery.SOURCE_FOLDERS else parts
    if parts[-1] == "__init__" or not all(part.isidentifier() for part in inside):
        return None
    before = [*inside[:-1], BEFORE + inside[-1]]
    return _ModulePair(
        beside=RepoPath("/".join([*parts[:-1], f"{BEFORE}{parts[-1]}.py"])),
        before=".".join(before),
        after=".".join(inside),
    )


def module_of(path: RepoPath) -> str | None:
    """The name by which a file is imported, None where it has none."""
    place = _module_pair(path)
    return None if place is None else place.after


def spec(jails: JailPool, tree: str, words: tuple[str, ...], seconds: float) -> JailSpec:
    """CrossHair with these words on a tree, read only. The whole may take a few times the `seconds` of a condition."""
    place = jails.place
    executable, binds = interpreter_binds(sys.executable)
    inside = place.repo.rstrip("/")
    sources = ":".join([inside, *(f"{inside}/{folder}" for folder in test_discovery.SOURCE_FOLDERS)])
    return JailSpec(
        argv=(executable, "-sP", "-m", "crosshair", *words),
        cwd=place.repo,
        binds=(
            *(bind for bind in binds if not bind.target.startswith(inside + "/")),
            Bind(source=tree, target=place.repo, access=Access.READ_ONLY, untrusted=True),
        ),
        env=(*place.environment(), ("PYTHONPATH", sources)),
        limits=JailLimits(wall_seconds=3 * seconds + 15, cpu_seconds=2 * seconds + 15),
    )


def read_answer(result: JailResult) -> tuple[SymbolicResult, str, tuple[tuple[str, str, str], ...]]:
    """What was said, why not more, the differences as (arguments, old, new). What is not understood is no answer."""
    if result.ending is not JailOutcome.EXITED:
        return SymbolicResult.COULD_NOT, f"ended by {result.ending.value}", ()
    text = clean(result.stdout.decode("utf-8", "replace"), 100_000)
    found = tuple(_differences(text.splitlines()))[:_DIFFERENCES]
    if result.returncode == 1 and found:
        return SymbolicResult.DIFFERS, "", found
    if result.returncode == 0 and _NONE in text:
        exhausted = _EXHAUSTED in text
        return (SymbolicResult.LIKELY_SAME if exhausted else SymbolicResult.NOTHING_FOUND), "", ()
    told = clean((result.stderr or result.stdout).decode("utf-8", "replace"), 100_000).strip().splitlines()
    return SymbolicResult.COULD_NOT, (told or ["it said nothing"])[-1][:_TEXT], ()


def _differences(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for n, line in enumerate(lines[:-2]):
        given = _GIVEN.fullmatch(line)
        was, now = _ANSWER.fullmatch(lines[n + 1]), _ANSWER.fullmatch(lines[n + 2])
        if given and was and now:
            yield given["args"][:_TEXT], was["said"][:_TEXT], now["said"][:_TEXT]
