"""`model bench`: the built-in bugs repaired from failing test to accepted patch, judged by tests that are held back.

Each bug is a project of its own in a scratch folder; what is repaired goes the way of every task, short of its record.
A patch is correct where localagent, asked again without a model, finds nothing to fix with the held-back tests beside.
Not promised: that budgets in seconds end two runs at the same candidate.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from localagent.app.cancellation import Stop
from localagent.app.fix.pipeline import FixWork, WorkScope, work
from localagent.app.fix.request import FixRequest
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Task, TaskResult, Verdict
from localagent.jail.api import scratch_folder
from localagent.repair.search.event_fanout import combined

_BUDGET = Budget(max_candidates=200, max_seconds=60.0)
_JUDGING = Budget(max_candidates=1, max_seconds=60.0)
_PROJECT = '[project]\nname = "bug"\nversion = "0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
_TESTS, _HELD_BACK = "tests/test_it.py", "tests/test_held_back.py"


class Repairable(Protocol):
    """A bug in one file: the tests that see it, and those that only judge."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def path(self) -> str:
        """The file."""
        ...

    @property
    def before(self) -> str:
        """The file with the bug."""
        ...

    @property
    def tests(self) -> str:
        """A test module."""
        ...

    @property
    def hidden(self) -> str:
        """Another one, which the repair never sees."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Repairs:
    """What came of repairing some bugs: accepted patches, and those of them that the held-back tests agree with."""

    bugs: int
    answered: int
    correct: int
    seconds: float

    @property
    def precision(self) -> float | None:
        """Correct among answered; None where nothing was answered."""
        return self.correct / self.answered if self.answered else None


def repair_all(
    model: str, bugs: Sequence[Repairable], settings: Settings, say: Callable[[str], None]
) -> tuple[Repairs, str]:
    """All of them by a registered model ("": the default one), and why the model was dropped meanwhile, or ""."""
    answered = correct = 0
    seconds, dropped = 0.0, ""
    for bug in bugs:
        result = _run(
            {bug.path: bug.before, _TESTS: bug.tests}, FixRequest(repo=Path(), model=model), settings, _BUDGET
        )
        seconds += sum(result.seconds.values())
        dropped = dropped or next((warning for warning in result.warnings if "dropped" in warning), "")
        patched = result.patch.after(RepoPath(bug.path)) if result.patch is not None else None
        good = patched is not None and holds(bug, patched.decode("utf-8"), settings)
        answered, correct = answered + (patched is not None), correct + good
        word = "correct" if good else "wrong" if patched is not None else result.verdict.value
        say(f"{bug.id}: {word} after {result.verified} candidates")
    return Repairs(bugs=len(bugs), answered=answered, correct=correct, seconds=round(seconds, 2)), dropped


def holds(bug: Repairable, text: str, settings: Settings) -> bool:
    """Whether a text of the file passes all its tests, those held back among them."""
    files = {bug.path: text, _TESTS: bug.tests, _HELD_BACK: bug.hidden}
    return _run(files, FixRequest(repo=Path(), use_model=False), settings, _JUDGING).verdict is Verdict.NOTHING_TO_FIX


def _run(files: dict[str, str], request: FixRequest, settings: Settings, budget: Budget) -> TaskResult:
    """A task on a project of its own, nothing of it kept."""
    with _project(files, settings) as repo:
        guard = Guard(scope=GuardScope.NONE)  # there is no test but those of the goal
        task = Task(id="bench", repo=str(repo), tests=("tests",), budget=budget, guard=guard)
        policy = open_policy(settings).policy
        asked = FixWork(
            request=request,
            task=task,
            settings=settings,
            policy=policy,
            sink=combined(()),
            stop=Stop(),
            seen=lambda _: None,
            scope=WorkScope.SEARCH,
        )
        return work(asked)


@contextmanager
def _project(files: dict[str, str], settings: Settings) -> Iterator[Path]:
    with scratch_folder(settings.scratch_dir) as scratch, tempfile.TemporaryDirectory(dir=scratch) as folder:
        for name, text in {"pyproject.toml": _PROJECT, **files}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield Path(folder)
