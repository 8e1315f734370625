"""Failures for want of a Python version, a file, a program, a variable or a service."""

import ast
import difflib
import os
import re
import shlex
import sys
import zoneinfo
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from localagent.code.newer_syntax import needed_python
from localagent.code.source_text import parse_or_none
from localagent.code.spans import first_line, last_line
from localagent.domain.outcome import CauseKind, Failure
from localagent.repo.gitignore import is_ignored, parse_rules
from localagent.verify.baseline.environment_tables import (
    DATA_FOLDERS,
    MESSAGES,
)
from localagent.verify.baseline.failed_project import NO_ATTRIBUTE, NO_NAME, FoundCause, Project, importer, in_test

_DATABASE = re.compile(r"[\w./-]+\.(?:db|sqlite3?)")
_NO_FILE = re.compile(r"No such file or directory: '([^']+)'")


_REFUSED = re.compile(
    r"connection refused|\[Errno 1(?:11|01|13)\]|name or service not known|temporary failure in name resolution"
    r"|network is unreachable|nodename nor servname|failed to resolve '|error while fetching server api version"
    r"|is the docker daemon running|no servers? available|nobrokersavailable",
    re.IGNORECASE,
)


_RAISES_REFUSAL = re.compile(r"PermissionError\(|\bEPERM\b")
_WRITABLE = "/tmp/"  # noqa: S108 - the jail's own
_READ_VARIABLE = re.compile(r"(?:getenv|environ\.get)\(\s*[\"'](\w+)[\"']\s*\)")
_LOCAL_TIME = ("localtime", "fromtimestamp", "mktime", "datetime.now(", "astimezone(")
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


def large_file(failure: Failure, project: Project) -> FoundCause | None:
    """A file that Git LFS left as a pointer, and that the file which fails names."""
    texts = [project.text(str(frame.path)) for frame in failure.frames]
    for path in project.pointers:
        if any(path.rsplit("/", 1)[-1] in text for text in texts):
            return FoundCause(
                kind=CauseKind.MISSING_DATA,
                subject=path,
                sentence=f"{path} is a pointer of Git LFS and not what it stands for ({importer(failure)} fails)",
                remedy="`git lfs pull` brings it",
            )
    return None


def missing_database(failure: Failure, project: Project) -> FoundCause | None:
    """A SQLite file whose folder is not in the tree, or which git leaves out."""
    if failure.exception != "OperationalError" or not failure.frames:
        return None
    if "unable to open database file" not in failure.message and "no such table" not in failure.message:
        return None
    tree = parse_or_none(project.text(str(failure.frames[-1].path)))
    texts = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)] if tree is not None else []
    for path in filter(_DATABASE.fullmatch, (text for text in texts if isinstance(text, str))):  # no docstring is one
        if not (project.store / path).is_file() and (
            _is_data(path, project) or not (project.store / path).parent.is_dir()
        ):
            return FoundCause(
                kind=CauseKind.MISSING_DATA,
                subject=path,
                sentence=f"the database {path} is not there ({importer(failure)} opens it)",
                remedy=f"make {path} as the project's README says, or let the tests make one",
            )
    return None


def forbidden_path(failure: Failure, project: Project) -> FoundCause | None:
    """A folder of the system that the code names, and that no jail lets it write to."""
    match = re.search(r"\[Errno (?:13|30)\] [^:]+: '(/[^']+)'", failure.message)
    if match is None or not failure.frames or match[1].startswith((project.repo.rstrip("/") + "/", _WRITABLE)):
        return None
    text = project.text(str(failure.frames[-1].path))
    above = [up for up in map(str, Path(match[1]).parents) if up.count("/") > 1]
    named = re.search(rf"[\"']({re.escape(match[1])}(?:/[\w./-]*)?)[\"']", text)
    if named is None and not any(f'"{up}' in text or f"'{up}" in text for up in above):
        return None
    path = named[1] if named is not None else match[1]
    return FoundCause(
        kind=CauseKind.SYSTEM,
        subject=path,
        sentence=f"{path} cannot be written in the jail ({importer(failure)} does)",
        remedy="let the tests name another place, such as pytest's tmp_path; the jail lets write to the repository "
        "and /tmp alone",
    )


def refused_call(failure: Failure, project: Project) -> FoundCause | None:
    """A system call that the jail refuses; a file of the tree would be named in the message."""
    if failure.exception != "PermissionError" or failure.message != "[Errno 1] Operation not permitted":
        return None
    if any(_RAISES_REFUSAL.search(text) for text in _test_texts(failure, project)):
        return None  # the test plays the refusal
    return FoundCause(
        kind=CauseKind.SYSTEM,
        subject=importer(failure),
        sentence=f"the jail refuses a system call ({importer(failure)}: Operation not permitted)",
        remedy="name the tests that do without it with --test: a jail lists no network interfaces, opens no raw "
        "sockets and changes no users, clocks or priorities",
    )


def _test_texts(failure: Failure, project: Project) -> list[str]:
    """The text of the test that failed; where it is not known which that is, of all tests."""
    every = [project.text(test) for test in project.test_files]
    if not failure.frames or not project.is_test(failure.frames[0].path):
        return every
    line, text = failure.frames[0].line, project.text(str(failure.frames[0].path))
    tree = parse_or_none(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= last_line(node):
            return ["\n".join(text.splitlines()[first_line(node) - 1 : last_line(node)])]
    return every


def hint(failure: Failure, project: Project) -> str:
    """What may be behind a failure that is searched all the same; "" for nothing."""
    if "partially initialized module" in failure.message or "circular import" in failure.message:
        return f"a circular import ({importer(failure)}): move one import, or what it imports, into a third module"
    frame = failure.frames[-1] if failure.frames else None
    lines = project.text(str(frame.path)).splitlines() if frame is not None else []
    line = lines[frame.line - 1] if frame is not None and 0 < frame.line <= len(lines) else ""
    if "NoneType" in failure.message and (read := _READ_VARIABLE.search(line)):
        return (
            f"{read[1]} is not set where the tests run ({importer(failure)} reads it; the jail hands no variable on): "
            f'set it in a conftest.py, `os.environ.setdefault("{read[1]}", "...")`'
        )
    named = [name for name in _set_by_tox(project) if any(word in text for text in project.sources() for word in name)]
    if named:
        told = ", ".join(words[0] for words in named)
        return f"tox.ini sets {told} for the tests, and they ran without: set what they need in a conftest.py"
    return ""


def _set_by_tox(project: Project) -> list[tuple[str, ...]]:
    """The variables that tox sets, each with the words by which a source would depend on it."""
    setenv = re.search(r"^setenv\s*=[ \t]*(.*\n(?:[ \t]+.*\n)*)", project.text("tox.ini") + "\n", re.MULTILINE)
    found = re.findall(r"^\s*([A-Z][A-Z0-9_]+)\s*=\s*(.*)$", setenv[1], re.MULTILINE) if setenv else []
    names = [name for name, value in found if (name, value.strip()) != ("PYTHONPATH", "{toxinidir}")]
    names = [name for name in names if name != "DJANGO_SETTINGS_MODULE"]  # taken, or asked for where it is missing
    return [(name, *_LOCAL_TIME) if name == "TZ" else (name,) for name in names]


def _is_data(relative: str, project: Project) -> bool:
    return (
        any(part.lower() in DATA_FOLDERS for part in relative.split("/")[:-1])
        or any(relative.startswith(f"{module}/") for module in project.submodules)
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
    others = [row for p in project.test_files for row in project.text(p).splitlines() if row != line]
    words = {word for row in others for word in re.findall(r"[A-Z][A-Z0-9_]{2,}", row)}
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
