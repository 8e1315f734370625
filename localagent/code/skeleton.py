"""Skeletons of what tests want and nothing has: modules with signatures, attributes and kinds, bodies left open.

A body raises NotImplementedError. What a name is follows from how the tests use it: raised, an exception; called with
a capital first letter, or with attributes of its own, a class; called, a function; else a constant. Parameters are
named after keywords and variables that the tests pass, else after the kind of a literal; one that not every call gives
has the default None.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from localagent.code.names import last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, FunctionSpan, last_line, outermost_functions
from localagent.code.test_usage import CallShape, MissingModule, Usage, missing_names
from localagent.domain.paths import RepoPath

__all__ = ["missing_names", "skeletons"]

_LEFT_OPEN = "NotImplementedError"
_OPEN = f"raise {_LEFT_OPEN}"
_SPECIAL = {
    "__contains__": "item",
    "__eq__": "other: object",
    "__lt__": "other",
    "__getitem__": "key",
    "__setitem__": "key, value",
    "__exit__": "*exc: object",
    "__add__": "other",
    "__sub__": "other",
    "__mul__": "other",
    "__truediv__": "other",
    "__mod__": "other",
}


def skeletons(missing: Sequence[MissingModule], sources: Mapping[RepoPath, bytes]) -> dict[RepoPath, bytes]:
    """The files that give the tests what they import: new ones, and those of the project with names put at the end.

    Packages get an `__init__.py` where one is not there; below `src` where the project has a `src` folder of packages.
    """
    files: dict[RepoPath, bytes] = {}
    base = "src/" if any(path.startswith("src/") and path.endswith(".py") for path in sources) else ""
    for module in missing:
        text = "\n\n".join(_definition(name, usage) for name, usage in sorted(module.names.items(), key=_order))
        if module.path is not None:
            before = sources[module.path]
            gap = b"" if not before.strip() else b"\n\n" if before.endswith(b"\n") else b"\n\n\n"
            files[module.path] = before + gap + text.encode()
            continue
        inner = any(other.name.startswith(f"{module.name}.") for other in missing)
        path = RepoPath(base + module.name.replace(".", "/") + ("/__init__.py" if inner else ".py"))
        files[path] = text.encode()
        for package in _packages(path, base):
            if package not in sources:
                files.setdefault(package, b"")
    return files


def open_functions(source: bytes) -> list[FunctionSpan]:
    """The functions that stand in no other one and, docstrings aside, only raise NotImplementedError."""
    tree = parse_or_none(source)
    return [] if tree is None else [span for span in outermost_functions(tree) if _is_open(span.node)]


def empty_bodies(source: bytes) -> bytes:
    """A source whose open functions return None: what passes then asks only that the names are there."""
    lines = source.decode().splitlines(keepends=True)
    for span in reversed(open_functions(source)):
        statement = span.node.body[-1]
        indent = " " * statement.col_offset
        lines[statement.lineno - 1 : last_line(statement)] = [f"{indent}return None\n"]
    return "".join(lines).encode()


def _is_open(function: Function) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return len(body) == 1 and isinstance(body[0], ast.Raise) and _raised(body[0]) == _LEFT_OPEN


def _raised(node: ast.Raise) -> str:
    return last_name(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)


def _order(named: tuple[str, Usage]) -> tuple[int, str]:
    """Constants, exceptions, then the rest, each by name."""
    name, usage = named
    return (0 if _is_constant(name, usage) else 1 if usage.raised else 2, name)


def _packages(path: RepoPath, base: str) -> Iterator[RepoPath]:
    parts = path.removeprefix(base).split("/")[:-1]
    return (RepoPath(base + "/".join((*parts[:n], "__init__.py"))) for n in range(1, len(parts) + 1))


def _is_constant(name: str, usage: Usage) -> bool:
    used = usage.calls or usage.attributes or usage.made or usage.raised or usage.subclassed or usage.decorates
    return not used and (usage.constant or name.isupper())


def _is_class(name: str, usage: Usage) -> bool:
    likely = name[:1].isupper() and not name.isupper()
    return likely or usage.subclassed or bool(usage.attributes)


def _definition(name: str, usage: Usage) -> str:
    if usage.raised:
        return f"class {name}(Exception):\n    pass\n"
    if _is_constant(name, usage):
        return f"{name} = None\n"
    if _is_class(name, usage):
        return _class(name, usage)
    return _function(name, usage)


def _function(name: str, usage: Usage, *, first: str = "", indent: str = "") -> str:
    parameters = ", ".join(filter(None, (first, *_parameters(usage.calls or _decorated(usage)))))
    start = "async def" if usage.awaited else "def"
    return f"{indent}{start} {name}({parameters}):\n{indent}    {_OPEN}\n"


def _decorated(usage: Usage) -> list[CallShape]:
    return [CallShape(positional=("function",), keywords=())] if usage.decorates else []


def _class(name: str, usage: Usage) -> str:
    parts = [f"    {attribute} = None\n" for attribute, use in sorted(usage.attributes.items()) if not use.calls]
    fields = sorted(attribute for attribute, use in usage.made.items() if not use.calls)
    parameters = _parameters(usage.calls)
    if parameters or fields:
        given = {p.partition("=")[0] for p in parameters}
        lines = [f"        self.{f} = {f if f in given else None}\n" for f in fields] or [f"        {_OPEN}\n"]
        parts.append(f"    def __init__({', '.join(('self', *parameters))}):\n{''.join(lines)}")
    for attribute, use in sorted(usage.attributes.items()):
        if use.calls:
            parts.append("    @classmethod\n" + _function(attribute, use, first="cls", indent="    "))
    for special in sorted(usage.operations):
        arguments = ", ".join(filter(None, ("self", _SPECIAL.get(special, ""))))
        parts.append(f"    def {special}({arguments}):\n        {_OPEN}\n")
    for attribute, use in sorted(usage.made.items()):
        if use.calls:
            parts.append(_function(attribute, use, first="self", indent="    "))
    return f"class {name}:\n" + ("\n".join(parts) or "    pass\n")


def _parameters(calls: Sequence[CallShape]) -> list[str]:
    """Parameters for all calls of one function; `None` is the default of what not every call gives."""
    if not calls:
        return []
    least = min(len(c.positional) for c in calls)
    keywords = list(dict.fromkeys(k for c in calls for k in c.keywords))
    named: list[str] = []
    for place, given in enumerate(zip_longest(*(c.positional for c in calls))):
        words = [w for w in given if w and w not in named and w.isidentifier()]
        # a keyword of calls that pass less stands for this position
        short = {k for c in calls if len(c.positional) <= place for k in c.keywords}
        word = next((k for k in keywords if k in short and k not in named and place >= least), "")
        named.append(word or (words[0] if len({*words}) == 1 and "" not in given else f"arg{place + 1}"))
    always = set(named[:least]) | set.intersection(*({*c.keywords, *named[: len(c.positional)]} for c in calls))
    every = [*named, *(k for k in keywords if k not in named)]
    required = [name for name in every if name in always]
    return [*required, *(f"{name}=None" for name in every if name not in always)]
