"""How the tests of a task are collected: as pytest would, and where that finds none, by what else the tree shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.repo.python_environment import read_environment
from localagent.verify.baseline import test_discovery
from localagent.verify.worker.jail_pool import JailWorker
from localagent.verify.worker.suite_run import SuiteWorker
from localagent.verify.worker.worker_client import OpenRequest
from localagent.verify.worker.worker_messages import Collected, CollectionRefusal, CollectionRefused, Item
from localagent.verify.worker.worker_spec import WorkerSpec

OPTIONS = ("--tb=no", "-o", "cache_dir=/tmp/la-cache")
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Collection:
    """What came of collecting the tests of a task."""

    items: tuple[Item, ...] = ()
    errors: Mapping[str, Failure] = field(default_factory=dict)
    import_lines: Mapping[RepoPath, frozenset[int]] = field(default_factory=dict)


class Collecting:
    """Of one task. `request` is how its tests are collected, `notes` what was odd about that; `first` fills both."""

    def __init__(self, place: WorkerSpec, task: Task) -> None:
        self._place, self._task = place, task
        self.request = OpenRequest(args=task.tests, options=OPTIONS, seed=task.seed, memory_bytes=MEMORY_BYTES)
        self.notes: list[str] = []

    def first(self, worker: JailWorker) -> tuple[SuiteWorker, Collection]:
        """AnswerIsNo for a refusal that no edit of the sources could mend."""
        self._prefer_the_tree()
        suite, answer = self._open(worker, self.request)
        if isinstance(answer, Collected) and not answer.items and not answer.errors and not self._task.tests:
            found = test_discovery.test_like_files(self._place.store)
            if found:
                other = replace(self.request, args=found)
                suite_found, answer_found = self._open(worker, other)
                if isinstance(answer_found, CollectionRefused) or answer_found.items or answer_found.errors:
                    suite, answer, self.request = suite_found, answer_found, other
                    self.notes.append("no tests where pytest looks; took files by their names: " + ", ".join(found[:5]))
        collection = self._collection(answer)
        collection, suite = self._with_settings(worker, collection, suite)
        places = dict.fromkeys(self._lacking(collection))
        if places:
            paths = tuple(f"{self._place.repo}/{folder}" for folder in places)
            other = replace(self.request, pythonpath=(*self.request.pythonpath, *paths))
            suite_found, answer_found = self._open(worker, other)
            if len(self._lacking(self._collection(answer_found))) < len(self._lacking(collection)):
                suite, collection, self.request = suite_found, self._collection(answer_found), other
                self.notes.append("not installed: put on PYTHONPATH: " + ", ".join(places))
            else:
                suite, _again = self._open(worker, self.request)
        return suite, collection

    def _lacking(self, collection: Collection) -> list[str]:
        """For each file that lacks a module of the tree, the source folder that has it."""
        modules = filter(None, map(test_discovery.missing_module, collection.errors.values()))
        folders = (test_discovery.source_folder_with(self._place.store, module) for module in modules)
        return [folder for folder in folders if folder]

    def _prefer_the_tree(self) -> None:
        """Put the source folders first of which the environment holds a copy: tests of that would notice no edit."""
        copied = test_discovery.copied_folders(self._place.store, read_environment(self._place.executable).sites)
        if copied:
            self.request = replace(self.request, pythonpath=tuple(f"{self._place.repo}/{folder}" for folder in copied))
            self.notes.append("the environment holds a copy of the project: put on PYTHONPATH: " + ", ".join(copied))

    def _with_settings(
        self, worker: JailWorker, collection: Collection, suite: SuiteWorker
    ) -> tuple[Collection, SuiteWorker]:
        """Once more with the Django settings that the project declares for its tests, where none were configured."""
        wanted = [name for name, failure in collection.errors.items() if test_discovery.asks_for_settings(failure)]
        found = test_discovery.declared_settings(self._place.store, wanted) if wanted else None
        if found is None:
            return collection, suite
        module, source = found
        before = self.request
        self.request = replace(before, options=(*before.options, f"--ds={module}"))
        other, answer = self._open(worker, self.request)
        again = self._collection(answer)
        if len(again.errors) < len(collection.errors):
            self.notes.append(f"DJANGO_SETTINGS_MODULE = {module}, as {source} sets it for the tests")
            return again, other
        self.request = before
        suite, _again = self._open(worker, before)
        return collection, suite

    def traced(self, worker: JailWorker) -> tuple[SuiteWorker, Collection]:
        """Once more, in the same way, with the lines that run while importing."""
        suite, answer = self._open(worker, replace(self.request, trace=True))
        return suite, self._collection(answer)

    def _open(self, worker: JailWorker, request: OpenRequest) -> tuple[SuiteWorker, Collected | CollectionRefused]:
        suite = SuiteWorker(worker.client, request)
        return suite, suite.open()

    def _collection(self, answer: Collected | CollectionRefused) -> Collection:
        if isinstance(answer, Collected):
            return Collection(items=answer.items, errors=answer.errors, import_lines=answer.import_lines)
        errors = dict(answer.errors)
        if not errors and answer.why is CollectionRefusal.CONFTEST:
            errors[str(answer.path or "conftest.py")] = answer.failure
        if (
            not errors
            and answer.why in (CollectionRefusal.HUNG, CollectionRefusal.DIED, CollectionRefusal.STOPPED)
            and (answer.failure.frames or answer.failure.exception == "ModuleNotFoundError")
        ):
            errors[str((answer.failure.frames[0].path if answer.failure.frames else None) or ".")] = answer.failure
        if not errors:
            raise test_discovery.refusal_answer(answer, self._place.executable)
        return Collection(errors=errors, import_lines=answer.import_lines)
