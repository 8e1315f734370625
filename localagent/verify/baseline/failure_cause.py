"""Which failures of a baseline no edit of the sources could mend, what is missing, and how to bring it in.

Judged by exception, message and the innermost frame in the repository, and by what the project declares. A failure that
no rule explains is the code's, and searched. Not promised: that a cause which the code hides (an `except` that goes on)
is found, nor that the name of a distribution which nothing declares is right.
"""

import ast
import difflib
import os
import re
import shlex
import sys
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from localagent.code.newer_syntax import needed_python
from localagent.code.source_text import parse_or_none
from localagent.domain.outcome import Baseline, CauseKind, Failure, FailureCause
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.fs.bounded_read import read_below
from localagent.repo.declared_dependencies import DeclaredDependency, DeclaredProject, declared_project
from localagent.repo.discover import repository_root
from localagent.repo.gitignore import is_ignored, parse_rules
from localagent.repo.python_environment import PythonEnvironment, read_environment
from localagent.report import repair_reasons
from localagent.verify.baseline.environment_tables import (
    ASYNC_PLUGINS,
    BUILT_WITH,
    DATA_FOLDERS,
    DISTRIBUTIONS,
    FIXTURE_PLUGINS,
    MARKER_PLUGINS,
    MESSAGES,
    STDLIB_SINCE,
    STDLIB_UNTIL,
)
from localagent.verify.baseline.test_discovery import python_files

_MOST_BYTES = 1 << 20
_NO_MODULE = re.compile(r"No module named '([^']+)'")
_NO_NAME = re.compile(r"cannot import name '([^']+)' from '([^']+)' \((.+)\)")
_NO_ATTRIBUTE = re.compile(r"module '([^']+)' has no attribute '([^']+)'")
_NO_FILE = re.compile(r"No such file or directory: '([^']+)'")
_REFUSED = re.compile(
    r"connection refused|\[Errno 1(?:11|01|13)\]|name or service not known|temporary failure in name resolution"
    r"|network is unreachable|nodename nor servname|failed to resolve '|error while fetching server api version"
    r"|is the docker daemon running|no servers? available|nobrokersavailable",
    re.IGNORECASE,
)
_SERVES = re.compile(
    r"HTTPServer|socketserver|\.bind\(|start_server|create_server|\.listen\(|live_server|pytest_httpserver"
)
_TARGET = re.compile(
    r"(?:server at |connecting to |host=|connect to )[\"'(]*([\w.-]+)[\"')]*(?:.{0,20}?port[= ]|:)(\d+)"
)


@dataclass(frozen=True, kw_only=True)
class Project:
    """What the rules look at: the copy of the tree, where it stands, what it declares, what it runs on."""

    store: Path
    repo: str
    declared: DeclaredProject
    environment: PythonEnvironment
    python: str
    test_files: frozenset[RepoPath] = frozenset()
    tests: tuple[str, ...] = ()
    _texts: dict[str, str] = field(default_factory=dict)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every Python file of the tree."""
        return tuple(python_files(self.store))

    def text(self, path: str) -> str:
        """A file of the copy; "" where it is none or is too large."""
        if path not in self._texts:
            try:
                self._texts[path] = read_below(self.store, path, _MOST_BYTES).decode("utf-8", "replace")
            except OSError:
                self._texts[path] = ""
        return self._texts[path]

    def is_test(self, path: str | None) -> bool:
        """Whether a file holds tests or fixtures."""
        return path in self.test_files or (path or "").rsplit("/", 1)[-1] == "conftest.py"

    def sources(self) -> Iterator[str]:
        """The texts of the files that are no tests."""
        return (self.text(path) for path in self.files if not self.is_test(path))

    def homes(self, module: str) -> tuple[str, ...]:
        """The folders of the tree that hold a module or package of this name, "" for the top."""
        found: dict[str, None] = {}
        for path in self.files:
            parts = path.split("/")
            for at, part in enumerate(parts):
                if part == (f"{module}.py" if at == len(parts) - 1 else module):
                    found["/".join(parts[:at])] = None
        return tuple(found)

    def has_module(self, dotted: str) -> bool:
        """Whether some folder of the tree holds the module of this dotted name."""
        inner = "/".join(dotted.split("."))
        return any(f"/{path}".endswith(f"/{inner}.py") or f"/{inner}/" in f"/{path}" for path in self.files)

    def declaration(self, distribution: str) -> DeclaredDependency | None:
        """Where a distribution is declared."""
        return self.declared.dependencies.get(canonicalize_name(distribution))


def project_of(store: Path, repo: str, executable: str, baseline: Baseline, tests: Sequence[str]) -> Project:
    """The project that a baseline is of."""
    return Project(
        store=store,
        repo=repo,
        declared=declared_project(store),
        environment=read_environment(executable),
        python=baseline.python,
        test_files=baseline.test_files,
        tests=tuple(tests),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """The cause of one failure. `install`: arguments of pip; `remedy`: what to do where pip is not enough."""

    kind: CauseKind
    subject: str
    sentence: str
    install: tuple[str, ...] = ()
    remedy: str = ""


def with_causes(baseline: Baseline, project: Project) -> Baseline:
    """The baseline whose `failing` are those of the code, and `causes` say why the others fail."""
    found: dict[tuple[CauseKind, str], tuple[_Found, list[str]]] = {}
    for name, failure in _failures(baseline):
        if cause := cause_of(failure, project):
            found.setdefault((cause.kind, cause.subject), (cause, []))[1].append(name)
    causes = tuple(
        FailureCause(
            kind=cause.kind,
            subject=cause.subject,
            sentence=cause.sentence,
            remedy="; ".join(
                filter(None, (project.environment.install(cause.install) if cause.install else "", cause.remedy))
            ),
            failing=tuple(names),
        )
        for cause, names in found.values()
    )
    explained = {name for cause in causes for name in cause.failing}
    return replace(baseline, failing=tuple(n for n in baseline.failing if n not in explained), causes=causes)


def without_missing_modules(baseline: Baseline, project: Project, made: frozenset[str] = frozenset()) -> Baseline:
    """The baseline without test files that themselves import a package which is not there, for comparing two trees.

    `made`: modules that the second tree has; files that lack one of these are to be collected there. AnswerIsNo where
    no test is left.
    """
    known = with_causes(baseline, project)
    left = tuple(
        name
        for cause in known.causes
        if cause.kind in (CauseKind.MISSING_MODULE, CauseKind.SIBLING_PACKAGE) and cause.subject not in made
        for name in cause.failing
        if (failure := baseline.collect_failures.get(name)) is not None
        and (not failure.frames or f"collect:{failure.frames[-1].path}" == name)
    )
    if left and len(left) == len(baseline.collect_failures) and not baseline.tests and not baseline.checks:
        raise AnswerIsNo(repair_reasons.not_searched(known.causes), remedy=repair_reasons.causes_remedy(known.causes))
    return replace(
        baseline,
        failing=tuple(name for name in baseline.failing if name not in left),
        notes=(*baseline.notes, *cause_notes(known.causes)) if left else baseline.notes,
    )


def cause_notes(causes: Sequence[FailureCause]) -> tuple[str, ...]:
    """A remark on each cause: what fails for it is not searched."""
    return tuple(
        f"not searched: {', '.join(cause.failing[:3])}"
        + (f" and {len(cause.failing) - 3} more" if len(cause.failing) > 3 else "")
        + f": {cause.sentence}; {cause.remedy}"
        for cause in causes
    )


def _failures(baseline: Baseline) -> Iterator[tuple[str, Failure]]:
    known = {test.id: test.failure for test in baseline.tests} | dict(baseline.collect_failures)
    for name in baseline.failing:
        if failure := known.get(name):
            yield name, failure


def cause_of(failure: Failure, project: Project) -> _Found | None:
    """The cause of a failure that no edit could mend; None for one that is searched."""
    return next((found for rule in _RULES if (found := rule(failure, project)) is not None), None)


# -- modules


def _missing_module(failure: Failure, project: Project) -> _Found | None:
    match = _NO_MODULE.search(failure.message) if failure.exception == "ModuleNotFoundError" else None
    if match is None:
        return None
    dotted = match[1]
    top = dotted.partition(".")[0]
    homes = project.homes(top)
    if homes:
        return _own_module(failure, project, dotted, homes)
    return (
        _library_module(failure, dotted, project)
        or _sibling(failure, project, top)
        or _foreign_module(failure, project, top, dotted)
    )


def _own_module(failure: Failure, project: Project, dotted: str, homes: Sequence[str]) -> _Found | None:
    """A module below a name that the tree has: to be built, to be written, or to be put on the path."""
    *above, last = dotted.split(".")
    if not above:
        roots = [home for home in homes if home and not _is_package(project, home)]
        if "" in homes or not roots:
            return None
        project_at = next((home for home in roots if _is_project(project, home)), None)
        return _Found(
            kind=CauseKind.NOT_ON_PATH,
            subject=dotted,
            sentence=f"{dotted} lies in {roots[0]}/, which is not on the path ({_importer(failure)} imports it)",
            install=() if project_at is None else ("-e", f"./{project_at}"),
            remedy="" if project_at else f'set `pythonpath = ["{roots[0]}"]` in pytest\'s options',
        )
    if project.has_module(dotted):
        return None
    if project.declared.builds_modules and ("version" in last or _has_native_source(project, last)):
        return _Found(
            kind=CauseKind.NOT_BUILT,
            subject=dotted,
            sentence=f"{dotted} is missing: the build of the project makes it ({_importer(failure)} imports it)",
            install=("-e", "."),
        )
    if not _in_test(failure, project):
        return None
    return _not_written(dotted, failure, f"the module {'/'.join(dotted.split('.'))}.py")


def _is_package(project: Project, folder: str) -> bool:
    return f"{folder}/__init__.py" in project.files


def _is_project(project: Project, folder: str) -> bool:
    return any((project.store / folder / name).is_file() for name in ("pyproject.toml", "setup.py"))


def _has_native_source(project: Project, stem: str) -> bool:
    names = {f"{stem}{end}" for end in BUILT_WITH}
    found = any(name in names for _, _, files in os.walk(project.store) for name in files)
    return found or (project.store / "Cargo.toml").is_file()


def _not_written(subject: str, failure: Failure, what: str) -> _Found:
    return _Found(
        kind=CauseKind.NOT_WRITTEN,
        subject=subject,
        sentence=f"{what} does not exist yet, and {_importer(failure)} uses it: it must be written",
        remedy=f"write {what}; localagent repairs code and writes none",
    )


def _library_module(failure: Failure, dotted: str, project: Project) -> _Found | None:
    """A module of the standard library that this Python does not have."""
    top = dotted.partition(".")[0]
    since, until = STDLIB_SINCE.get(dotted), STDLIB_UNTIL.get(top)
    if until is None and since is None and top not in sys.stdlib_module_names:
        return None
    if until is not None:
        told = f"{top} was removed from Python {until}, and {project.python} runs the tests"
        install = ("setuptools",) if top == "distutils" else ()
    elif since is not None:
        told, install = f"{dotted} needs Python {since} or later, and {project.python} runs the tests", ()
    else:
        told, install = f"this Python ({project.python}) was built without {top}", ()
    return _Found(
        kind=CauseKind.PYTHON_VERSION,
        subject=top,
        sentence=f"{told} ({_importer(failure)} imports it)",
        install=install,
        remedy="" if install else "name an interpreter that has it with --python",
    )


def _foreign_module(failure: Failure, project: Project, top: str, dotted: str) -> _Found | None:
    """A module of another distribution, declared or not; None for what looks like a slip of the pen."""
    choices = (
        *DISTRIBUTIONS.get(dotted, DISTRIBUTIONS.get(top, ())),
        top,
        f"python-{top}",
        f"py{top}",
        f"{top}-python",
    )
    declared = next((one for name in choices if (one := project.declaration(name)) is not None), None)
    in_test = _in_test(failure, project)
    if declared is None and top not in DISTRIBUTIONS:
        if not in_test and _misspelt(top, project):
            return None
        if in_test and (canonicalize_name(top) == project.declared.name or _is_named_after(failure, top)):
            return _not_written(top, failure, f"the module {top}.py")
    sentence = f"the module {top} is missing ({_importer(failure)} imports it; "
    if declared is not None:
        sentence += f"{declared.source} declares {_distribution(declared)})"
        return _Found(
            kind=CauseKind.MISSING_MODULE,
            subject=top,
            sentence=sentence,
            install=declared.install or (_plain(declared),),
        )
    return _Found(
        kind=CauseKind.MISSING_MODULE,
        subject=top,
        sentence=f"{sentence}no file of the project declares it)",
        install=(choices[0],),
        remedy=f"declare it; or write {top}, if it is to be part of this project",
    )


def _distribution(declared: DeclaredDependency) -> str:
    return re.split(r"[\s\[<>=!~;@(,]", declared.requirement, maxsplit=1)[0]


def _plain(declared: DeclaredDependency) -> str:
    """The requirement as one argument of pip, without its marker."""
    return declared.requirement.partition(";")[0].replace(" ", "")


def _misspelt(module: str, project: Project) -> bool:
    known = {
        *sys.stdlib_module_names,
        *DISTRIBUTIONS,
        *project.declared.dependencies,
        *project.environment.distributions,
    }
    known |= {path.split("/")[0].removesuffix(".py") for path in project.files}
    return bool(difflib.get_close_matches(module, known, n=1, cutoff=0.8))


def _is_named_after(failure: Failure, module: str) -> bool:
    """Whether the test file is called after the module: its own, then."""
    stem = str(failure.frames[-1].path).rsplit("/", 1)[-1].removesuffix(".py") if failure.frames else ""
    return module in (stem.removeprefix("test_"), stem.removesuffix("_test"))


def _sibling(failure: Failure, project: Project, module: str) -> _Found | None:
    """A package beside the repository: the jail shows the repository and the environment, and nothing else."""
    repo = Path(project.repo)
    root = repository_root(repo.parent)
    linked = [(name, at) for name, at in project.environment.outside if _holds(at, module)]
    found = [(name, at) for name, at in linked if not at.is_relative_to(repo)]
    if not found:
        beside = [*_folders(repo.parent), *(_folders(root) if root != repo.parent else ())]
        found = [("", at) for one in beside for at in (one, one / "src") if one != repo and _holds(at, module)]
    if not found:
        return None
    name, at = found[0]
    common = next(up for up in repo.parents if at.is_relative_to(up))
    via = f"{name} of the environment leads to" if name else "it lies in"
    tests = [f"{repo.relative_to(common)}/{test}" for test in project.tests] or [str(repo.relative_to(common))]
    asked = " ".join(f"--test {shlex.quote(test)}" for test in tests)
    return _Found(
        kind=CauseKind.SIBLING_PACKAGE,
        subject=module,
        sentence=f"the package {module} is outside the repository ({via} {at}), and the jail does not show it "
        f"({_importer(failure)} imports it)",
        remedy=f"take both into one tree: `localagent fix --repo {shlex.quote(str(common))} {asked}`"
        if str(common) != "/"
        else f"copy {module} into the repository, or install it into the environment without -e",
    )


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir() and not path.name.startswith("."))[:200]
    except OSError:
        return []


def _holds(folder: Path, module: str) -> bool:
    return (folder / f"{module}.py").is_file() or (folder / module / "__init__.py").is_file()


def _missing_metadata(failure: Failure, project: Project) -> _Found | None:
    match = re.search(r"No package metadata was found for ['\"]?([\w.-]+)|^([\w.-]+)$", failure.message)
    if failure.exception not in ("PackageNotFoundError", "DistributionNotFound") or match is None:
        return None
    name = match[1] or match[2]
    if canonicalize_name(name) != project.declared.name:
        return _foreign_module(failure, project, name, name) if project.declaration(name) else None
    return _Found(
        kind=CauseKind.NOT_BUILT,
        subject=name,
        sentence=f"the project {name} itself is not installed ({_importer(failure)} reads its metadata)",
        install=("-e", "."),
    )


def _other_version(failure: Failure, project: Project) -> _Found | None:
    """A dependency is there in a version that the project does not declare."""
    if failure.exception not in ("ImportError", "AttributeError", "TypeError", "ModuleNotFoundError"):
        return None
    match = (
        _NO_NAME.search(failure.message) or _NO_ATTRIBUTE.search(failure.message) or _NO_MODULE.search(failure.message)
    )
    top = (match[2] if match.re is _NO_NAME else match[1]).partition(".")[0] if match else ""
    for name in (*DISTRIBUTIONS.get(top, ()), top) if top and not project.homes(top) else ():
        declared, there = project.declaration(name), project.environment.distributions.get(canonicalize_name(name))
        if declared is None or there is None:
            continue
        try:
            wanted = Requirement(declared.requirement).specifier
        except InvalidRequirement:
            return None
        if not wanted.contains(there, prereleases=True):
            return _Found(
                kind=CauseKind.DEPENDENCY_VERSION,
                subject=top,
                sentence=f"{name} {there} is installed, and {declared.source} declares {declared.requirement} "
                f"({_importer(failure)} uses it)",
                install=declared.install or (_plain(declared),),
            )
    return None


def _missing_name(failure: Failure, project: Project) -> _Found | None:
    """A name that the tests take from a module of the tree, which nothing there resembles."""
    imported, attribute = _NO_NAME.search(failure.message), _NO_ATTRIBUTE.search(failure.message)
    if imported and failure.exception == "ImportError" and "circular import" not in failure.message:
        name, module = imported[1], imported[2]
    elif attribute and failure.exception == "AttributeError" and "circular import" not in failure.message:
        name, module = attribute[2], attribute[1]
    else:
        return None
    if not _in_test(failure, project) or not project.has_module(module):
        return None
    word = re.compile(rf"\b{re.escape(name)}\b")
    if any(word.search(text) for text in project.sources()):
        return None
    inner = "/".join(module.split("."))
    here = [p for p in project.files if f"/{p}".endswith((f"/{inner}.py", f"/{inner}/__init__.py"))]
    if any(difflib.get_close_matches(name, _top_names(project.text(path)), n=1, cutoff=0.75) for path in here):
        return None
    return _not_written(f"{module}.{name}", failure, f"`{name}` in {here[0] if here else module}")


def _top_names(text: str) -> list[str]:
    tree = parse_or_none(text)
    if tree is None:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
    return found


# -- pytest, its plugins, Django


def _missing_plugin(failure: Failure, project: Project) -> _Found | None:
    message = failure.message
    if failure.exception == "FixtureLookupError":
        match = re.search(r"^\('(\w+)'|fixture '(\w+)' not found", message)
        return _fixture(match[1] or match[2], project) if match else None
    if "async def functions are not natively supported" in message or "requested an async fixture" in message:
        return _async_test(project)
    marker = re.search(r"'(\w+)' not found in `markers` configuration option", message)
    if marker and (plugin := MARKER_PLUGINS.get(marker[1])):
        return _plugin(plugin, f"the marker {marker[1]}", project)
    return None


def _fixture(name: str, project: Project) -> _Found | None:
    if any(re.search(rf"\bdef {name}\b", text) for text in project.sources()):
        return None  # the project is a plugin itself
    plugin = FIXTURE_PLUGINS.get(name)
    if plugin is not None and canonicalize_name(plugin) not in project.environment.distributions:
        return _plugin(plugin, f"the fixture {name}", project)
    return _Found(
        kind=CauseKind.UNKNOWN_FIXTURE,
        subject=name,
        sentence=f"no conftest.py and no installed plugin defines the fixture {name}",
        remedy=f"define {name} in a conftest.py, or install the plugin that has it",
    )


def _plugin(plugin: str, wanted: str, project: Project) -> _Found:
    declared = project.declaration(plugin)
    told = f"{declared.source} declares it" if declared else "no file of the project declares it"
    return _Found(
        kind=CauseKind.MISSING_PLUGIN,
        subject=plugin,
        sentence=f"the pytest plugin {plugin}, which brings {wanted}, is not installed ({told})",
        install=(declared.install or (_plain(declared),)) if declared else (plugin,),
    )


def _async_test(project: Project) -> _Found:
    used = [plugin for word, plugin in ASYNC_PLUGINS if any(word in project.text(p) for p in project.test_files)]
    named = [plugin for _, plugin in ASYNC_PLUGINS if project.declaration(plugin)]
    there = [plugin for _, plugin in ASYNC_PLUGINS if canonicalize_name(plugin) in project.environment.distributions]
    plugin = next(iter((*used, *named, "pytest-asyncio")))
    if plugin not in there and not (there and not used):
        return _plugin(plugin, "support for `async def` tests", project)
    plugin = plugin if plugin in there else there[0]
    mark = {"anyio": "anyio", "pytest-trio": "trio"}.get(plugin, "asyncio")
    return _Found(
        kind=CauseKind.UNMARKED_ASYNC,
        subject=plugin,
        sentence=f"{plugin} is installed, but the `async def` tests are not marked for it, so it does not run them",
        remedy=f"mark them `@pytest.mark.{mark}`"
        + (", or set `asyncio_mode = auto` in pytest's options" if mark == "asyncio" else ""),
    )


def _django(failure: Failure, project: Project) -> _Found | None:
    unconfigured = failure.exception == "ImproperlyConfigured" and "settings are not configured" in failure.message
    if not unconfigured and not (failure.exception == "AppRegistryNotReady" and "loaded yet" in failure.message):
        return None
    manage = next((path for path in project.files if path.rsplit("/", 1)[-1] == "manage.py"), "")
    match = re.search(r"DJANGO_SETTINGS_MODULE[\"'],\s*[\"']([\w.]+)", project.text(manage))
    module = match[1] if match else "yourproject.settings"
    there = "pytest-django" in project.environment.distributions
    declared = project.declaration("pytest-django")
    command = f"{project.environment.python} {manage or 'manage.py'} test"
    return _Found(
        kind=CauseKind.DJANGO_SETTINGS,
        subject="DJANGO_SETTINGS_MODULE",
        sentence="the tests use Django, and no Django settings are configured"
        + ("" if there else ": pytest-django is not installed"),
        install=() if there else (declared.install or (_plain(declared),)) if declared else ("pytest-django",),
        remedy=f"set `DJANGO_SETTINGS_MODULE = {module}` in pytest's options"
        + (f"; or pass `--check {shlex.quote(command)}`" if manage else ""),
    )


# -- Python, files, services


def _python_version(failure: Failure, project: Project) -> _Found | None:
    if (written := _newer_syntax(failure, project)) is not None:
        return written
    asked = project.declared.requires_python
    try:
        fits = SpecifierSet(re.sub(r"\^", ">=", asked)).contains(project.python, prereleases=True)
    except InvalidSpecifier:
        return None
    message = failure.message
    attribute = _NO_ATTRIBUTE.search(message)
    by_name = _NO_NAME.search(message)
    newer = (
        failure.exception in ("SyntaxError", "IndentationError")
        or (by_name is not None and by_name[2].partition(".")[0] in sys.stdlib_module_names)
        or (attribute is not None and attribute[1].partition(".")[0] in sys.stdlib_module_names)
        or (failure.exception == "TypeError" and "type(s) for |: " in message)
    )
    if fits or not newer:
        return None
    return _Found(
        kind=CauseKind.PYTHON_VERSION,
        subject=asked,
        sentence=f"the project needs Python {asked}, and {project.environment.python} is Python {project.python}",
        remedy="name an interpreter of that version with --python",
    )


def _newer_syntax(failure: Failure, project: Project) -> _Found | None:
    """A file in the syntax of a newer Python than the one that runs the tests."""
    if failure.exception != "SyntaxError" or not failure.frames:
        return None
    path = str(failure.frames[-1].path)
    needed = needed_python(project.text(path))
    version = re.match(r"(\d+)\.(\d+)", project.python)
    if needed is None or version is None or (int(version[1]), int(version[2])) >= needed:
        return None
    want = ".".join(map(str, needed))
    return _Found(
        kind=CauseKind.PYTHON_VERSION,
        subject=want,
        sentence=f"{path} needs Python ≥ {want}, and {project.environment.python} is Python {project.python}",
        remedy="name an interpreter of that version with --python",
    )


def _missing_data(failure: Failure, project: Project) -> _Found | None:
    match = _NO_FILE.search(failure.message) if failure.exception == "FileNotFoundError" else None
    if match is None or not failure.frames:
        return None
    path = match[1]
    name = path.rsplit("/", 1)[-1]
    if "/" not in path and "." not in path:
        return _missing_program(path, failure, project)
    inside = path.startswith(project.repo.rstrip("/") + "/")
    relative = path[len(project.repo.rstrip("/")) + 1 :] if inside else path
    if path.startswith("/") and not inside:
        if not path.startswith(("/usr/", "/opt/", "/etc/", "/srv/", "/data/", "/mnt/", "/home/", "/media/")):
            return None
    elif not _is_data(relative, project):
        return None
    if _in_test(failure, project):
        if any(name in text for text in project.sources()):
            return None  # what the sources name they may have to write
    elif any(name in project.text(test) for test in project.test_files) or _resembles_file(name, project):
        return None
    ignored = inside and _is_ignored(relative, project)
    return _Found(
        kind=CauseKind.MISSING_DATA,
        subject=relative,
        sentence=f"the data file {relative} is not there ({_importer(failure)} opens it"
        + ("; .gitignore leaves it out)" if ignored else ")"),
        remedy=f"bring {relative} into the tree (git submodule update --init, git lfs pull, or as the project's README "
        "says)"
        if inside or not path.startswith("/")
        else f"the jail shows the repository and the environment alone: keep {relative} in the repository",
    )


def _missing_program(program: str, failure: Failure, project: Project) -> _Found | None:
    frame = failure.frames[-1]
    near = "\n".join(project.text(str(frame.path)).splitlines()[max(0, frame.line - 3) : frame.line + 3])
    if not re.search(r"subprocess|Popen|check_output|check_call|\brun\(|\bexec", near):
        return None
    if not any(program in text for text in (near, *map(project.text, project.test_files))):
        return None
    return _Found(
        kind=CauseKind.SYSTEM,
        subject=program,
        sentence=f"the program {program} is not installed ({_importer(failure)} starts it)",
        remedy=f"install {program} with the system's package manager; the jail shows /usr and the environment",
    )


def _is_data(relative: str, project: Project) -> bool:
    modules = re.findall(r"^\s*path\s*=\s*(\S+)", project.text(".gitmodules"), re.MULTILINE)
    return (
        any(part.lower() in DATA_FOLDERS for part in relative.split("/")[:-1])
        or any(relative.startswith(f"{module}/") for module in modules)
        or _is_ignored(relative, project)
    )


def _is_ignored(relative: str, project: Project) -> bool:
    rules = parse_rules("", project.text(".gitignore").encode())
    return rules is not None and is_ignored(relative, directory=False, rules=(rules,))


def _resembles_file(name: str, project: Project) -> bool:
    names = {entry for _, _, files in os.walk(project.store) for entry in files}
    return bool(difflib.get_close_matches(name, names, n=1, cutoff=0.8))


def _missing_variable(failure: Failure, project: Project) -> _Found | None:
    if failure.exception != "KeyError" or not failure.frames:
        return None
    name = failure.message.strip("'\"")
    frame = failure.frames[-1]
    lines = project.text(str(frame.path)).splitlines()
    line = lines[frame.line - 1] if 0 < frame.line <= len(lines) else ""
    if not name.isidentifier() or "environ" not in line or name not in line:
        return None
    words = {word for path in project.test_files for word in re.findall(r"[A-Z][A-Z0-9_]{2,}", project.text(path))}
    if difflib.get_close_matches(name, words, n=1, cutoff=0.8):
        return None  # the tests set it, or one that is almost called so
    return _Found(
        kind=CauseKind.MISSING_VARIABLE,
        subject=name,
        sentence=f"the environment variable {name} is not set ({_importer(failure)} reads it; the jail hands none on)",
        remedy=f'set it where tests begin: `os.environ.setdefault("{name}", "...")` in a conftest.py',
    )


def _service(failure: Failure, project: Project) -> _Found | None:
    text = f"{failure.exception}: {failure.message}"
    if failure.exception != "ConnectionRefusedError" and not _REFUSED.search(text):
        return None
    if any(_SERVES.search(t) for t in (*project.sources(), *map(project.text, project.test_files))):
        return None  # what listens is part of the project
    target = _TARGET.search(text)
    where = f"{target[1]}:{target[2]}" if target else _importer(failure)
    return _Found(
        kind=CauseKind.SERVICE,
        subject=target[2] if target else "",
        sentence=f"a service is not running ({where}: connection refused), and the jail has no network"
        if "resol" not in text and "not known" not in text
        else f"a host on a network is asked for ({where}), and the jail has no network",
        remedy="name the tests that need no service with --test, or let the tests use a stand-in",
    )


def _by_message(failure: Failure, project: Project) -> _Found | None:
    text = f"{failure.exception}: {failure.message}"
    for kind, pattern, sentence, install, remedy in MESSAGES:
        match = pattern.search(text)
        if match is None:
            continue
        subject = match[1] if match.groups() else ""
        if failure.exception == "ZoneInfoNotFoundError" and subject not in zoneinfo.available_timezones():
            return None
        python = shlex.quote(project.environment.python)
        return _Found(
            kind=kind,
            subject=subject,
            sentence=f"{sentence.format(subject)} ({_importer(failure)})",
            install=install,
            remedy=remedy.format(subject, python=python),
        )
    return None


def _in_test(failure: Failure, project: Project) -> bool:
    """Whether the innermost frame in the repository is a test's."""
    return bool(failure.frames) and project.is_test(failure.frames[-1].path)


def _importer(failure: Failure) -> str:
    return f"{failure.frames[-1].path}:{failure.frames[-1].line}" if failure.frames else "a test"


_RULES: tuple[Callable[[Failure, Project], _Found | None], ...] = (
    _other_version,
    _missing_module,
    _missing_metadata,
    _python_version,
    _missing_name,
    _missing_plugin,
    _django,
    _missing_data,
    _missing_variable,
    _by_message,
    _service,
)
