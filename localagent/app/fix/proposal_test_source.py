"""What a proposal answers on the input on which the proposals of a task differ, as the source of a test.

What the jail and the record say becomes source only as names that lead to a function, literals that are written anew
from their values, and builtin exceptions; all else is refused. Not promised: that the test passes where the answer
hangs on what ran before it.
"""

import ast
import builtins
import keyword
import re
import sys
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault

NO_SOURCE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
_MOST_CHARACTERS = 1_000
_OTHERS = sys.stdlib_module_names | {"pytest", "_pytest"}
_BY_IDENTITY = (None, True, False)


class _UnwritableError(Exception):
    """Why there is no such test."""


def source_of(ambiguity: Mapping[str, Any] | None, number: int, beside: str = "") -> str:
    """A test function, with a name that is free `beside` other text. UsageFault where none can be written."""
    call = str((ambiguity or {}).get("call", ""))
    try:
        if ambiguity is None:
            raise _UnwritableError("no input is known on which the proposals differ")
        return _source(ambiguity, call, number, beside)
    except _UnwritableError as why:
        remedy = f"write the test by hand, for {call[:_MOST_CHARACTERS]}" if call else "write the test by hand"
        raise UsageFault(f"--write-test: no test of what proposal {number} answers: {why}", remedy=remedy) from None


def called(ambiguity: Mapping[str, Any]) -> tuple[RepoPath, Sequence[str]]:
    """The file, and the names in it, of the function of an input of which `source_of` made a test."""
    return RepoPath(ambiguity["function"]["path"]), ambiguity["function"]["qualname"].split(".")


def defines(source: bytes, names: Sequence[str]) -> bool:
    """Whether a module has a function of a qualified name, outside of functions and conditions."""
    tree = parse_or_none(source)
    body: Sequence[ast.stmt] = tree.body if tree is not None else ()
    for name in names[:-1]:
        body = [s for found in body if isinstance(found, ast.ClassDef) and found.name == name for s in found.body]
    return any(isinstance(found, ast.FunctionDef) and found.name == names[-1] for found in body)


def _source(ambiguity: Mapping[str, Any], call: str, number: int, beside: str) -> str:
    if "function" not in ambiguity:
        raise _UnwritableError("the task was kept by an earlier version, which did not note where the function is")
    answers, function, exact = (ambiguity.get(name) for name in ("answers", "function", "exact"))
    if not isinstance(answers, Mapping) or str(number) not in answers:
        raise _UnwritableError("its answer to the input that is known is not known")
    if not isinstance(function, Mapping):
        raise _UnwritableError("no name leads to the function (a nested or decorated one, or a class method)")
    if not isinstance(exact, list) or number not in exact:
        raise _UnwritableError(
            "the call and the answer are not told whole in literals (objects, values that are too long, or arguments "
            "that the call changes)"
        )
    module, names = _names(*(str(function.get(name)) for name in ("path", "module", "qualname")))
    told = str(answers[str(number)])
    wanted = _answer(told)
    others = {other: str(text) for other, text in answers.items() if other != str(number)}
    whole = {str(n) for n in exact}
    literal = {other: _answer(text) for other, text in others.items() if other in whole and text != told}
    unknown = {other: text for other, text in others.items() if other not in whole}
    alike = [other for other, answer in literal.items() if _meets(wanted, answer, exactly=True)]
    alike += [other for other, text in unknown.items() if _may_meet(wanted, told, text)]
    if alike:
        raise _UnwritableError(f"a test would not tell it from the answer of proposal {alike[0]}")
    exactly = bool(unknown) or any(_meets(wanted, answer, exactly=False) for answer in literal.values())
    done = f"{'.'.join(names)}({_arguments(call, names[-1])})"
    lines, taken = _required_lines(wanted, done, exactly=exactly)
    if names[0] in taken:
        raise _UnwritableError(f"the name {names[0]} stands for something else in a test")
    imports = [f"from {module} import {names[0]}", ""]
    if isinstance(wanted, type):
        imports = ["import pytest", "", *imports]
    lines = [*imports, *lines]
    made = "\n".join([f"def {_free(names[-1], beside)}():", *(f"    {line}".rstrip() for line in lines), ""])
    try:
        compile(made, "<test>", "exec", dont_inherit=True)
    except NO_SOURCE as error:
        raise _UnwritableError("its names cannot be used so in source") from error
    return made


def _names(path: str, module: str, qualname: str) -> tuple[str, list[str]]:
    """The module and the names in it, checked: they are names, and the module is that file of the repository."""
    parts, names = module.split("."), qualname.split(".")
    if not all(_is_name(name) for name in (*parts, *names)):
        raise _UnwritableError("no name leads to the function")
    place = path.removesuffix(".py").removesuffix("/__init__").split("/")
    if not path.endswith(".py") or place[-len(parts) :] != parts or parts[0] in _OTHERS:
        raise _UnwritableError(f"it is not certain that `import {module}` loads {path}")
    return module, names


def _is_name(name: str) -> bool:
    """Whether source means just this by it: Python reads names in their NFKC form."""
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def _arguments(call: str, name: str) -> str:
    tree = _parsed(call)
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.func.id != name:
        raise _UnwritableError("the call cannot be read")
    told = [("", arg) for arg in tree.args] + [(f"{k.arg}=", k.value) for k in tree.keywords if k.arg is not None]
    if len(told) < len(tree.args) + len(tree.keywords):
        raise _UnwritableError("the call cannot be read")
    return ", ".join(key + ascii(_value(node)) for key, node in told)


def _answer(text: str) -> object:
    """The value, or the type of the exception."""
    if not text.startswith("raises "):
        return _value(_parsed(text))
    kind = getattr(builtins, text.removeprefix("raises "), None)
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        raise _UnwritableError("its exception is not a builtin one")
    return kind


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_CHARACTERS:
        raise _UnwritableError(f"longer than {_MOST_CHARACTERS:,} characters")
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text, mode="eval").body
    except NO_SOURCE as error:
        raise _UnwritableError("the call or the answer is no literal") from error


def _value(node: ast.expr) -> object:
    """The value of a literal that `ascii` writes so that it reads back as the same."""
    try:
        value: object = ast.literal_eval(node)
        same = ast.literal_eval(ascii(value)) == value
    except NO_SOURCE as error:
        raise _UnwritableError("the call or the answer is no literal") from error
    if not same:
        raise _UnwritableError("the call or the answer is no literal that can be written down")
    return value


def _by_identity(value: object) -> bool:
    return any(value is one for one in _BY_IDENTITY)


def _required_lines(wanted: object, done: str, *, exactly: bool) -> tuple[list[str], tuple[str, ...]]:
    """The lines that hold a call to an answer, and the names that they need. `exactly`: its type is held, too."""
    kind = wanted.__name__ if isinstance(wanted, type) else type(wanted).__name__
    if isinstance(wanted, type):
        info = [" as info", f"assert info.type is {kind}"] if exactly else [""]
        return [f"with pytest.raises({kind}){info[0]}:", f"    {done}", *info[1:]], ("pytest", "info", "set", kind)
    if _by_identity(wanted):
        return [f"assert {done} is {wanted!a}"], ("set",)
    if not exactly:
        return [f"assert {done} == {wanted!a}"], ("set",)
    return [f"got = {done}", f"assert type(got) is {kind}", f"assert got == {wanted!a}"], ("type", "set", kind)


def _meets(wanted: object, other: object, *, exactly: bool) -> bool:
    """Whether a test of one answer passes with another."""
    if isinstance(wanted, type) or isinstance(other, type):
        kinds = isinstance(wanted, type) and isinstance(other, type)
        return other is wanted if exactly or not kinds else issubclass(other, wanted)  # type: ignore[arg-type]
    if exactly and type(other) is not type(wanted):
        return False
    return other is wanted if _by_identity(wanted) else other == wanted


def _may_meet(wanted: object, told: str, text: str) -> bool:
    """Whether a test of an answer and its type may pass with one that is not told whole in literals.

    What is within a collection may be equal to what is wanted; all else of the same type is, where its text is, too.
    """
    if isinstance(wanted, type):
        return False
    filled = isinstance(wanted, list | tuple | dict | set) and bool(wanted)
    return text.startswith((told[0], f"{type(wanted).__name__}(") if filled else f"{told}, ")


def _free(name: str, beside: str) -> str:
    found, number = f"test_{name}", 1
    while re.search(rf"\b{found}\b", beside):
        number += 1
        found = f"test_{name}_{number}"
    return found
