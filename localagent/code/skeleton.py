"""Skeletons of what tests want and nothing has: modules with signatures, attributes and kinds, bodies left open.

A body raises NotImplementedError. What a name is follows from how the tests use it: raised, an exception; called with
a capital first letter, or with attributes of its own, a class; called, a function; else a constant. Parameters are
named after keywords and variables that the tests pass, else after the kind of a literal; one that not every call gives
has the default None. A class whose objects are compared, and are all that they are given, is a dataclass; what is only
read, and not given, of objects without methods is a property; a container that is given nothing begins empty.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from localagent.code.names import last_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, FunctionSpan, last_line, outermost_functions
from localagent.code.test_usage import CallShape, MissingModule, Usage, missing_names
from localagent.domain.paths import RepoPath

__all__ = ["missing_names", "skeletons"]

_LEFT_OPEN = "NotImplementedError"
_OPEN = f"raise {_LEFT_OPEN}"
_CONTAINS = frozenset({"__contains__", "__len__", "__iter__", "__getitem__", "__setitem__"})
_OF_EXCEPTIONS = frozenset(dir(Exception)) | {"errno", "strerror", "filename"}
_SPECIAL = {
    "__contains__": "item",
    "__eq__": "other: object",
    "__lt__": "other",
    "__le__": "other",
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
        names = _with_kinds(module.names)
        imported = module.path is not None and b"import dataclass\n" in sources[module.path]
        records = module.path is None or imported
        text = "\n\n".join(_definition(name, usage, records=records) for name, usage in _ordered(names))
        if "@dataclass\n" in text and not imported:
            text = f"from dataclasses import dataclass\n\n\n{text}"
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


def _with_kinds(names: Mapping[str, Usage]) -> Mapping[str, Usage]:
    """The names, where a kind of an exception, and what is a kind of one, is an exception too."""
    found = dict(names)
    for _ in found:  # a base of a base is as many steps away as there are names, at most
        for name, usage in names.items():
            family = [name, *(base for base in usage.bases if base in found)]
            if any(found[one].raised for one in family):
                found |= {one: replace(found[one], raised=True) for one in family}
    return found


def _ordered(names: Mapping[str, Usage]) -> list[tuple[str, Usage]]:
    """Constants, exceptions, then the rest, each by name; what others are kinds of comes before them."""
    waiting = sorted(names, key=lambda name: (0 if _is_constant(name, names[name]) else 2 - names[name].raised, name))
    done: list[str] = []
    while waiting:
        free = (name for name in waiting if not set(names[name].bases) & set(waiting) - {name})
        done.append(next(free, waiting[0]))
        waiting.remove(done[-1])
    return [(name, names[name]) for name in done]


def _packages(path: RepoPath, base: str) -> Iterator[RepoPath]:
    parts = path.removeprefix(base).split("/")[:-1]
    return (RepoPath(base + "/".join((*parts[:n], "__init__.py"))) for n in range(1, len(parts) + 1))


def _is_constant(name: str, usage: Usage) -> bool:
    used = usage.calls or usage.attributes or usage.made or usage.raised or usage.subclassed or usage.decorates
    return not used and (usage.constant or name.isupper())


def _is_class(name: str, usage: Usage) -> bool:
    likely = name[:1].isupper() and not name.isupper()
    return likely or usage.subclassed or bool(usage.attributes)


def _definition(name: str, usage: Usage, *, records: bool) -> str:
    if usage.raised:
        return _exception(name, usage)
    if _is_constant(name, usage):
        return f"{name} = None\n"
    if _is_class(name, usage):
        return _class(name, usage, records=records)
    return _function(name, usage)


def _function(name: str, usage: Usage, *, first: str = "", indent: str = "") -> str:
    parameters = ", ".join(filter(None, (first, *_parameters(usage.calls or _decorated(usage)))))
    start = "async def" if usage.awaited else "def"
    return f"{indent}{start} {name}({parameters}):\n{indent}    {_OPEN}\n"


def _decorated(usage: Usage) -> list[CallShape]:
    return [CallShape(positional=("function",), keywords=())] if usage.decorates else []


def _exception(name: str, usage: Usage) -> str:
    fields = [f for f, use in usage.made.items() if not use.calls and f not in _OF_EXCEPTIONS]
    head = f"class {name}({', '.join(usage.bases) or 'Exception'}):\n"
    if not fields:
        return f"{head}    pass\n"
    given = ", ".join(fields)
    lines = "".join(f"        self.{f} = {f}\n" for f in fields)
    return f"{head}    def __init__(self, {given}):\n        super().__init__({given})\n{lines}"


def _is_record(usage: Usage) -> bool:
    """Whether objects are what they are given, and equal where that is."""
    given = {p.partition("=")[0] for p in _parameters(usage.calls)}
    fields = {f for f, use in usage.made.items() if not use.calls}
    return bool(given) and (usage.as_record or ("__eq__" in usage.operations and fields <= given))


def _class(name: str, usage: Usage, *, records: bool) -> str:
    bases = f"({', '.join(usage.bases)})" if usage.bases else ""
    made = dict(usage.made)
    for use in usage.attributes.values():
        made |= use.made if use.calls else {}  # what a class method gives is taken for an object of the class
    parts = [f"    {attribute} = None\n" for attribute, use in sorted(usage.attributes.items()) if not use.calls]
    fields = sorted(attribute for attribute, use in made.items() if not use.calls)
    parameters = _parameters(usage.calls) or (fields if made != usage.made else [])
    given = {p.partition("=")[0] for p in parameters}
    methods = {attribute: use for attribute, use in sorted(made.items()) if use.calls}
    record = records and _is_record(usage)
    computed = [f for f in fields if f not in given] if given and (record or not methods) else []
    if record:
        lines = (f"    {p.partition('=')[0]}: object{' = None' if '=' in p else ''}\n" for p in parameters)
        parts.append("".join(lines))
    else:
        parts += _init(parameters, [f for f in fields if f not in computed], usage.operations)
    for attribute, use in sorted(usage.attributes.items()):
        if use.calls:
            parts.append("    @classmethod\n" + _function(attribute, use, first="cls", indent="    "))
    parts += [f"    @property\n    def {f}(self):\n        {_OPEN}\n" for f in computed]
    for special in sorted(usage.operations - ({"__eq__"} if record else set())):
        arguments = ", ".join(filter(None, ("self", _SPECIAL.get(special, ""))))
        parts.append(f"    def {special}({arguments}):\n        {_OPEN}\n")
    parts += [_function(attribute, use, first="self", indent="    ") for attribute, use in methods.items()]
    head = f"@dataclass\nclass {name}{bases}:\n" if record else f"class {name}{bases}:\n"
    return head + ("\n".join(parts) or "    pass\n")


def _init(parameters: Sequence[str], fields: Sequence[str], operations: Collection[str]) -> list[str]:
    """`__init__`, where there is something to keep: every parameter is stored."""
    given = [p.partition("=")[0] for p in parameters]
    lines = [f"        self.{f} = {f if f in given else None}\n" for f in dict.fromkeys((*given, *fields))]
    if not lines and not _CONTAINS.isdisjoint(operations):
        lines = [f"        self.items = {'{}' if '__setitem__' in operations else '[]'}\n"]
    return [f"    def __init__({', '.join(('self', *parameters))}):\n{''.join(lines)}"] if lines else []


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
