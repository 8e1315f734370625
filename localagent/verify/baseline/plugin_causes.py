"""Failures that have to do with pytest, its plugins and Django rather than with the code that is tested."""

import re
import shlex

from packaging.utils import canonicalize_name

from localagent.domain.outcome import CauseKind, Failure
from localagent.text.visible_text import shortened
from localagent.verify.baseline.environment_tables import (
    ASYNC_PLUGINS,
    FIXTURE_PLUGINS,
    LINTER_ITEMS,
    MARKER_PLUGINS,
)
from localagent.verify.baseline.failed_project import FoundCause, Project, importer, in_test, pip_argument
from localagent.verify.baseline.test_discovery import asks_for_settings, declared_settings, django_script

_REFUSES = re.compile(r"raise\b|(?:sys\.)?exit\(|pytest\.(?:exit|fail)\(")


def missing_plugin(failure: Failure, project: Project) -> FoundCause | None:
    """A fixture, a marker or `async def` tests for which no plugin is there."""
    message = failure.message
    if failure.exception == "FixtureLookupError":
        match = re.search(r"^\('(\w+)'|fixture '(\w+)' not found", message)
        return _fixture(match[1] or match[2], project) if match else None
    if "async def functions are not natively supported" in message or "requested an async fixture" in message:
        return _async_test(project)
    marker = re.search(r"'(\w+)' not found in `markers` configuration option", message)
    if marker and (plugin := MARKER_PLUGINS.get(marker[1])):
        return _plugin(plugin, f"the marker {marker[1]}", project)
    if marker:
        return FoundCause(
            kind=CauseKind.BROKEN_TEST,
            subject=marker[1],
            sentence=f"the marker {marker[1]} is not declared, and `--strict-markers` refuses it ({importer(failure)})",
            remedy=f"declare {marker[1]} under `markers` in pytest's options",
        )
    return None


def _fixture(name: str, project: Project) -> FoundCause | None:
    if any(re.search(rf"\bdef {name}\b", text) for text in project.sources()):
        return None  # the project is a plugin itself
    plugin = FIXTURE_PLUGINS.get(name)
    if plugin is not None and canonicalize_name(plugin) not in project.environment.distributions:
        return _plugin(plugin, f"the fixture {name}", project)
    return FoundCause(
        kind=CauseKind.UNKNOWN_FIXTURE,
        subject=name,
        sentence=f"no conftest.py and no installed plugin defines the fixture {name}",
        remedy=f"define {name} in a conftest.py, or install the plugin that has it",
    )


def _plugin(plugin: str, wanted: str, project: Project) -> FoundCause:
    declared = project.declaration(plugin)
    told = f"{declared.source} declares it" if declared else "no file of the project declares it"
    return FoundCause(
        kind=CauseKind.MISSING_PLUGIN,
        subject=plugin,
        sentence=f"the pytest plugin {plugin}, which brings {wanted}, is not installed ({told})",
        install=(declared.install or (pip_argument(declared),)) if declared else (plugin,),
    )


def _async_test(project: Project) -> FoundCause:
    used = [plugin for word, plugin in ASYNC_PLUGINS if any(word in project.text(p) for p in project.test_files)]
    named = [plugin for _, plugin in ASYNC_PLUGINS if project.declaration(plugin)]
    there = [plugin for _, plugin in ASYNC_PLUGINS if canonicalize_name(plugin) in project.environment.distributions]
    plugin = next(iter((*used, *named, "pytest-asyncio")))
    if plugin not in there and not (there and not used):
        return _plugin(plugin, "support for `async def` tests", project)
    plugin = plugin if plugin in there else there[0]
    mark = {"anyio": "anyio", "pytest-trio": "trio"}.get(plugin, "asyncio")
    return FoundCause(
        kind=CauseKind.UNMARKED_ASYNC,
        subject=plugin,
        sentence=f"{plugin} is installed, but the `async def` tests are not marked for it, so it does not run them",
        remedy=f"mark them `@pytest.mark.{mark}`"
        + (", or set `asyncio_mode = auto` in pytest's options" if mark == "asyncio" else ""),
    )


def broken_test(failure: Failure, project: Project) -> FoundCause | None:
    """A test file that does not parse, or a conftest.py that raises on purpose while it is imported."""
    if "'yield' keyword is allowed in fixtures, but not in tests" in failure.message:
        return FoundCause(
            kind=CauseKind.BROKEN_TEST,
            subject="yield",
            sentence=f"tests that `yield` others are not run by pytest ({shortened(failure.message, 200)})",
            remedy="name the command that runs them with --check, or other tests with --test",
        )
    if not failure.frames or not in_test(failure, project):
        return None
    frame = failure.frames[-1]
    lines = project.text(str(frame.path)).splitlines()
    line = lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else ""
    if failure.exception in ("SyntaxError", "IndentationError", "TabError"):
        what = "does not parse"
    elif frame.function == "<module>" and _REFUSES.match(line):
        what = "refuses"
    else:
        return None
    told = f"{failure.exception}: {failure.message.splitlines()[0]}" if failure.message else failure.exception
    return FoundCause(
        kind=CauseKind.BROKEN_TEST,
        subject=str(frame.path),
        sentence=f"{importer(failure)} {what}: {shortened(told, 200)}",
        remedy=f"repair {frame.path}, or do what it asks for; files of the tests are never edited here",
    )


def linter_item(failure: Failure, project: Project) -> FoundCause | None:
    """An item that is no test: a linter runs as a pytest plugin. Its frames are the plugin's own."""
    tool, command = LINTER_ITEMS.get(failure.exception, ("", ""))
    if not tool or any(frame.path in project.files for frame in failure.frames):
        return None
    return FoundCause(
        kind=CauseKind.LINTER_FINDING,
        subject=tool,
        sentence=f"{tool}, a linter that pytest runs as a plugin, reports something",
        remedy=f"run `{command}` and repair what it reports",
    )


def same_name(failure: Failure, project: Project) -> FoundCause | None:
    """Two test files of one name in folders that are no packages: pytest imports the first for both."""
    match = re.search(r"^\('([\w.]+)', '(.+?)', \w+\('(.+?)'\)\)", failure.message)
    if failure.exception != "ImportPathMismatchError" or match is None:
        return None
    one, other = (path.removeprefix(project.repo.rstrip("/") + "/") for path in (match[2], match[3]))
    return FoundCause(
        kind=CauseKind.SAME_NAME,
        subject=match[1],
        sentence=f"{one} and {other} are both the module {match[1]} to pytest",
        remedy="add an empty __init__.py to their folders, rename one, or set `--import-mode=importlib` in pytest's "
        "options (addopts)",
    )


def clashing_options(failure: Failure, _project: Project) -> FoundCause | None:
    """Two conftest.py that add the same option: pytest loads either folder, and not both at once."""
    match = re.search(r"option names \{(.+?)\} already added", failure.message)
    if match is None or not failure.frames:
        return None
    path = str(failure.frames[-1].path)
    folder = path.rpartition("/")[0]
    return FoundCause(
        kind=CauseKind.BROKEN_TEST,
        subject=path,
        sentence=f"{path} adds {match[1]}, which another conftest.py has added: pytest cannot run both folders at once",
        remedy=f"run {folder} by itself: --test {shlex.quote(folder)}",
    )


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def django(failure: Failure, project: Project) -> FoundCause | None:
    """Django that was told no settings."""
    if not asks_for_settings(failure):
        return None
    told = declared_settings(project.store)
    manage = min((path for path in project.files if path.rsplit("/", 1)[-1] == "manage.py"), key=_depth, default="")
    match = re.search(r"DJANGO_SETTINGS_MODULE[\"'],\s*[\"']([\w.]+)", project.text(manage))
    module = told[0] if told else match[1] if match else "yourproject.settings"
    if match and not f".{module}".endswith(f".{match[1]}"):
        manage = ""  # another project's, an example's: not what runs these tests
    script = "" if told or manage else django_script(project.store)
    if script:
        return FoundCause(
            kind=CauseKind.DJANGO_SETTINGS,
            subject="DJANGO_SETTINGS_MODULE",
            sentence=f"the tests use Django, and {script} configures its settings for them, which pytest does not run",
            remedy=f"pass `--check {shlex.quote(f'{project.environment.python} {script}')}`",
        )
    there = "pytest-django" in project.environment.distributions
    declared = project.declaration("pytest-django")
    command = f"{project.environment.python} {manage or 'manage.py'} test"
    return FoundCause(
        kind=CauseKind.DJANGO_SETTINGS,
        subject="DJANGO_SETTINGS_MODULE",
        sentence="the tests use Django, and no Django settings are configured"
        + ("" if there else ": pytest-django is not installed"),
        install=() if there else (declared.install or (pip_argument(declared),)) if declared else ("pytest-django",),
        remedy=f"set `DJANGO_SETTINGS_MODULE = {module}` in pytest's options"
        + (f"; or pass `--check {shlex.quote(command)}`" if manage else ""),
    )
