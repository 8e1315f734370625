"""Requirements out of files: requirements files and pyproject.toml. What a line says is judged, never followed.

Not read, and refused where met: other files (`-r`, `-c`), indexes, editable and direct requirements, environment
variables, tables of other tools. Not promised: what a build backend computes (`dynamic`); it is refused too.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from localagent.deps.requirement import parse_requirement
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import UnreadableRequirement, Wanted
from localagent.errors import UsageFault

MOST_FILE_BYTES = 8 << 20
MOST_REQUIREMENTS = 20_000
_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"\s--hash[=\s]\s*(\S+)")
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
_OTHER_BREAKS = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
_COOKIE = re.compile(r"^#.*?coding[:=][ \t]*([-\w.]+)")
_HARMLESS = {"--require-hashes", "--no-index", "--only-binary :all:", "--only-binary=:all:"}
_OPTIONS = {
    "-e": "an editable requirement: its build runs code of a folder",
    "--editable": "an editable requirement: its build runs code of a folder",
    "-i": "another index: what comes in comes from the folder given with --index",
    "--index-url": "another index: what comes in comes from the folder given with --index",
    "--extra-index-url": "another index: what comes in comes from the folder given with --index",
    "-f": "another place to look: what comes in comes from the folder given with --index",
    "--find-links": "another place to look: what comes in comes from the folder given with --index",
    "--trusted-host": "an address: nothing here reaches a network",
    "-r": "another file is not followed: name it with -r of its own",
    "--requirement": "another file is not followed: name it with -r of its own",
    "-c": "another file is not followed: write the version into the requirement",
    "--constraint": "another file is not followed: write the version into the requirement",
    "--no-binary": "source distributions: wheels only, building runs code",
}

Item = Wanted | UnreadableRequirement


def text_of(data: bytes, source: str) -> str:
    """UTF-8 text; UsageFault for anything else."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageFault(f"{source}: not UTF-8: {error.reason} at byte {error.start}") from error


def parse_requirements(data: bytes, source: str, known: KnownNames) -> list[Item]:
    """Every requirement of a requirements file, in order; what cannot be taken is an Unreadable with its line."""
    items: list[Item] = []
    text = text_of(data, source)
    _refuse_two_readings(text, source)
    for number, line in _joined(text):
        if len(items) >= MOST_REQUIREMENTS:
            raise UsageFault(f"{source}: more than {MOST_REQUIREMENTS:,} requirements")
        item = _line(line, f"{source}:{number}", known)
        if item is not None:
            items.append(item)
    return items


def _refuse_two_readings(text: str, source: str) -> None:
    """UsageFault where pip could read other lines, or other letters, than are read here."""
    if found := _OTHER_BREAKS.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise UsageFault(f"{source}:{line}: a control character ({found[0]!r}), which some take for a new line")
    for beginning in text.split("\n")[:2]:
        cookie = _COOKIE.search(beginning)
        if cookie and cookie[1].lower().replace("_", "-") not in ("utf-8", "utf8", "ascii"):
            raise UsageFault(f"{source}: declares another encoding ({cookie[1]!r}); UTF-8 is read here")


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, logical line): continued lines joined, comments and blank lines gone."""
    parts: list[str] = []
    start = 1
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        if not parts:
            start = number
        comment = _COMMENT.match(line.strip()) is not None
        if line.endswith("\\") and not comment:
            parts.append(line[:-1])
            continue
        joined = _COMMENT.sub("", "".join((*parts, line))).strip()
        parts = []
        if joined:
            yield start, joined
    if joined := _COMMENT.sub("", "".join(parts)).strip():
        yield start, joined


def _line(line: str, source: str, known: KnownNames) -> Item | None:
    if line in _HARMLESS:
        return None
    if _VARIABLE.search(line):
        return UnreadableRequirement(
            shown=line, source=source, why="a variable of the environment: write what it stands for"
        )
    if line.startswith("-"):
        word = re.split(r"[\s=]", line, maxsplit=1)[0]
        for option, why in _OPTIONS.items():
            if word == option or (len(option) == 2 and word.startswith(option) and not word.startswith("--")):
                return UnreadableRequirement(shown=line, source=source, why=why)
        return UnreadableRequirement(shown=line, source=source, why="an option that is not taken here")
    hashes: set[str] = set()
    for written in _HASH.findall(" " + line):
        found = _SHA256.fullmatch(written)
        if found is None:
            return UnreadableRequirement(
                shown=line, source=source, why=f"not a SHA-256 (`sha256:` and 64 hex digits): {written!r}"
            )
        hashes.add(found[1])
    bare = _HASH.sub("", " " + line).strip()
    if re.search(r"\s--?\w", bare):
        return UnreadableRequirement(shown=bare, source=source, why="an option of a requirement that is not taken here")
    return parse_requirement(bare, source, known, frozenset(hashes))


def parse_project(data: bytes, source: str, known: KnownNames) -> list[Item]:
    """Everything a pyproject.toml asks for: dependencies, extras, groups and what its build needs."""
    try:
        top = tomllib.loads(text_of(data, source))
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{source}: not TOML: {error}") from error
    items: list[Item] = []
    for place, value in _dependency_tables(top):
        if not isinstance(value, list):
            items.append(UnreadableRequirement(shown=place, source=source, why="must be an array of requirements"))
            continue
        if len(items) + len(value) > MOST_REQUIREMENTS:
            raise UsageFault(f"{source}: more than {MOST_REQUIREMENTS:,} requirements")
        for item in value:
            where = f"{source}: {place}"
            if isinstance(item, str):
                items.append(parse_requirement(item, where, known))
            elif not (
                place.startswith("dependency-groups.") and isinstance(item, dict) and set(item) == {"include-group"}
            ):
                items.append(UnreadableRequirement(shown=repr(item)[:80], source=where, why="not a requirement"))
    items += [UnreadableRequirement(shown=shown, source=source, why=why) for shown, why in _not_read(top)]
    return items


def names_dependencies(data: bytes) -> bool:
    """Whether a pyproject.toml says itself what the project needs, in [project] or in a table of another tool."""
    top = tomllib.loads(data.decode("utf-8-sig"))
    return "project" in top or any("dependencies" in _table(table) for table in _table(top.get("tool")).values())


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dependency_tables(top: dict[str, Any]) -> Iterator[tuple[str, object]]:
    project, build = _table(top.get("project")), _table(top.get("build-system"))
    if "dependencies" in project:
        yield "project.dependencies", project["dependencies"]
    if "requires" in build:
        yield "build-system.requires", build["requires"]
    for name, extra in _table(project.get("optional-dependencies")).items():
        yield f"project.optional-dependencies.{name}", extra
    for name, group in _table(top.get("dependency-groups")).items():
        yield f"dependency-groups.{name}", group


def _not_read(top: dict[str, Any]) -> Iterator[tuple[str, str]]:
    dynamic = _table(top.get("project")).get("dynamic")
    for name in ("dependencies", "optional-dependencies"):
        if isinstance(dynamic, list) and name in dynamic:
            yield f"project.dynamic: {name}", "computed while building, so it cannot be read: write the list down"
    tools = _table(top.get("tool"))
    for tool in ("poetry", "pdm", "uv", "hatch"):
        table = _table(tools.get(tool))
        for key in ("dependencies", "dev-dependencies", "group", "sources", "source", "index"):
            if key in table:
                yield f"tool.{tool}.{key}", "a table of another tool is not read: use [project] and [dependency-groups]"
