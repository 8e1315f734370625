"""Calls that start programs, or reach into a database, which an instruction spells out.

A program only where its whole command is written in the source and each of its texts in the instruction, no shell and
no interpreter; SQL only where it is written out, and does what the words ask. Not promised: that it is what was meant.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from localagent.code.names import callee_name, dotted_name, imports_of
from localagent.code.source_text import parse_or_none
from localagent.code.spans import lines_of
from localagent.domain.gate import Finding
from localagent.domain.paths import RepoPath
from localagent.gate.constant_queries import is_of_constants, only_value
from localagent.gate.review.source_change import module_values
from localagent.text.visible_text import shortened

RULES = frozenset({"run-process", "module-handed-on", "acts-outside", "changes-stored", "check-gone"})
"""The rules of which some findings are answered."""

_STARTERS = frozenset({"run", "check_output", "check_call", "call", "Popen"})
_OPTIONS = frozenset(
    {"capture_output", "text", "check", "cwd", "stdout", "stderr", "stdin", "input", "timeout", "encoding", "errors"}
)
_NEVER = re.compile(
    r"(?:.*/)?(?:(?:ba|da|z|k|c|tc|fi)?sh|busybox|env|xargs|sudo|su|doas|nohup|setsid|eval|exec|ssh|scp|sftp|rsync|curl"
    r"|wget|nc|ncat|netcat|socat|telnet|ftp|python[\d.]*|perl|ruby|node|php|lua|g?awk|sed|find|vim?|ed|rm|dd|mkfs.*"
    r"|chmod|chown|crontab|at|systemctl|docker|podman|kubectl|pip[\d.]*|pipx|uvx?|np[mx]|powershell|cmd)(?:\.exe)?",
    re.IGNORECASE,
)
_EXECUTES = frozenset({"execute", "executemany"})
_FETCHES = frozenset({"fetchone", "fetchall", "fetchmany", "commit", "rollback", "cursor", "close"})
_STORES = r"\b(?:databas|sqlite|db\b|sql\b|stor|table|quer|row|record|sav|load)"
_SQL_PLAIN = re.compile(
    r"\s*(?:select|insert|replace|with|create\s+(?:table|(?:unique\s+)?index))\b"
    r"|\s*pragma\s+(?:(?:table|index)_x?(?:info|list)|foreign_key_list)\s*(?:\(\s*\w+\s*\))?\s*$"  # only asks
    r"|\s*pragma\s+user_version\s*$",
    re.IGNORECASE,
)
# Values come from outside, and none is written out.
_UPDATES_SOME = re.compile(r"\s*update\s+\w+\s+set\s[^'\"\d]*\swhere\s[^'\"\d]*", re.IGNORECASE | re.DOTALL)
_VERSION = r"\s*pragma\s+user_version\s*=\s*"
_SQL_ASKED = (
    (r"\s*delete\s+from\s.*\bwhere\b", r"\b(?:delet|remov|clear|purg|drop|prun|expir|forget)"),
    (
        r"\s*delete\s+from\s+\S+\s*;?\s*$",
        r"\b(?:clear|empties|emptying|empty\s+(?:the|its|all)\b"
        r"|(?:delet|remov|clean|purg|drop|forget)\w*\s+(?:\w+\s+){0,3}(?:all|every\w*)\b)",
    ),
    (
        r"\s*update\s.*\bset\b",
        r"\b(?:updat|sets?\b|mark|put|chang|renam|reset|edit|mov|reopen|restor|archiv|incremen|count|stor|sav)",
    ),
    (r"\s*alter\s+table\s+\w+\s+add\b", r"\b(?:column|field)"),
    (rf"{_VERSION}(?:\d+\s*)?$", r"\b(?:schema|version|migrat)"),
)
_SHOWN = 60  # letters of what is called, as the rule tells it
_HANDS_ON = frozenset({"map", "imap", "starmap", "submit", "run_in_executor", "to_thread"})
BESIDE = r"\b(?:threads?|parallel|concurren)"
"""Words that ask for work beside other work."""


def is_call_instructed(finding: Finding, path: RepoPath, before: bytes, tree: ast.Module, instruction: str) -> bool:
    """Whether an instruction spells out what a call that a rule found in a file does."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and finding.line in lines_of(n)]
    match finding.rule:
        case "run-process" | "module-handed-on":
            if _is_replaced_in_test(path, calls):
                return re.search(r"\bsubprocess\b", instruction) is not None
            if path.name.startswith("test_") and _starts_own_module(calls, instruction):
                return True
            return finding.rule == "run-process" and _is_spelled_out(tree, calls, instruction)
        case "acts-outside" if finding.subject.startswith("a call of subprocess."):
            return _is_spelled_out(tree, calls, instruction)
        case "acts-outside":
            return _is_of_database(tree, calls, finding.subject, instruction)
        case "changes-stored":
            kind, _, text = finding.subject.partition(" ")
            return kind == "string" and _is_sql_instructed(text, instruction)
        case "check-gone" if finding.subject.endswith(": acquire"):
            return _is_held_by_with(before, tree, finding.subject)
        case "check-gone" if _is_replaced(before, tree, finding.subject, instruction):
            return True
        case "check-gone":
            return re.search(BESIDE, instruction, re.IGNORECASE) is not None and _is_handed_on(tree, finding.subject)
    return False


def _is_spelled_out(tree: ast.Module, calls: list[ast.Call], instruction: str) -> bool:
    """Whether every program that a line starts, in a function, is written out there and in the instruction."""
    started = [c for c in calls if dotted_name(c.func).startswith("subprocess.") and callee_name(c.func) in _STARTERS]
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    return bool(started) and all(id(c) in inside and _is_written_out(c, instruction) for c in started)


def _is_written_out(call: ast.Call, instruction: str) -> bool:
    command = call.args[0] if len(call.args) == 1 else None
    if not isinstance(command, ast.List | ast.Tuple) or not command.elts:
        return False
    if not all(isinstance(e, ast.Constant | ast.Name | ast.Attribute) for e in command.elts):
        return False
    texts = [e.value for e in command.elts if isinstance(e, ast.Constant)]
    program = command.elts[0]
    plain = isinstance(program, ast.Constant) and isinstance(program.value, str) and not _NEVER.fullmatch(program.value)
    said = (isinstance(t, str) and _is_in_text(t, instruction) for t in texts)
    return plain and all(said) and all(k.arg in _OPTIONS for k in call.keywords)


def _starts_own_module(calls: list[ast.Call], instruction: str) -> bool:
    """Whether all that a line of a test starts is `python -m NAME`, by this Python, with a name of the instruction."""
    started = [c for c in calls if dotted_name(c.func).startswith("subprocess.") and callee_name(c.func) in _STARTERS]
    for call in started:
        command = call.args[0] if len(call.args) == 1 else None
        parts = command.elts if isinstance(command, ast.List | ast.Tuple) else []
        texts = [p.value if isinstance(p, ast.Constant) else None for p in parts]
        own = len(parts) > 2 and dotted_name(parts[0]) == "sys.executable" and texts[1] == "-m"
        if not own or not isinstance(texts[2], str) or not _is_in_text(f"-m {texts[2]}", instruction):
            return False
        if any(isinstance(p, ast.Starred) for p in parts) or not all(k.arg in _OPTIONS for k in call.keywords):
            return False
    return bool(started)


def _is_in_text(text: str, instruction: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", instruction) is not None


def _is_replaced_in_test(path: RepoPath, calls: list[ast.Call]) -> bool:
    """Whether a line of a test replaces what starts programs: `monkeypatch.setattr(subprocess, "run", f)`."""
    sets = [c for c in calls if dotted_name(c.func) in ("monkeypatch.setattr", "mock.patch.object", "patch.object")]
    return path.name.startswith("test_") and any(
        len(c.args) > 1 and isinstance(c.args[1], ast.Constant) and dotted_name(c.args[0]) == "subprocess" for c in sets
    )


def _is_of_database(tree: ast.Module, calls: list[ast.Call], subject: str, instruction: str) -> bool:
    """Whether what a line calls is a plain use of a database of the standard library."""
    if not any(one.module == "sqlite3" for n in ast.walk(tree) for one in imports_of(n)):
        return False
    name = subject.removeprefix("a call of ")
    if name in ("sqlite3.connect", "closing", "contextlib.closing"):
        return re.search(_STORES, instruction, re.IGNORECASE) is not None
    named = [c for c in calls if ast.unparse(c.func) == name]
    if "(" in name:  # of what another call answers, which is judged by itself
        reached = [c for c in calls if shortened(ast.unparse(c.func), _SHOWN) == name]
        return bool(reached) and all(callee_name(c.func) in _FETCHES | _EXECUTES for c in reached)
    if name.rpartition(".")[2] in _FETCHES:
        return True
    return bool(named) and all(
        callee_name(c.func) in _EXECUTES and _are_sql_instructed([*_texts(tree, c)], instruction) for c in named
    )


def _texts(tree: ast.Module, call: ast.Call) -> Iterator[str]:
    """The SQL of a call, where it is written out, or is a constant of the module or all those of a table of it."""
    given = call.args[0] if call.args else None
    if isinstance(given, ast.JoinedStr) and isinstance(given.values[0], ast.Constant) and len(given.values) == 2:
        first = str(given.values[0].value)
        if re.fullmatch(_VERSION, first, re.IGNORECASE):
            yield first
            return
    if isinstance(given, ast.Subscript):
        table = dict(module_values(tree)).get(ast.unparse(given.value))
        yield from _only_texts(table.values if isinstance(table, ast.Dict) else getattr(table, "elts", []))
    yield from _written(tree, only_value(tree, call, given.id) if isinstance(given, ast.Name) else given)


def _written(tree: ast.Module, value: ast.expr | None) -> Iterator[str]:
    """A text that is written out, or put together from nothing but texts of the file, which are shown as 0."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr | ast.BinOp) and is_of_constants(tree, value.lineno):
        parts = value.values if isinstance(value, ast.JoinedStr) else _summands(value)
        yield "".join(str(p.value) if isinstance(p, ast.Constant) else "0" for p in parts)


def _summands(node: ast.expr) -> list[ast.expr]:
    return [*_summands(node.left), *_summands(node.right)] if isinstance(node, ast.BinOp) else [node]


def _are_sql_instructed(texts: Sequence[str], instruction: str) -> bool:
    return bool(texts) and all(_is_sql_instructed(text, instruction) for text in texts)


def _only_texts(values: Sequence[ast.expr]) -> list[str]:
    """The texts of a display that holds nothing else."""
    texts = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    return texts if len(texts) == len(values) else []


def _is_sql_instructed(text: str, instruction: str) -> bool:
    """Whether one statement of SQL only reads or adds, or changes what the words ask for."""
    if ";" in text.rstrip("; \n"):
        return False
    if _UPDATES_SOME.fullmatch(text):
        return True
    return _SQL_PLAIN.match(text) is not None or any(
        re.match(sql, text, re.IGNORECASE | re.DOTALL) and re.search(words, instruction, re.IGNORECASE)
        for sql, words in _SQL_ASKED
    )


def _is_handed_on(tree: ast.Module, subject: str) -> bool:
    """Whether a function has the checks called that it does not call any more: `pool.map(check, xs)`."""
    where, _, names = subject.partition(": ")
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [n for f in functions if f.name == where.rpartition(".")[2] for n in ast.walk(f)]
    handing = [
        n for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _HANDS_ON
    ]
    given = {callee_name(a) for call in handing for a in call.args if isinstance(a, ast.Name | ast.Attribute)}
    return bool(names) and all(name in given for name in names.split(", "))


def _is_replaced(before: bytes, tree: ast.Module, subject: str, instruction: str) -> bool:
    """Whether a function calls, of what was lost, as many others instead, each of a name that the instruction says."""
    where, _, names = subject.partition(": ")
    name = where.rpartition(".")[2]
    old, new = ({callee_name(n) for n in _nodes_of(t, name) if isinstance(n, ast.Call)}
                for t in (parse_or_none(before), tree))  # fmt: skip
    come = {one for one in new - old if re.search(rf"`[^`]*\b{re.escape(one)}\b[^`]*`", instruction)}
    return bool(names) and len(come) >= len(names.split(", "))


def _is_held_by_with(before: bytes, tree: ast.Module, subject: str) -> bool:
    """Whether a function holds by `with` statements all that it acquired by calls: `lock.acquire()`, `with lock:`."""
    name = subject.partition(":")[0].rpartition(".")[2]
    acquired = {
        ast.unparse(n.func.value)
        for n in _nodes_of(parse_or_none(before), name)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "acquire"
    }
    held = {
        ast.unparse(item.context_expr)
        for n in _nodes_of(tree, name)
        if isinstance(n, ast.With | ast.AsyncWith)
        for item in n.items
    }
    return bool(acquired) and acquired <= held


def _nodes_of(tree: ast.Module | None, name: str) -> Iterator[ast.AST]:
    """The nodes of every function of a name."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield from ast.walk(node)
