"""Failures for want of a Python version, a file, a program, a variable or a service."""

import difflib
import os
import re
import shlex
import sys
import zoneinfo

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from localagent.code.newer_syntax import needed_python
from localagent.domain.outcome import CauseKind, Failure
from localagent.repo.gitignore import is_ignored, parse_rules
from localagent.verify.baseline.environment_tables import (
    DATA_FOLDERS,
    MESSAGES,
)
from localagent.verify.baseline.failed_project import NO_ATTRIBUTE, NO_NAME, FoundCause, Project, importer, in_test

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


def python_version(failure: Failure, project: Project) -> FoundCause | None:
    """The tests or sources need another Python than the one that runs them."""
    if (written := _newer_syntax(failure, project)) is not None:
        return written
    asked = project.declared.requires_python
    try:
        fits = SpecifierSet(re.sub(r"\^", ">=", asked)).contains(project.python, prereleases=True)
    except InvalidSpecifier:
        return None
    message = failure.message
    attribute = NO_ATTRIBUTE.search(message)
    by_name = NO_NAME.search(message)
    newer = (
        failure.exception in ("SyntaxError", "IndentationError")
        or (by_name is not None and by_name[2].partition(".")[0] in sys.stdlib_module_names)
        or (attribute is not None and attribute[1].partition(".")[0] in sys.stdlib_module_names)
        or (failure.exception == "TypeError" and "type(s) for |: " in message)
    )
    if fits or not newer:
        return None
    return FoundCause(
        kind=CauseKind.PYTHON_VERSION,
        subject=asked,
        sentence=f"the project needs Python {asked}, and {project.environment.python} is Python {project.python}",
        remedy="name an interpreter of that version with --python",
    )


def _newer_syntax(failure: Failure, project: Project) -> FoundCause | None:
    """A file in the syntax of a newer Python than the one that runs the tests."""
    if failure.exception != "SyntaxError" or not failure.frames:
        return None
    path = str(failure.frames[-1].path)
    needed = needed_python(project.text(path))
    version = re.match(r"(\d+)\.(\d+)", project.python)
    if needed is None or version is None or (int(version[1]), int(version[2])) >= needed:
        return None
    want = ".".join(map(str, needed))
    return FoundCause(
        kind=CauseKind.PYTHON_VERSION,
        subject=want,
        sentence=f"{path} needs Python ≥ {want}, and {project.environment.python} is Python {project.python}",
        remedy="name an interpreter of that version with --python",
    )


def missing_data(failure: Failure, project: Project) -> FoundCause | None:
    """A data file or a program that is not there, and that no edit would make."""
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
    if in_test(failure, project):
        if any(name in text for text in project.sources()):
            return None  # what the sources name they may have to write
    elif any(name in project.text(test) for test in project.test_files) or _resembles_file(name, project):
        return None
    ignored = inside and _is_ignored(relative, project)
    return FoundCause(
        kind=CauseKind.MISSING_DATA,
        subject=relative,
        sentence=f"the data file {relative} is not there ({importer(failure)} opens it"
        + ("; .gitignore leaves it out)" if ignored else ")"),
        remedy=f"bring {relative} into the tree (git submodule update --init, git lfs pull, or as the project's README "
        "says)"
        if inside or not path.startswith("/")
        else f"the jail shows the repository and the environment alone: keep {relative} in the repository",
    )


def _missing_program(program: str, failure: Failure, project: Project) -> FoundCause | None:
    frame = failure.frames[-1]
    near = "\n".join(project.text(str(frame.path)).splitlines()[max(0, frame.line - 3) : frame.line + 3])
    if not re.search(r"subprocess|Popen|check_output|check_call|\brun\(|\bexec", near):
        return None
    if not any(program in text for text in (near, *map(project.text, project.test_files))):
        return None
    return FoundCause(
        kind=CauseKind.SYSTEM,
        subject=program,
        sentence=f"the program {program} is not installed ({importer(failure)} starts it)",
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


def missing_variable(failure: Failure, project: Project) -> FoundCause | None:
    """A variable of the environment that the project takes for granted."""
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
    return FoundCause(
        kind=CauseKind.MISSING_VARIABLE,
        subject=name,
        sentence=f"the environment variable {name} is not set ({importer(failure)} reads it; the jail hands none on)",
        remedy=f'set it where tests begin: `os.environ.setdefault("{name}", "...")` in a conftest.py',
    )


def service(failure: Failure, project: Project) -> FoundCause | None:
    """A server or a host that is out of reach in the jail."""
    text = f"{failure.exception}: {failure.message}"
    if failure.exception != "ConnectionRefusedError" and not _REFUSED.search(text):
        return None
    if any(_SERVES.search(t) for t in (*project.sources(), *map(project.text, project.test_files))):
        return None  # what listens is part of the project
    target = _TARGET.search(text)
    where = f"{target[1]}:{target[2]}" if target else importer(failure)
    return FoundCause(
        kind=CauseKind.SERVICE,
        subject=target[2] if target else "",
        sentence=f"a service is not running ({where}: connection refused), and the jail has no network"
        if "resol" not in text and "not known" not in text
        else f"a host on a network is asked for ({where}), and the jail has no network",
        remedy="name the tests that need no service with --test, or let the tests use a stand-in",
    )


def by_message(failure: Failure, project: Project) -> FoundCause | None:
    """What the tables of messages know: locales, time zones, shared libraries and the like."""
    text = f"{failure.exception}: {failure.message}"
    for kind, pattern, sentence, install, remedy in MESSAGES:
        match = pattern.search(text)
        if match is None:
            continue
        subject = match[1] if match.groups() else ""
        if failure.exception == "ZoneInfoNotFoundError" and subject not in zoneinfo.available_timezones():
            return None
        python = shlex.quote(project.environment.python)
        return FoundCause(
            kind=kind,
            subject=subject,
            sentence=f"{sentence.format(subject)} ({importer(failure)})",
            install=install,
            remedy=remedy.format(subject, python=python),
        )
    return None
