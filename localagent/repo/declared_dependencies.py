"""What a project says it needs: requirements files, pyproject.toml, setup.cfg, setup.py, tox, nox, conda, lock files.

Reads a copy of the tree, bounded; nothing is run or followed. A file that cannot be parsed declares nothing: this says
what is missing, the dependency guard (`deps/`) judges. Not promised: what a build computes.
"""

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from localagent.code.source_text import parse_or_none
from localagent.errors import UsageFault
from localagent.fs.bounded_read import matches_below, read_below

MOST_BYTES = 4 << 20
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:$|[\[<>=!~;@(, ])")
_REQUIREMENTS = ("*requirements*.txt", "requirements/*.txt", "requirements/*.in", "tests/*requirements*.txt")
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_CALLED = frozenset({"install_requires", "tests_require", "extras_require", "setup_requires"})


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredDependency:
    """`requirement` as it is written in `source`; `install`: arguments of pip that bring it in, () for its name."""

    requirement: str
    source: str
    install: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredProject:
    """What the files of a project declare. `dependencies` by normalized name, the first declaration of each."""

    name: str
    requires_python: str
    dependencies: dict[str, DeclaredDependency]
    files: tuple[str, ...]
    builds_modules: bool  # a build backend or setup.py makes modules that are not in the tree


def declared_project(tree: Path) -> DeclaredProject:
    """What the files at the top of `tree` say."""
    found: dict[str, DeclaredDependency] = {}
    files: dict[str, None] = {}
    top = _toml(tree, "pyproject.toml")
    config = _config(tree, "setup.cfg")
    for one in _all(tree, top, config):
        files.setdefault(one.source)
        if name := distribution_name(one.requirement):
            found.setdefault(canonicalize_name(name), one)
    project = _table(top.get("project"))
    poetry = _table(_table(top.get("tool")).get("poetry"))
    asked = project.get("requires-python") or _table(poetry.get("dependencies")).get("python")
    asked = asked or config.get("options", "python_requires", fallback="")
    title = project.get("name") or poetry.get("name") or config.get("metadata", "name", fallback="")
    setup = _text(tree, "setup.py")
    text = setup + _text(tree, "pyproject.toml")
    return DeclaredProject(
        name=canonicalize_name(title) if isinstance(title, str) else "",
        requires_python=asked if isinstance(asked, str) else "",
        dependencies=found,
        files=tuple(files),
        builds_modules=bool(
            re.search(r"ext_modules|cythonize|maturin|scikit-build|meson-python|setuptools[-_]rust|cffi_modules", text)
            or re.search(r"setuptools[-_]scm|hatch-vcs|version[-_]file|write_to", text)
        ),
    )


def _all(tree: Path, top: dict[str, Any], config: configparser.RawConfigParser) -> Iterator[DeclaredDependency]:
    for pattern in _REQUIREMENTS:
        for path in _matches(tree, pattern):
            for line in _text(tree, path).splitlines():
                requirement = re.sub(r"^(?:-e|--editable)[ =]*(?=git\+)", "", _bare(line))
                if not requirement.startswith(("#", "-")):
                    yield DeclaredDependency(requirement=requirement, source=path, install=("-r", path))
    yield from _pyproject(top)
    for key, install in (("install_requires", ("-e", ".")), ("tests_require", ())):
        yield from _lines(config.get("options", key, fallback=""), "setup.cfg", install)
    extras = "options.extras_require"
    for extra in config.options(extras) if config.has_section(extras) else ():
        yield from _lines(config.get(extras, extra), "setup.cfg", ("-e", f".[{extra}]"))
    yield from _calls(_text(tree, "setup.py"), "setup.py")
    yield from _calls(_text(tree, "noxfile.py"), "noxfile.py")
    tox = _config(tree, "tox.ini")
    for section in tox.sections():
        deps = tox.get(section, "deps", fallback="")
        yield from _lines(re.sub(r"^\s*[\w{},!.-]+:\s+", "", deps, flags=re.MULTILINE), "tox.ini", ())
    pipfile = _toml(tree, "Pipfile")
    for section in ("packages", "dev-packages"):
        yield from _named(_table(pipfile.get(section)), "Pipfile")
    for path in ("environment.yml", "environment.yaml"):
        yield from _lines("\n".join(re.findall(r"^\s*-\s+([\w.-]+)", _text(tree, path), re.MULTILINE)), path, ())
    for path in _LOCKS:
        packages = _toml(tree, path).get("package") or _toml(tree, path).get("packages")
        for package in packages if isinstance(packages, list) else ():
            yield from _lines(str(_table(package).get("name", "")), path, ())


def _pyproject(top: dict[str, Any]) -> Iterator[DeclaredDependency]:
    source, tools = "pyproject.toml", _table(top.get("tool"))
    project, poetry = _table(top.get("project")), _table(tools.get("poetry"))
    yield from _strings(project.get("dependencies"), source, ("-e", "."))
    yield from _named(_table(poetry.get("dependencies")), source, ("-e", "."))
    for extra, listed in _table(project.get("optional-dependencies")).items():
        yield from _strings(listed, source, ("-e", f".[{extra}]"))
    for group, listed in _table(top.get("dependency-groups")).items():
        yield from _strings(listed, source, ("--group", group))
    yield from _named(_table(poetry.get("dev-dependencies")), source)
    for group in _table(poetry.get("group")).values():
        yield from _named(_table(_table(group).get("dependencies")), source)
    for listed in _table(_table(tools.get("pdm")).get("dev-dependencies")).values():
        yield from _strings(listed, source, ())
    yield from _strings(_table(tools.get("uv")).get("dev-dependencies"), source, ())
    for environment in _table(_table(tools.get("hatch")).get("envs")).values():
        for key in ("dependencies", "extra-dependencies"):
            yield from _strings(_table(environment).get(key), source, ())
    pixi = _table(tools.get("pixi"))
    for key in ("dependencies", "pypi-dependencies"):
        yield from _named(_table(pixi.get(key)), source)


def _calls(text: str, source: str) -> Iterator[DeclaredDependency]:
    """Text constants that setup.py gives as requirements, or that a nox session installs."""
    tree = parse_or_none(text)
    if tree is None:
        return
    for node in ast.walk(tree):
        lists: list[ast.AST] = []
        if isinstance(node, ast.keyword) and node.arg in _CALLED:
            lists = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "install":
            lists = list(node.args)
        for value in (inner for one in lists for inner in ast.walk(one)):
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and not value.value.startswith("-"):
                yield DeclaredDependency(requirement=value.value, source=source)


def _strings(listed: object, source: str, install: tuple[str, ...]) -> Iterator[DeclaredDependency]:
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, str):
            yield DeclaredDependency(requirement=item.strip(), source=source, install=install)


def _named(table: dict[str, Any], source: str, install: tuple[str, ...] = ()) -> Iterator[DeclaredDependency]:
    for name in table:
        if name != "python":
            yield DeclaredDependency(requirement=name, source=source, install=install)


def _lines(text: str, source: str, install: tuple[str, ...]) -> Iterator[DeclaredDependency]:
    for line in text.splitlines():
        if distribution_name(_bare(line)):
            yield DeclaredDependency(requirement=_bare(line), source=source, install=install)


def distribution_name(requirement: str) -> str:
    """The distribution that a requirement asks for; of a bare URL of git what `egg=` says, else the repository."""
    if name := _NAME.match(requirement):
        return name[1]
    if not requirement.startswith("git+"):
        return ""
    url, _, fragment = requirement.partition("#")
    egg = re.search(r"(?:^|&)egg=([\w.-]+)", fragment)
    place = url.partition("://")[2].partition("/")[2].partition("@")[0]
    return egg[1] if egg else place.rstrip("/").rpartition("/")[2].removesuffix(".git")


def _bare(line: str) -> str:
    """A line of a requirements file without its comment and its hashes."""
    return re.sub(r"(^|\s)(#.*|--hash.*|\\)$", "", line).strip()


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _matches(tree: Path, pattern: str) -> list[str]:
    try:
        return matches_below(tree, pattern)
    except UsageFault:
        return []  # a folder of more entries than are looked through


def _text(tree: Path, path: str) -> str:
    try:
        return read_below(tree, path, MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""  # most projects have few of these files


def _toml(tree: Path, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(tree, path))
    except (ValueError, RecursionError):
        return {}


def _config(tree: Path, path: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(_text(tree, path))
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser
