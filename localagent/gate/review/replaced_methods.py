"""Sign: what a class or a name of Python does is changed where nobody looks for it."""

import ast
import builtins

from localagent.code.bindings import FUNCTIONS
from localagent.code.names import callee_name, imports_of
from localagent.gate.core.rule import PLAIN, introduced, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.text.visible_text import shortened

REPLACED = question(
    id="method-replaced",
    why="what a class does is changed where nobody looks for it",
    remedy="change the method where it is defined",
    match=(
        introduced("class A:\n    pass\n\n\nA.get = lambda self: 0\n", "class A:\n    pass\n"),
        introduced("class A:\n    pass\n\n\nsetattr(A, 'get', f)\n", "class A:\n    pass\n"),
        introduced("def f(x):\n    type(x).get = g\n    return x\n"),
        introduced("def f(x):\n    x.__class__ = g\n    return x\n"),
        introduced("def f(x):\n    x.client.get = lambda y: None\n    return x\n"),
        introduced("def f(x):\n    return x\n\n\nclass f(f):\n    pass\n"),
        introduced(PLAIN + "\n\nf = g\n"),
        introduced(PLAIN + "\n\nfrom m import f\n"),
        introduced(PLAIN + "\n\ndef h(x):\n    global f\n    f = x\n"),
        introduced("from m import g as len\n" + PLAIN),
    ),
    not_match=(introduced("def f(x):\n    x.get = 1\n    return x\n"), introduced("def f(self):\n    self.A = g\n")),
)
_OVERLOADS = frozenset({"overload", "setter", "getter", "deleter", "register", "singledispatch", "property"})
_BUILTINS = frozenset(name for name in dir(builtins) if name[0].islower())


def replaced(source: Source) -> Signs:
    """Methods and classes of objects that are set from outside."""
    classes = {n.name for n in source.nodes if isinstance(n, ast.ClassDef)}
    for node in source.nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and (
                    _is_class(target.value, classes) or target.attr == "__class__"
                ):
                    yield f"{shortened(ast.unparse(target), 60)} set from outside", node
        elif isinstance(node, ast.Call) and callee_name(node.func) in ("setattr", "delattr") and node.args:
            told = [node.args[0]] if _is_class(node.args[0], classes) else []
            yield from ((f"{shortened(ast.unparse(one), 60)} set from outside", node) for one in told)


def shadowed(source: Source) -> Signs:
    """Functions of Python whose names a module gives to something else; that holds for all of the module."""
    freed = {name for n in source.nodes if isinstance(n, ast.Global) for name in n.names} & _BUILTINS
    yield from ((f"the name {name}", source.tree) for name in sorted(freed))
    for node in source.tree.body:
        names = [node.name] if isinstance(node, FUNCTIONS) else []
        if isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [name.bound for name in imports_of(node)]
        yield from ((f"the name {name}", node) for name in names if name in _BUILTINS)


def bound_again(source: Source) -> Signs:
    """Names that a module defines or imports, and then gives to something else."""
    taken: set[str] = set()
    for node in source.tree.body:
        names: list[str] = []
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names = [] if any(callee_name(d) in _OVERLOADS for d in node.decorator_list) else [node.name]
        elif isinstance(node, ast.ImportFrom):
            names = [name.bound for name in imports_of(node)]
        elif isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name) and t.id in taken]
        yield from ((f"{name} stands for something else from here on", node) for name in names if name in taken)
        taken.update(names)
    for inner in source.nodes:
        if isinstance(inner, ast.Global):
            yield from ((f"{name} is given to something else", inner) for name in inner.names if name in taken)


def exchanged(source: Source) -> Signs:
    """A function that is set as an attribute of an object which is not the method's own."""
    own = {n.name for n in source.nodes if isinstance(n, (*FUNCTIONS, ast.ClassDef))}
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not _is_function(node.value, own):
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and not _is_own(target.value, own):
                yield f"{shortened(ast.unparse(target), 60)} is exchanged", node


def _is_function(node: ast.expr, own: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") and node.attr in own
    return isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and (node.id in own or node.id in _BUILTINS))


def _is_own(node: ast.expr, own: set[str]) -> bool:
    names = {"self", "cls", "wrapper", "inner", "decorated"} | own
    return isinstance(node, ast.Name) and node.id in names


def _is_class(node: ast.expr, classes: set[str]) -> bool:
    if isinstance(node, ast.Call):
        return callee_name(node.func) == "type"
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    return isinstance(node, ast.Name) and node.id in classes


CHECKS = (
    (REPLACED, newly(replaced)),
    (REPLACED, newly(shadowed)),
    (REPLACED, newly(exchanged)),
    (REPLACED, newly(bound_again)),
)
