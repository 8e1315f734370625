"""Names, spans and parsing are read from syntax in one place each. The samples show that each fence can fail.

`runner/` runs alone inside the jail and stays apart; `edit/` reads libcst's own trees.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "localagent"
NAMES, SPANS, SOURCE = ("code", "names"), ("code", "spans"), ("code", "source_text")
SAY_WHY = (SOURCE, ("code", "regions"), ("lint", "file_view"))  # those beside the one parser say why there is no tree
SECOND_OPINION = ("lint", "libcst_check")  # shares no code with what it checks, on purpose
FUNCTION_TYPES = {"FunctionDef", "AsyncFunctionDef", "ClassDef"}


def copies(source: str, parts: tuple[str, ...]) -> list[str]:
    """What a module does by itself and should ask for. `parts` is its path below the package, without `.py`."""
    tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "asname" and parts != NAMES and parts[0] != "edit":
            found.append("what an import binds: code.names.imports_of or bound_name")
        if isinstance(node, ast.IfExp) and _is_last_name(node) and parts != NAMES:
            found.append("the last part of a name: code.names.last_name or callee_name")
        if isinstance(node, ast.Attribute) and node.attr == "end_lineno" and parts != SPANS:
            found.append("where a node ends: code.spans.last_line, lines_of or byte_span")
        if isinstance(node, ast.GeneratorExp | ast.ListComp) and _lines_of_decorators(node) and parts != SPANS:
            found.append("where a definition begins: code.spans.first_line")
        if isinstance(node, ast.Assign) and _function_types(node.value) and parts != SPANS:
            found.append("the types of functions: code.spans.Function or Definition")
        if isinstance(node, ast.Import | ast.ImportFrom) and parts != SECOND_OPINION:
            asked = {getattr(node, "module", ""), *(alias.name for alias in node.names)}
            found += ["scopes: code.scopes"] if asked & {"symtable", "ScopeProvider", "QualifiedNameProvider"} else []
        if isinstance(node, ast.Try) and _parses(node) and parts not in SAY_WHY:
            found.append("a tree or None: code.source_text.parse_or_none")
    return found


def _is_last_name(node: ast.IfExp) -> bool:
    """`x.attr if isinstance(x, ast.Attribute) else ... x.id`, or the other way round."""
    read = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return (
        isinstance(node.body, ast.Attribute)
        and node.body.attr in ("attr", "id")
        and {"attr", "id", "Attribute"} <= read
    )


def _lines_of_decorators(node: ast.GeneratorExp | ast.ListComp) -> bool:
    decorators = any(
        isinstance(n, ast.Attribute) and n.attr == "decorator_list" for n in ast.walk(node.generators[0].iter)
    )
    decorators |= any(
        isinstance(n, ast.Constant) and n.value == "decorator_list" for n in ast.walk(node.generators[0].iter)
    )
    return decorators and isinstance(node.elt, ast.Attribute) and node.elt.attr == "lineno"


def _function_types(value: ast.expr) -> bool:
    """A union of the classes of functions under a name of its own."""
    if not isinstance(value, ast.BinOp):
        return False
    names = {n.attr for n in ast.walk(value) if isinstance(n, ast.Attribute)}
    return {"FunctionDef", "AsyncFunctionDef"} <= names <= FUNCTION_TYPES


def _parses(node: ast.Try) -> bool:
    """`ast.parse` of a module, with an answer for what does not parse."""
    calls = [n for statement in node.body for n in ast.walk(statement) if isinstance(n, ast.Call)]
    parse = [c for c in calls if isinstance(c.func, ast.Attribute) and ast.unparse(c.func) == "ast.parse"]
    caught = {n.id for h in node.handlers if h.type for n in ast.walk(h.type) if isinstance(n, ast.Name)}
    return "SyntaxError" in caught and any(not call.keywords for call in parse)


@pytest.mark.long
def test_no_module_has_a_copy() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in ("_data", "runner") and (made := copies(path.read_text(encoding="utf-8"), parts)):
            found["/".join(parts)] = made
    assert found == {}


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("bound = alias.asname or alias.name", "import"),
        ("def f(n): return n.attr if isinstance(n, ast.Attribute) else getattr(n, 'id', n.id)", "last part"),
        (
            "def f(n): return n.id if isinstance(n, ast.Name) else n.attr if isinstance(n, ast.Attribute) else ''",
            "last",
        ),
        ("last = node.end_lineno or node.lineno", "ends"),
        ("first = min([n.lineno, *(d.lineno for d in n.decorator_list)])", "begins"),
        ("first = min([d.lineno for d in getattr(n, 'decorator_list', [])])", "begins"),
        ("_Function = ast.FunctionDef | ast.AsyncFunctionDef", "types"),
        ("import symtable", "scopes"),
        ("from libcst.metadata import ScopeProvider", "scopes"),
        ("try:\n    tree = ast.parse(text)\nexcept (SyntaxError, ValueError):\n    tree = None", "None"),
    ],
)
def test_the_fence_sees_a_copy(source: str, word: str) -> None:
    assert [word for said in copies(source, ("repair", "search", "beam")) if word in said] == [word]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("last = node.end_lineno or node.lineno", SPANS),
        ("bound = alias.asname or alias.name", NAMES),
        ("name = item.asname.name if item.asname else item.item", ("edit", "unit_builder")),
        ("import symtable", SECOND_OPINION),
        ("n.attr if isinstance(n, ast.Attribute) else ''", ("gate", "review", "removals")),
        ("isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)", ("gate", "review", "removals")),
        ("lines = [n.lineno for n in nodes]", ("gate", "review", "removals")),
        ("try:\n    ast.parse(text, mode='eval')\nexcept SyntaxError:\n    pass", ("edit", "space")),
        ("tree = ast.parse(text)", ("edit", "space")),
    ],
)
def test_the_fence_lets_others_pass(source: str, parts: tuple[str, ...]) -> None:
    assert copies(source, parts) == []
