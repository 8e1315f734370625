"""What to collect: pytest's own default first, then files that look like tests under other names.

Reads names below the store only. Also turns a refusal to collect into an answer that says what to do.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from localagent.code.doctests import only_doctests
from localagent.domain.outcome import Failure
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.fs.bounded_read import read_below
from localagent.repo.declared_dependencies import declared_project
from localagent.repo.python_environment import read_environment
from localagent.text.visible_text import shortened
from localagent.verify.worker.worker_messages import CollectionRefusal, CollectionRefused, Item

FILES_LIMIT = 200
SOURCE_FOLDERS = ("src", "lib", "source", "python")
_TEST_NAME = re.compile(r"(tests?|.*_tests?|test_.*|tests_.*|.*Tests?)\.py")
_TEST_CODE = re.compile(rb"^(?:[ \t]*(?:async )?def test_\w|class \w+\((?:unittest\.)?TestCase\))", re.MULTILINE)
_IMPORTS_PYTEST = re.compile(rb"^[ \t]*(?:import|from) pytest\b", re.MULTILINE)
_EXAMPLE = re.compile(rb"^[ \t]*>>> ", re.MULTILINE)
_TEXTS = (".rst", ".txt", ".md")
_SETTINGS = re.compile(r"DJANGO_SETTINGS_MODULE[\"']?\]?\s*[=:,]\s*[\"']?([A-Za-z_]\w*(?:\.\w+)*)")
_RUNS_DJANGO = re.compile(r"(?s)(?=.*\bdjango\b)(?=.*__main__).*\b(?:DiscoverRunner|get_runner|run_tests)\b")
_SETTING_FILES = ("tox.ini", "noxfile.py", "runtests.sh", "manage.py")
_MOST_BYTES = 1 << 20
_LOOKED_AT = 2000  # files, where no tests were found
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist"})
_OPTION_PLUGINS = (
    ("--cov", "pytest-cov"),
    ("--no-cov", "pytest-cov"),
    ("-n", "pytest-xdist"),
    ("--numprocesses", "pytest-xdist"),
    ("--dist", "pytest-xdist"),
    ("--timeout", "pytest-timeout"),
    ("--asyncio", "pytest-asyncio"),
    ("--benchmark", "pytest-benchmark"),
    ("--randomly", "pytest-randomly"),
    ("--reruns", "pytest-rerunfailures"),
    ("--flake8", "pytest-flake8"),
    ("--mypy", "pytest-mypy"),
    ("--black", "pytest-black"),
    ("--html", "pytest-html"),
    ("--ds", "pytest-django"),
    ("--nomigrations", "pytest-django"),
    ("--reuse-db", "pytest-django"),
    ("--doctest-plus", "pytest-doctestplus"),
    ("--forked", "pytest-forked"),
    ("--sugar", "pytest-sugar"),
    ("--codeblocks", "pytest-codeblocks"),
    ("--disable-socket", "pytest-socket"),
    ("--allow-hosts", "pytest-socket"),
    ("--snapshot", "syrupy"),
)


def all_files(store: Path) -> Iterator[str]:
    """Names of all files but those of folders that are hidden or made by tools, by folder."""
    for base, folders, files in os.walk(store):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
        relative = os.path.relpath(base, store)
        for name in sorted(files):
            yield name if relative == "." else f"{relative}/{name}"


def python_files(store: Path) -> Iterator[str]:
    """Names of all Python files among them."""
    return (path for path in all_files(store) if path.endswith(".py"))


def test_like_files(store: Path) -> tuple[str, ...]:
    """Python files whose names say test but that pytest's default patterns or folders may miss."""
    found = [path for path in python_files(store) if _TEST_NAME.fullmatch(path.rsplit("/", 1)[-1])]
    return tuple(found[:FILES_LIMIT])


def test_files(store: Path, items: Iterable[Item]) -> frozenset[RepoPath]:
    """The files that tests were collected from; not sources whose only tests are the examples in their docstrings."""
    by_file: dict[RepoPath, set[str]] = {}
    for item in items:
        if item.path is not None:
            by_file.setdefault(item.path, set()).add(item.id)
    return frozenset(path for path, ids in by_file.items() if not only_doctests(path, _bytes(store / path), ids))


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


def conftest_files(store: Path) -> frozenset[RepoPath]:
    """Every conftest.py."""
    return frozenset(RepoPath(path) for path in python_files(store) if path.rsplit("/", 1)[-1] == "conftest.py")


def missing_module(failure: Failure) -> str:
    """Top-level name of the module an import did not find, or ""."""
    if failure.exception != "ModuleNotFoundError":
        return ""
    match = re.search(r"No module named '([^']+)'", failure.message)
    return match[1].split(".")[0] if match else ""


def source_folder_with(store: Path, module: str) -> str:
    """The source folder (`src`, ...) in which `module` lies, or ""."""
    for folder in SOURCE_FOLDERS:
        place = store / folder
        if (place / module).is_dir() or (place / f"{module}.py").is_file():
            return folder
    return ""


def copied_folders(store: Path, sites: Sequence[Path]) -> tuple[str, ...]:
    """The source folders (`src`, ...) of which an environment's sites hold a file, as an install does that copies."""
    folders = [folder for folder in SOURCE_FOLDERS if (store / folder).is_dir()]
    return tuple(
        folder
        for folder in folders
        if any(
            (site / path.removeprefix(f"{folder}/")).is_file()
            for path in islice((p for p in python_files(store) if p.startswith(f"{folder}/")), FILES_LIMIT)
            for site in sites
        )
    )


def asks_for_settings(failure: Failure) -> bool:
    """Whether Django was used before it was told its settings."""
    unconfigured = failure.exception == "ImproperlyConfigured" and "settings are not configured" in failure.message
    return unconfigured or (failure.exception == "AppRegistryNotReady" and "loaded yet" in failure.message)


def declared_settings(store: Path, tests: Iterable[str] = ()) -> tuple[str, str] | None:
    """The Django settings that the project gives its tests outside of pytest's options, and the file that says so.

    `tests`: files that a `manage.py` in a folder above them is also asked for.
    """
    above = {f"{up}/manage.py": None for test in tests for up in PurePosixPath(test).parents if up.name}
    for name in (*_SETTING_FILES, *above):
        try:
            text = read_below(store, name, _MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        if match := _SETTINGS.search(text):
            return match[1], name
    return None


def django_script(store: Path) -> str:
    """The script at the top, or in the folder of the tests, that sets Django up and runs its tests; "" for none."""
    names = [path for path in python_files(store) if path.count("/") <= 1 and not path.endswith("manage.py")]
    able = (path for path in sorted(names, key=lambda path: path.count("/")) if _RUNS_DJANGO.search(_text(store, path)))
    return next(able, "")


def _text(store: Path, path: str) -> str:
    return _bytes(store / path).decode("utf-8", "replace")


class NoTests(AnswerIsNo):
    """There is nothing to run."""


def no_tests(store: Path) -> NoTests:
    """Nothing was collected: what else in the tree may hold tests, and what to pass for it."""
    names = [path for path in all_files(store) if path.endswith((*_TEXTS, ".py", ".ipynb"))][:_LOOKED_AT]
    sources = [path for path in names if path.endswith(".py")]
    defining = [path for path in sources if _TEST_CODE.search(_bytes(store / path))]
    with_examples = [path for path in names if _EXAMPLE.search(_bytes(store / path))]
    texts = [path for path in with_examples if path.endswith(_TEXTS)]
    if "manage.py" in sources:
        what = "manage.py runs Django's tests, which pytest does not find by itself"
        how = "pass --check 'python manage.py test', or install pytest-django and name its settings module"
    elif script := django_script(store):
        what = f"{script} runs Django's tests, which pytest does not find by itself"
        how = f"pass --check {shlex.quote(f'python {script}')}"
    elif defining:
        what = f"{defining[0]} defines tests under a name that pytest does not collect"
        how = f"pass --test {shlex.quote(defining[0])}, or set python_files in the project's pytest configuration"
    elif any(path.endswith(".py") for path in with_examples):
        what, how = f"{with_examples[0]} has doctests", "pass --test=--doctest-modules, or add it to pytest's addopts"
    elif texts:
        glob = "*" + Path(texts[0]).suffix
        what, how = f"{texts[0]} has doctests", f"pass '--test=--doctest-glob={glob}', or add it to pytest's addopts"
    elif "noxfile.py" in sources:
        what, how = (
            "noxfile.py names the sessions",
            "pass what it gives to pytest with --test, or a command with --check",
        )
    elif names and all(path.endswith(".ipynb") for path in names):
        return NoTests("no tests found: there are only notebooks, which are not repaired", remedy="repair its modules")
    else:
        return NoTests("no tests found", remedy="name them with --test, or a command with --check")
    return NoTests(f"no tests found: {what}", remedy=how)


def asks_for_pytest(store: Path) -> str:
    """Where the project says that its tests need pytest, as a clause; "" where nothing does."""
    declared = declared_project(store).dependencies.get("pytest")
    if declared is not None:
        return f"which {declared.source} declares"
    first = islice(python_files(store), _LOOKED_AT)
    importing = next((path for path in first if _IMPORTS_PYTEST.search(_bytes(store / path))), "")
    return f"which {importing} imports" if importing else ""


def no_pytest(python: str, store: Path) -> AnswerIsNo:
    """The project's Python has no pytest; what brings it there is how the project declares it."""
    declared = declared_project(store).dependencies.get("pytest")
    asked = asks_for_pytest(store)
    there = f", {asked}" if asked else ""
    how = read_environment(python).install((declared.install if declared is not None else ()) or ("pytest",))
    return AnswerIsNo(
        f"{python} has no pytest{there}",
        remedy=f"install it there (`{how}`), or name another interpreter with --python, or give a command with --check",
    )


def refusal_answer(refused: CollectionRefused, python: str) -> AnswerIsNo:
    """Why there is nothing to run, in words; `python`: the interpreter that pytest ran on."""
    if refused.why is CollectionRefusal.DIED:
        return _died(refused)
    text = refused.text.strip()
    last = " ".join(line.strip() for line in text.splitlines()[-3:]) or "pytest did not collect"
    if refused.why is CollectionRefusal.USAGE:
        unknown = re.search(r"unrecognized arguments: (.+)", text)
        if unknown:
            options = [*dict.fromkeys(word for word in unknown[1].split() if word.startswith("-"))] or [
                unknown[1].strip()
            ]
            plugins = dict.fromkeys(p for one in options for option, p in _OPTION_PLUGINS if one.startswith(option))
            how = f": `{read_environment(python).install(list(plugins))}`" if plugins else ""
            return AnswerIsNo(
                f"the project's pytest options need a plugin that is missing: {shortened(' '.join(options), 200)}",
                remedy=f"install {' and '.join(plugins) or 'the plugin that has this option'} "
                f"in the project's environment{how}",
            )
        missing = re.search(r"(?:Missing required plugins: |Error importing plugin )(.+)", text)
        if missing:
            return AnswerIsNo(
                f"a pytest plugin is missing: {shortened(missing[1].strip(), 200)}",
                remedy="install it in the project's environment",
            )
        return AnswerIsNo(
            f"pytest refused to start: {shortened(last, 300)}",
            remedy="check the tests that were named, and the pytest options of the project",
        )
    return AnswerIsNo(
        f"pytest could not collect the tests: {shortened(last, 300)}", remedy="run pytest there to see what happens"
    )


def _died(refused: CollectionRefused) -> AnswerIsNo:
    """The interpreter ended without a record: a crash, or `os._exit`."""
    how = re.search(r"signal \d+|exit status \d+", refused.failure.message)
    ending = how[0] if how else "no answer"
    if refused.path is None:
        return AnswerIsNo(
            f"the interpreter ended ({ending}) before a test file was collected",
            remedy="run pytest there to see what happens; a plugin or a conftest.py may end it",
        )
    return AnswerIsNo(
        f"{refused.path} ends the interpreter ({ending}) while it is collected",
        remedy=f"name the other tests with --test, or run pytest on {refused.path} in a shell to see what ends it",
    )
