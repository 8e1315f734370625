"""Answers that stand beside their questions, both of which an instruction writes out: a list of words, an empty body.

`Accept 1/yes/on` is a specification, `slug('a b') should be 'a-b'` an example, and only the former answers. Told apart
by what the code does with other input: words that are listed are the whole of a specification where everything else
is refused. Numbers and texts of several words are examples always. Not promised: that the words mean what they yield.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from localagent.code.exception_handlers import BlockEnd, ends_of
from localagent.code.names import callee_name
from localagent.code.spans import Function
from localagent.gate.review.source_change import module_values

RULES = frozenset({"special-cases-test", "literal-answers"})
"""The rules of which some findings are answered."""

_CALL = re.compile(r"\w\([^()]*\)")
_SENTENCE = re.compile(r"(?<=[.;:!?])\s+|\n")
_EXAMPLE = re.compile(
    r"\b(?:e\.?g\b|for (?:example|instance)|such as|instead|gives?|gave|got|sa(?:ys?|id)|comes? out|becomes?|yields?"
    r"|return(?:s|ed)|wrong\w*|expect\w*|shows?)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"\b(?:empty|blank|nothing|without)\b", re.IGNORECASE)
_WORD = re.compile(r"\w[\w-]*")
_LEAST = 2  # words that make a list


def is_answer_stated(tree: ast.Module, line: int, instruction: str) -> bool:
    """Whether all questions and answers that begin at a line are the instruction's."""
    said = _CALL.sub(" ", instruction)
    tables = [n for n in ast.walk(tree) if isinstance(n, ast.Dict) and n.lineno == line]
    asks = [n for n in ast.walk(tree) if isinstance(n, ast.If | ast.IfExp) and n.lineno == line]
    if tables:
        return not asks and all(_is_listed(tree, table, said) for table in tables)
    return bool(asks) and all(
        _is_one_sentence(ask, said) or _is_branch_of_list(tree, ask, said) or _adds_options(ask, instruction)
        for ask in asks
    )


def _adds_options(ask: ast.If | ast.IfExp, instruction: str) -> bool:
    """Whether a branch only adds options of a command line, all of which the instruction names."""
    calls = [s.value for s in ask.body if isinstance(s, ast.Expr)] if isinstance(ask, ast.If) else []
    names = [call.args[0] for call in calls if isinstance(call, ast.Call) and call.args]
    adds = [call for call in calls if isinstance(call, ast.Call) and callee_name(call) == "add_argument"]
    return (
        bool(adds)
        and len(adds) == len(names) == len(getattr(ask, "body", ()))
        and all(
            isinstance(n, ast.Constant) and str(n.value).startswith("-") and str(n.value) in instruction for n in names
        )
    )


def _is_listed(tree: ast.Module, table: ast.Dict, said: str) -> bool:
    """Whether a table is of words that are said, and each function that uses it has no other answer."""
    keys = [key.value if isinstance(key, ast.Constant) else None for key in table.keys]
    values = [value.value if isinstance(value, ast.Constant) else () for value in table.values]
    plain = all(isinstance(v, bool) or v is None or _is_stated(v, said) for v in values)
    if len(keys) < _LEAST or not plain or not all(_is_stated(key, said) for key in keys):
        return False
    names = {t.id for n in ast.walk(tree) if isinstance(n, ast.Assign) and n.value is table
             for t in n.targets if isinstance(t, ast.Name)}  # fmt: skip
    users = [f for f in _functions(tree) if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(f))]
    return bool(users) and all(_answers_nothing_else(tree, user, said) for user in users)


def _is_branch_of_list(tree: ast.Module, ask: ast.If | ast.IfExp, said: str) -> bool:
    """Whether a branch is for one of several words that are said, in a function that has no other answer."""
    around = [f for f in _functions(tree) if any(n is ask for n in ast.walk(f))]
    return bool(around) and _answers_nothing_else(tree, around[-1], said)


def _answers_nothing_else(tree: ast.Module, function: Function, said: str) -> bool:
    """Whether a function looks up, or answers with a constant to words that are said, and else raises."""
    lists = dict(module_values(tree))
    given = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    for_words = {
        id(n)
        for ask in ast.walk(function)
        if isinstance(ask, ast.If) and _asks_for_listed(ask.test, lists, said)
        for n in ask.body
        if isinstance(n, ast.Return) and isinstance(n.value, ast.Constant)
    }
    looked_up = {
        id(n)
        for n in given
        if isinstance(n.value, ast.Subscript) and isinstance(lists.get(ast.unparse(n.value.value)), ast.Dict)
    }
    yields = any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Lambda) for n in ast.walk(function))
    whole = all(id(n) in for_words | looked_up for n in given) and BlockEnd.FALLS not in ends_of(function.body)
    return bool(given) and whole and not yields


def _asks_for_listed(test: ast.expr, lists: Mapping[str, ast.expr], said: str) -> bool:
    """`x in ("yes", "on")`, or in a name of that."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.In)):
        return False
    listed = lists.get(ast.unparse(test.comparators[0]), test.comparators[0])
    items = listed.elts if isinstance(listed, ast.Tuple | ast.List | ast.Set) else []
    texts = [item.value if isinstance(item, ast.Constant) else None for item in items]
    return len(texts) >= _LEAST and all(_is_stated(text, said) for text in texts)


def _is_one_sentence(ask: ast.If | ast.IfExp, said: str) -> bool:
    """Whether one sentence that gives no example says the word asked for and an empty answer, or one more word."""
    asked = [n.value for n in ast.walk(ask.test) if isinstance(n, ast.Constant)]
    answers = [ask.body] if isinstance(ask, ast.IfExp) else [n.value for n in ask.body if isinstance(n, ast.Assign)]
    whole = _is_empty(ask.orelse) if isinstance(ask, ast.IfExp) else len(answers) == len(ask.body) and not ask.orelse
    if not asked or not answers or not whole or not isinstance(ask.test, ast.Compare):
        return False
    joins = isinstance(ask.test.ops[0], ast.In) and isinstance(ask.test.left, ast.Constant)
    return any(
        all(_is_stated(text, sentence) and text != "" for text in asked)
        and all((_is_empty(a) and _EMPTY.search(sentence)) or (joins and _states(a, sentence)) for a in answers)
        for sentence in _SENTENCE.split(said)
        if not _EXAMPLE.search(sentence)
    )


def _is_empty(node: ast.expr) -> bool:
    """`b""`, `[]`, `None`."""
    if isinstance(node, ast.Constant):
        return node.value in ("", b"", None) and not isinstance(node.value, bool)
    return not any(isinstance(n, ast.Constant | ast.Name | ast.Call) for n in ast.walk(node))


def _states(node: ast.expr, sentence: str) -> bool:
    """A display of words that are said, which goes where another word that is said stands."""
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    return bool(items) and all(isinstance(e, ast.Constant) and e.value and _is_stated(e.value, sentence) for e in items)


def _is_stated(value: object, text: str) -> bool:
    """Whether a text of one word stands in another one by itself, or is empty and called so."""
    if value == "" and isinstance(value, str):
        return re.search(r"\bempty\b|''|\"\"", text) is not None
    word = isinstance(value, str) and _WORD.fullmatch(value) is not None
    return word and re.search(rf"(?<![\w.'\"-]){re.escape(str(value))}(?![\w'\"-])", text) is not None


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
