"""Contracts of touched functions, asked of CrossHair: does the patch break one that held? Bounded, in a jail.

A contract is what the function itself says: asserts where its body begins with one, `pre:` and `post:` in its docstring
(PEP 316), decorators of deal and icontract. It is run as `symbolic` runs, with the same limits of what can be imported.
Not promised: that a contract without a found violation holds; nor that code under test has not written this answer
itself, for which reason contracts only ever speak against a patch. Invariants of classes are not asked.
"""

import ast
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.names import imports_of
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Definition, Function, functions, last_line
from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.domain.verification import ContractBreak, ContractResult, Contracts
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.crosshair_equivalence import module_of, spec, touched
from localagent.verify.worker.function_regions import FunctionRegion
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_messages import clean
from localagent.verify.worker.worker_spec import WorkerUse

CONDITION_SECONDS, SECONDS = 5.0, 60.0
_TEXT, _BREAKS = 400, 5
_MODULES = frozenset({"deal", "icontract"})
_PEP316 = re.compile(r"\s*(?P<kind>pre|post)(?:\[[^\]\n]*\])?::?(?P<said>.*)")
_LINE = re.compile(r"(?P<path>/[^\n]*?):(?P<line>\d{1,9}): (?P<level>info|error): (?P<text>.*)")
_CALL = re.compile(r"(?P<what>.*?) ?when calling (?P<call>.*)", re.DOTALL)
_RAISES = "raises nothing that it does not name: "
_CONFIRMED, _FALSE = "Confirmed over all paths.", "false"


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """What a function says of itself: conditions by the line where they begin; CrossHair's names for their kinds."""

    at: Mapping[int, str]
    kinds: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The conditions alone, in order."""
        return tuple(text for _, text in sorted(self.at.items()))

    @property
    def decorators(self) -> str:
        """Those of decorators as one: CrossHair names the first line of the function for any of them."""
        return " ".join(text for text in self.texts if text.startswith("@"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A call that breaks a contract: the file as the jail names it, its line, what became false or was raised."""

    path: str
    line: int
    what: str
    call: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """One answer. `why` is empty where it is one; `confirmed`: all that was asked holds on every path."""

    why: str = ""
    violations: tuple[Violation, ...] = ()
    confirmed: bool = False


def ask_contracts(before: JailPool, after: JailPool, files: Sequence[ChangedFile]) -> tuple[Contracts, ...]:
    """What it says of each touched function that has a contract, before or after."""
    until = time.monotonic() + SECONDS
    found = []
    for file, old, new in touched(files):
        had, has = conditions(file.before, old), conditions(file.after, new)
        if had.texts or has.texts:
            same = file.before[old.start : old.body_start] == file.after[new.start : new.body_start]
            found.append(_one((before, after), file, new, (had, has), until, same=same))
    return tuple(found)


def _one(
    jails: tuple[JailPool, JailPool],
    file: ChangedFile,
    new: FunctionRegion,
    said: tuple[Conditions, Conditions],
    until: float,
    *,
    same: bool,
) -> Contracts:
    """`same`: the function's head is as it was. With another head, or less asked, a call may not be one of before."""
    had, has = said
    name = f"{new.class_name}.{new.name}" if new.class_name else new.name
    dropped = tuple(text for text in had.texts if text not in has.texts)[:_BREAKS]

    def answer(said: ContractResult, why: str = "", broken: tuple[ContractBreak, ...] = ()) -> Contracts:
        return Contracts(path=file.path, function=name, said=said, why=why, broken=broken, dropped=dropped)

    if not has.texts:
        return answer(ContractResult.NOT_ASKED, "the patched function has none")
    now = _heard(jails[1], file.path, name, has, until)
    if now.why:
        return answer(ContractResult.COULD_NOT, now.why)
    if not now.violations:
        return answer(ContractResult.HELD if now.confirmed else ContractResult.NOTHING_FOUND)
    if not had.texts:
        was = Heard()
    else:
        was = _heard(jails[0], file.source, name, had, until)
        if was.why:
            return answer(ContractResult.COULD_NOT, f"violated after the patch; of the tree before: {was.why}")
    known = {_key(jails[0], file.source, file.before, had, v) for v in was.violations}
    broken = []
    for violation in now.violations:
        key = _key(jails[1], file.path, file.after, has, violation)
        if key not in known:
            found = f"{violation.what} when calling {violation.call}"[:_TEXT]
            held = (
                was.confirmed
                and same
                and not dropped
                and (key in (*had.texts, had.decorators) or key.startswith(_RAISES))
            )
            broken.append(ContractBreak(contract=key, line=violation.line, found=found, held=held))
    return answer(ContractResult.BROKEN if broken else ContractResult.WAS_BROKEN, "", tuple(broken[:_BREAKS]))


def _heard(jails: JailPool, path: RepoPath, name: str, asked: Conditions, until: float) -> Heard:
    jails.check()
    module = module_of(path)
    if module is None:
        return Heard(why="its file has no name that can be imported")
    left = until - time.monotonic()
    if left < 1.0:
        return Heard(why=f"the {SECONDS:.0f} s for all functions were used up")
    seconds = min(CONDITION_SECONDS, left)
    kinds = ("--analysis_kind", ",".join(asked.kinds))
    words = ("check", "--report_all", *kinds, "--per_condition_timeout", f"{seconds:.1f}", f"{module}.{name}")
    with jails.place.workspace({}, WorkerUse.QUICK) as workspace:
        return heard(jails.place.jail.run(spec(jails, str(workspace.tree), words, seconds)))


def heard(result: JailResult) -> Heard:
    """What was said. What is not understood, or nothing at all, is no answer."""
    if result.ending is not JailOutcome.EXITED:
        return Heard(why=f"ended by {result.ending.value}")
    lines = clean(result.stdout.decode("utf-8", "replace"), 100_000).splitlines()
    violations, notes = [], []
    for path, line, level, text in _messages(lines):
        if level == "info":
            notes.append(text)
        elif called := _CALL.fullmatch(text):
            what, call = called["what"].strip(), called["call"]
            violations.append(Violation(path=path, line=line, what=what[:_TEXT], call=call[:_TEXT]))
        else:
            return Heard(why=f"it could not read the contract: {text[:_TEXT]}")
    if (result.returncode == 1 and violations) or (result.returncode == 0 and notes and not violations):
        confirmed = not violations and all(note == _CONFIRMED for note in notes)
        return Heard(violations=tuple(violations), confirmed=confirmed)
    told = clean(result.stderr.decode("utf-8", "replace"), 100_000).strip().splitlines()
    return Heard(why=(told or ["it said nothing"])[-1][:_TEXT])


def _messages(lines: Sequence[str]) -> Iterator[tuple[str, int, str, str]]:
    """Each message with the lines that go on with it."""
    open_: list[str] = []
    for line in [*lines, None]:
        found = None if line is None else _LINE.fullmatch(line)
        if (found is not None or line is None) and open_:
            head = _LINE.fullmatch(open_[0])
            if head is not None:
                yield head["path"], int(head["line"]), head["level"], " ".join([head["text"], *open_[1:]])
            open_ = []
        if line is not None:
            open_ += [line] if found is not None or open_ else []


def _key(jails: JailPool, path: RepoPath, source: bytes, own: Conditions, violation: Violation) -> str:
    """The contract as its function writes it, or that nothing else is raised: the same in both trees."""
    kind = violation.what.partition(":")[0]
    if violation.path == f"{jails.place.repo.rstrip('/')}/{path}" and kind in (_FALSE, "AssertionError"):
        lines = source.decode("utf-8", "replace").splitlines()
        text = " ".join(lines[violation.line - 1].split()) if violation.line <= len(lines) else ""
        if kind == _FALSE and text.startswith("@") and own.decorators:
            return own.decorators
        if kind == _FALSE or violation.line in own.at:
            return own.at.get(violation.line, text)
    return f"{_RAISES}{kind[:_TEXT]}"


def conditions(source: bytes, region: FunctionRegion) -> Conditions:
    """What a function of this text says of itself; nothing where it cannot be read."""
    tree = parse_or_none(source)
    node = next((f.node for f in functions(tree) if _is_at(f.node, region)), None) if tree is not None else None
    if tree is None or node is None:
        return Conditions(at={}, kinds=())
    found: dict[str, dict[int, str]] = {"asserts": {}, "PEP316": {}, "deal": {}, "icontract": {}}
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        lines = source.decode("utf-8", "replace").splitlines()[: last_line(body[0])]
        for at, line in enumerate(lines[body[0].lineno - 1 :], body[0].lineno):
            if said := _PEP316.fullmatch(line.strip().strip("\"'")):
                found["PEP316"][at] = f"{said['kind']}: {said['said'].strip()}"
        body = body[1:]
    if body and isinstance(body[0], ast.Assert):
        found["asserts"] = {n.lineno: ast.unparse(n) for n in _own(body) if isinstance(n, ast.Assert)}
    names = dict(_names(tree))
    for decorator in node.decorator_list:
        root: ast.expr = decorator.func if isinstance(decorator, ast.Call) else decorator
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and (module := names.get(root.id)):
            found[module][decorator.lineno] = f"@{ast.unparse(decorator)}"
    own = {line: text for part in found.values() for line, text in part.items()}
    return Conditions(at=own, kinds=tuple(kind for kind, part in found.items() if part))


def _is_at(node: Function, region: FunctionRegion) -> bool:
    return node.name == region.name and last_line(node) == region.last_line


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those of definitions inside."""
    for node in body:
        yield node
        if not isinstance(node, Definition | ast.Lambda):
            yield from _own(list(ast.iter_child_nodes(node)))


def _names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that deal, icontract or something of them is bound to."""
    for node in ast.walk(tree):
        for name in imports_of(node):
            package = name.module.partition(".")[0]
            if package in _MODULES:
                yield name.bound, package
