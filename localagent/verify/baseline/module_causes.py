"""Failures for want of a module or of a name in one: to be installed, built, written, or put on the path.

Not promised: that the name of a distribution which nothing declares is right.
"""

import ast
import difflib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from localagent.code.moved_names import MOVED_NAMES
from localagent.code.source_text import parse_or_none
from localagent.domain.outcome import CauseKind, Failure
from localagent.repo.declared_dependencies import distribution_name
from localagent.repo.discover import repository_root
from localagent.verify.baseline.environment_tables import (
    BUILT_WITH,
    DISTRIBUTIONS,
    STDLIB_SINCE,
    STDLIB_UNTIL,
)
from localagent.verify.baseline.failed_project import (
    NO_ATTRIBUTE,
    NO_MODULE,
    NO_NAME,
    FoundCause,
    Project,
    importer,
    in_test,
    not_written,
    pip_argument,
)

_WINDOWS = frozenset({"winreg", "msvcrt", "winsound", "_winapi", "nt"})


def missing_module(failure: Failure, project: Project) -> FoundCause | None:
    """A module that cannot be found: the tree's own, the standard library's, a a neighbour's or a distribution's."""
    match = NO_MODULE.search(failure.message) if failure.exception == "ModuleNotFoundError" else None
    if match is None:
        return None
    dotted = match[1]
    top = dotted.partition(".")[0]
    homes = project.homes(top)
    if homes:
        return _own_module(failure, project, dotted, homes)
    if dotted in MOVED_NAMES and not in_test(failure, project) and project.declaration(top) is None:
        return None  # an edit imports it from where it lies now
    return (
        _library_module(failure, dotted, project)
        or _submodule(failure, project, top)
        or _sibling(failure, project, top)
        or _foreign_module(failure, project, top, dotted)
    )


def _own_module(failure: Failure, project: Project, dotted: str, homes: Sequence[str]) -> FoundCause | None:
    """A module below a name that the tree has: to be built, to be written, or to be put on the path."""
    *above, last = dotted.split(".")
    if not above:
        roots = [home for home in homes if home and not _is_package(project, home)]
        if "" in homes or not roots:
            return None
        roots.sort(key=lambda home: not _is_module_in(project, dotted, home))
        above_it = (roots[0], roots[0].rpartition("/")[0])
        project_at = next((folder for folder in above_it if folder and _is_project(project, folder)), None)
        return FoundCause(
            kind=CauseKind.NOT_ON_PATH,
            subject=dotted,
            sentence=f"{dotted} lies in {roots[0]}/, which is not on the path ({importer(failure)} imports it)",
            install=() if project_at is None else ("-e", f"./{project_at}"),
            remedy="" if project_at else f'set `pythonpath = ["{roots[0]}"]` in pytest\'s options',
        )
    if project.has_module(dotted):
        return None
    if (beside := _sibling(failure, project, dotted)) is not None:  # of a namespace that several projects share
        return beside
    if project.declared.builds_modules and ("version" in last or _has_native_source(project, last)):
        return FoundCause(
            kind=CauseKind.NOT_BUILT,
            subject=dotted,
            sentence=f"{dotted} is missing: the build of the project makes it ({importer(failure)} imports it)",
            install=("-e", "."),
        )
    if not in_test(failure, project):
        return None
    return not_written(dotted, failure, f"the module {'/'.join(dotted.split('.'))}.py")


def _is_module_in(project: Project, module: str, folder: str) -> bool:
    return f"{folder}/{module}.py" in project.files or _is_package(project, f"{folder}/{module}")


def _is_package(project: Project, folder: str) -> bool:
    return f"{folder}/__init__.py" in project.files


def _is_project(project: Project, folder: str) -> bool:
    return any((project.store / folder / name).is_file() for name in ("pyproject.toml", "setup.py"))


def _has_native_source(project: Project, stem: str) -> bool:
    names = {f"{stem}{end}" for end in BUILT_WITH}
    found = any(name in names for _, _, files in os.walk(project.store) for name in files)
    return found or (project.store / "Cargo.toml").is_file()


def _library_module(failure: Failure, dotted: str, project: Project) -> FoundCause | None:
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
        if top in _WINDOWS:
            told = f"{top} is there on Windows alone"
    return FoundCause(
        kind=CauseKind.PYTHON_VERSION,
        subject=top,
        sentence=f"{told} ({importer(failure)} imports it)",
        install=install,
        remedy=""
        if install
        else "name the tests that do without it with --test"
        if top in _WINDOWS
        else "name an interpreter that has it with --python",
    )


def _foreign_module(failure: Failure, project: Project, top: str, dotted: str) -> FoundCause | None:
    """A module of another distribution, declared or not; None for what looks like a slip of the pen."""
    choices = (
        *DISTRIBUTIONS.get(dotted, DISTRIBUTIONS.get(top, ())),
        top,
        f"python-{top}",
        f"py{top}",
        f"{top}-python",
    )
    near = str(failure.frames[-1].path) if failure.frames else ""
    declared = next((one for name in choices if (one := project.declaration(name, near)) is not None), None)
    asked_by_test = in_test(failure, project)
    if declared is None and top not in DISTRIBUTIONS:
        if not asked_by_test and _misspelt(top, project):
            return None
        if asked_by_test and (canonicalize_name(top) == project.declared.name or _is_named_after(failure, top)):
            return not_written(top, failure, f"the module {top}.py")
    sentence = f"the module {top} is missing ({_who_asks(failure, project, top)}; "
    if declared is not None:
        sentence += f"{declared.source} declares {distribution_name(declared.requirement)})"
        return FoundCause(
            kind=CauseKind.MISSING_MODULE,
            subject=top,
            sentence=sentence,
            install=declared.install or (pip_argument(declared),),
        )
    return FoundCause(
        kind=CauseKind.MISSING_MODULE,
        subject=top,
        sentence=f"{sentence}no file of the project declares it)",
        install=(choices[0],),
        remedy=f"declare it; or write {top}, if it is to be part of this project",
    )


def _who_asks(failure: Failure, project: Project, module: str) -> str:
    """What imports a module; where no file of the tree does, as for a framework, the file that names it."""
    if failure.frames:
        return f"{importer(failure)} imports it"
    named = re.compile(rf"[\"']{re.escape(module)}[\"'.]")
    found = next((path for path in project.files if named.search(project.text(path))), None)
    return f"{found} names it" if found else "a library imports it"


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


def _submodule(failure: Failure, project: Project, module: str) -> FoundCause | None:
    """A submodule of git that was not checked out, and that the module is called after or the importing file names."""
    text = project.text(str(failure.frames[-1].path)) if failure.frames else ""
    for path in project.submodules:
        held = any(name.startswith(f"{path}/") for name in project.files)
        if not held and (path.rsplit("/", 1)[-1] == module or path in text):
            return FoundCause(
                kind=CauseKind.MISSING_DATA,
                subject=path,
                sentence=f"the submodule {path} is not checked out ({importer(failure)} imports {module})",
                remedy="`git submodule update --init` brings it",
            )
    return None


def _sibling(failure: Failure, project: Project, module: str) -> FoundCause | None:
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
    return FoundCause(
        kind=CauseKind.SIBLING_PACKAGE,
        subject=module,
        sentence=f"the package {module} is outside the repository ({via} {at}), and the jail does not show it "
        f"({importer(failure)} imports it)",
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
    at = module.replace(".", "/")
    return (folder / f"{at}.py").is_file() or (folder / at / "__init__.py").is_file()


def missing_metadata(failure: Failure, project: Project) -> FoundCause | None:
    """The project itself, or a dependency, is not installed as a distribution."""
    match = re.search(r"No package metadata was found for ['\"]?([\w.-]+)|^([\w.-]+)$", failure.message)
    if failure.exception not in ("PackageNotFoundError", "DistributionNotFound") or match is None:
        return None
    name = match[1] or match[2]
    if canonicalize_name(name) != project.declared.name:
        return _foreign_module(failure, project, name, name) if project.declaration(name) else None
    return FoundCause(
        kind=CauseKind.NOT_BUILT,
        subject=name,
        sentence=f"the project {name} itself is not installed ({importer(failure)} reads its metadata)",
        install=("-e", "."),
    )


def other_version(failure: Failure, project: Project) -> FoundCause | None:
    """A dependency is there in a version that the project does not declare."""
    if failure.exception not in ("ImportError", "AttributeError", "TypeError", "ModuleNotFoundError"):
        return None
    match = NO_NAME.search(failure.message) or NO_ATTRIBUTE.search(failure.message) or NO_MODULE.search(failure.message)
    top = (match[2] if match.re is NO_NAME else match[1]).partition(".")[0] if match else ""
    for name in (*DISTRIBUTIONS.get(top, ()), top) if top and not project.homes(top) else ():
        declared, there = project.declaration(name), project.environment.distributions.get(canonicalize_name(name))
        if declared is None or there is None:
            continue
        try:
            wanted = Requirement(declared.requirement).specifier
        except InvalidRequirement:
            return None
        if not wanted.contains(there, prereleases=True):
            return FoundCause(
                kind=CauseKind.DEPENDENCY_VERSION,
                subject=top,
                sentence=f"{name} {there} is installed, and {declared.source} declares {declared.requirement} "
                f"({importer(failure)} uses it)",
                install=declared.install or (pip_argument(declared),),
            )
    return None


def missing_name(failure: Failure, project: Project) -> FoundCause | None:
    """A name that the tests take from a module of the tree, which nothing there resembles."""
    imported, attribute = NO_NAME.search(failure.message), NO_ATTRIBUTE.search(failure.message)
    if imported and failure.exception == "ImportError" and "circular import" not in failure.message:
        name, module = imported[1], imported[2]
    elif attribute and failure.exception == "AttributeError" and "circular import" not in failure.message:
        name, module = attribute[2], attribute[1]
    else:
        return None
    if not in_test(failure, project) or not project.has_module(module):
        return None
    word = re.compile(rf"\b{re.escape(name)}\b")
    if any(word.search(text) for text in project.sources()):
        return None
    inner = "/".join(module.split("."))
    here = [p for p in project.files if f"/{p}".endswith((f"/{inner}.py", f"/{inner}/__init__.py"))]
    if any(difflib.get_close_matches(name, _top_names(project.text(path)), n=1, cutoff=0.75) for path in here):
        return None
    return not_written(f"{module}.{name}", failure, f"`{name}` in {here[0] if here else module}")


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
