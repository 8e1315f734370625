"""Requirements out of setup.cfg and setup.py, as `sources` reads those of pyproject.toml: nothing is run or followed.

Of setup.py only what is written down counts: texts, lists, tuples and mappings of them, or a name of the module that
is bound once to such a one. What it computes is refused, for nobody can see what it brings in.
"""

import ast
import configparser
from collections.abc import Iterator

from localagent.code.source_text import parse_or_none
from localagent.deps.requirement import parse_requirement
from localagent.deps.sources import MOST_REQUIREMENTS, Item, text_of
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import UnreadableRequirement
from localagent.errors import UsageFault

_KEYS = ("install_requires", "setup_requires", "tests_require")
_EXTRAS = "extras_require"
_COMPUTED = "computed by setup.py, which is not run: write the list down"


def parse_setup_config(data: bytes, source: str, known: KnownNames) -> list[Item]:
    """Every requirement of a setup.cfg. UsageFault for what is none."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text_of(data, source))
    except configparser.Error as error:
        raise UsageFault(f"{source}: cannot be read: {str(error).splitlines()[0]}") from error
    lists = [(f"options.{key}", parser.get("options", key, fallback="")) for key in _KEYS]
    if parser.has_section(f"options.{_EXTRAS}"):
        lists += [(f"options.{_EXTRAS}.{extra}", text) for extra, text in parser.items(f"options.{_EXTRAS}")]
    items: list[Item] = []
    for place, text in lists:
        for line in text.splitlines():
            requirement = line.split(" #")[0].strip()
            if requirement.startswith("file:"):
                why = "another file is not followed: name it with -r"
                items.append(UnreadableRequirement(shown=requirement, source=f"{source}: {place}", why=why))
            elif requirement and not requirement.startswith("#"):
                items.append(parse_requirement(requirement, f"{source}: {place}", known))
    return _bounded(items, source)


def parse_setup_script(data: bytes, source: str, known: KnownNames) -> list[Item]:
    """Every requirement that the `setup(...)` of a setup.py is given."""
    tree = parse_or_none(data)
    if tree is None:
        return [UnreadableRequirement(shown=source, source=source, why="does not parse: nothing of it can be read")]
    bound = _bound_once(tree)
    items: list[Item] = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rsplit(".", 1)[-1] != "setup":
            continue
        for keyword in call.keywords:
            if keyword.arg is None:
                items.append(
                    UnreadableRequirement(shown="setup(**...)", source=f"{source}:{call.lineno}", why=_COMPUTED)
                )
            elif keyword.arg in (*_KEYS, _EXTRAS):
                where = f"{source}:{keyword.value.lineno}: {keyword.arg}"
                texts = _texts(keyword.value, bound, extras=keyword.arg == _EXTRAS)
                if texts is None:
                    items.append(UnreadableRequirement(shown=keyword.arg, source=where, why=_COMPUTED))
                else:
                    items += [parse_requirement(text, where, known) for text in texts]
    return _bounded(items, source)


def _bound_once(tree: ast.Module) -> dict[str, ast.expr]:
    """What the module binds a name to, for names that are bound once and only given to setup()."""
    given = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in (*_KEYS, _EXTRAS)
        for value in (node.value, *(node.value.values if isinstance(node.value, ast.Dict) else ()))
    }
    values: dict[str, ast.expr] = {}
    elsewhere: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0]
            elsewhere += [name.id] if name.id in values else []
            values[name.id] = node.value
            given.add(id(name))
    elsewhere += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in given]
    return {name: value for name, value in values.items() if name not in elsewhere}


def _texts(node: ast.expr, bound: dict[str, ast.expr], *, extras: bool) -> list[str] | None:
    """The texts of a list, or of each extra's; None where something in it is computed."""
    value = bound.get(node.id, node) if isinstance(node, ast.Name) else node
    if not extras:
        return _lines(value)
    if not isinstance(value, ast.Dict):
        return None
    found = [_lines(bound.get(one.id, one) if isinstance(one, ast.Name) else one) for one in value.values]
    return None if None in found or None in value.keys else [text for one in found if one is not None for text in one]


def _lines(node: ast.expr) -> list[str] | None:
    parts = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    texts = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return list(_stripped(texts)) if len(texts) == len(parts) else None


def _stripped(texts: list[str]) -> Iterator[str]:
    """As setuptools, which takes a text of several lines as a list, and passes over its comments."""
    for text in texts:
        for line in text.splitlines():
            if (bare := line.split(" #")[0].strip()) and not bare.startswith("#"):
                yield bare


def _bounded(items: list[Item], source: str) -> list[Item]:
    if len(items) > MOST_REQUIREMENTS:
        raise UsageFault(f"{source}: more than {MOST_REQUIREMENTS:,} requirements")
    return items
