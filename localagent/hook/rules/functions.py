"""Rules on definitions, classes and the order of statements."""

import ast
from collections.abc import Iterator

from localagent.hook.rule import Cut, Grade, Hit, bad, rule
from localagent.hook.scopes import Kind
from localagent.hook.view import View

_SAFE, _SUGGESTION = Grade.SAFE, Grade.SUGGESTION
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def _mutable(view: View, node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and not node.args and view.named(
        node.func, "builtins.list", "builtins.dict", "builtins.set", "collections.defaultdict", "collections.OrderedDict",
        "collections.deque", "collections.Counter",
    )  # fmt: skip


@rule(
    "mutable-default",
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    words=(b"=",),
    why="A default is made once: what one call puts in, the next one finds.",
    bad=[
        bad(
            "def f(x, y=[]):\n    y.append(x)\n",
            "def f(x, y=None):\n    if y is None:\n        y = []\n    y.append(x)\n",
            _SUGGESTION,
        ),
        bad(
            "async def f(*, y={}):\n    '''Doc.'''\n    return y\n",
            "async def f(*, y=None):\n    '''Doc.'''\n    if y is None:\n        y = {}\n    return y\n",
            _SUGGESTION,
        ),
    ],
    good=["def f(x, y=None):\n    pass\n", "def f(x=()):\n    pass\n", "def f(x=g()):\n    pass\n"],
)
def mutable_default(view: View, node: ast.AST) -> Iterator[Hit]:
    """A default that is a new list, dictionary or set. A suggestion: some functions keep a cache so."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    a = node.args
    places = list(zip((*a.posonlyargs, *a.args)[::-1], a.defaults[::-1], strict=False))
    places += [(arg, default) for arg, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is not None]
    for argument, default in places:
        if not _mutable(view, default):
            continue
        cuts: tuple[Cut, ...] | None = None
        first = node.body[0]
        documented = ast.get_docstring(node, clean=False) is not None
        if documented and len(node.body) > 1:
            first = node.body[1]
        if (
            view.lone(first)
            and not isinstance(first, ast.FunctionDef | ast.ClassDef)
            and argument.annotation is None
            and (not documented or len(node.body) > 1)
        ):
            at = view.start(first)
            indent, step, end = view.indent(first), view.step(), view.newline
            guard = f"if {argument.arg} is None:{end}{indent}{step}{argument.arg} = {view.text(default)}{end}{indent}"
            if "\n" not in view.text(default) and not indent.strip():
                cuts = (view.put(default, "None"), (at, at, guard))
        yield Hit(default, "shared by all calls: make it inside", cuts, _SUGGESTION, anchor=node)


@rule(
    "late-binding",
    ast.Lambda,
    words=(b"lambda",),
    why="The lambda looks its names up when it is called: after the loop all of them see the last value.",
    bad=[
        bad("a = [lambda: i for i in x]\n", "a = [lambda i=i: i for i in x]\n", _SUGGESTION),
        bad("for i in x:\n    a.append(lambda: g(i))\n", "for i in x:\n    a.append(lambda i=i: g(i))\n", _SUGGESTION),
        bad("for i in x:\n    a[i] = lambda y: y + i\n"),
    ],
    good=[
        "a = [lambda i=i: i for i in x]\n",
        "for i in x:\n    a.append(sorted(y, key=lambda z: z[i]))\n",
        "a = [lambda y: y for i in x]\n",
    ],
)
def late_binding(view: View, node: ast.AST) -> Iterator[Hit]:
    """A lambda that is kept (an element, or put into a container) and uses the variable of the loop around it."""
    if not isinstance(node, ast.Lambda):
        return
    above = view.parent(node)
    targets: set[str] = set()
    if isinstance(above, ast.ListComp | ast.SetComp) and above.elt is node:
        targets = {n.id for g in above.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    else:
        put = (
            isinstance(above, ast.Call)
            and isinstance(above.func, ast.Attribute)
            and above.func.attr in ("append", "add")
        )
        put = put or (isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Subscript))
        loop = view.in_loop(node) if put else None
        if isinstance(loop, ast.For | ast.AsyncFor):
            targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    mine = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    used = {
        n.id for n in ast.walk(node.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    } & targets - mine
    if used:
        at = view.start(node) + len("lambda")
        plain = not mine and view.between(at, at + 1) == ":"
        new = " " + ", ".join(f"{name}={name}" for name in sorted(used))
        yield Hit(
            node, f"sees the last {', '.join(sorted(used))} only", ((at, at, new),) if plain else None, _SUGGESTION
        )


@rule(
    "super-arguments",
    ast.Call,
    grade=_SAFE,
    words=(b"super(",),
    why="`super()` knows its class and object; the arguments are a place for mistakes when a class is renamed or copied.",
    bad=[
        bad(
            "class A(B):\n    def f(self):\n        return super(A, self).f()\n",
            "class A(B):\n    def f(self):\n        return super().f()\n",
            _SAFE,
        )
    ],
    good=[
        "class A(B):\n    def f(self):\n        return super(C, self).f()\n",
        "@slots\nclass A(B):\n    def f(self):\n        return super(A, self).f()\n",
        "class A(B):\n    def f(self):\n        return [super(A, self).f() for x in y]\n",
        "class A(B):\n    def f(self):\n        self = 1\n        return super(A, self).f()\n",
        "class A(B):\n    def f(self):\n        return super(A, self).f()\nA = g(A)\n",
    ],
)
def super_arguments(view: View, node: ast.AST) -> Iterator[Hit]:
    """`super(A, self)` directly in a method of class `A` that has no decorators and whose name is bound once."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords or not view.builtin(node.func, "super"):
        return
    cls, me = node.args
    method = view.scope(node).node
    if (
        not isinstance(cls, ast.Name)
        or not isinstance(me, ast.Name)
        or not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
    ):
        return
    owner = view.parent(method)
    if not isinstance(owner, ast.ClassDef) or owner.name != cls.id or owner.decorator_list or owner.keywords:
        return
    names = [*method.args.posonlyargs, *method.args.args]
    bound = view.scope(node).names.get(me.id, [])
    if names and names[0].arg == me.id and len(bound) == 1 and [b.node for b in view.bindings(cls)] == [owner]:
        if "\n" not in view.text(node) and view.scope(node).names.get(cls.id) is None:
            cut = (view.end(node.func), view.end(node), "()")
            yield Hit(node, "super() knows its arguments", (cut,), _SAFE)


@rule(
    "object-base",
    ast.ClassDef,
    grade=_SAFE,
    words=(b"object",),
    why="Every class of Python 3 has `object` as its base.",
    bad=[bad("class A(object):\n    pass\n", "class A:\n    pass\n", _SAFE)],
    good=[
        "class A:\n    pass\n",
        "class A(B, object):\n    pass\n",
        "object = B\nclass A(object):\n    pass\n",
        "class A(object, metaclass=M):\n    pass\n",
    ],
)
def object_base(view: View, node: ast.AST) -> Iterator[Hit]:
    """`object` as the only base of a class."""
    if (
        isinstance(node, ast.ClassDef)
        and len(node.bases) == 1
        and not node.keywords
        and view.builtin(node.bases[0], "object")
    ):
        start, end = view.start(node.bases[0]), view.end(node.bases[0])
        plain = (
            view.between(start - 1, start) == "("
            and view.between(end, end + 1) == ")"
            and not getattr(node, "type_params", ())
        )
        yield Hit(
            node.bases[0],
            "object is every class's base",
            ((start - 1, end + 1, ""),) if plain else None,
            _SAFE,
            anchor=node,
        )


@rule(
    "self-assignment",
    ast.Assign,
    why="Assigning a name to itself does nothing, or another name was meant.",
    bad=[bad("def f(self, x):\n    self.x = self.x\n"), bad("def f(x):\n    x = x\n")],
    good=["x = x\n", "class A:\n    x = x\n", "def f(self, x):\n    self.x = x\n", "def f(x):\n    x = y = x\n"],
)
def self_assignment(view: View, node: ast.AST) -> Iterator[Hit]:
    """A name or attribute assigned to itself inside a function. Modules and classes do so to export a name."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and view.scope(node).kind is Kind.FUNCTION:
        target, value = node.targets[0], node.value
        same = isinstance(target, ast.Name | ast.Attribute) and type(target) is type(value)
        if same and view.text(target) == view.text(value):
            yield Hit(node, "assigned to itself")


def _silent(node: ast.stmt) -> bool:
    """Whether a statement that never runs may go without making a generator, a local name or a comment disappear."""
    if not isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Pass):
        return False
    return not any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr) for n in ast.walk(node))


@rule(
    "unreachable",
    *_JUMPS,
    grade=_SAFE,
    words=(b"return", b"raise", b"break", b"continue"),
    why="What follows in the same block never runs; the reader thinks that it does.",
    bad=[
        bad("def f():\n    return 1\n    return 2\n", "def f():\n    return 1\n", _SAFE),
        bad("while x:\n    break\n    pass\n", "while x:\n    break\n", _SAFE),
        bad("def f():\n    raise A\n    g()\n", None, _SUGGESTION),
    ],
    good=["def f():\n    return\n    yield\n", "def f():\n    if x:\n        return 1\n    return 2\n"],
)
def unreachable(view: View, node: ast.AST) -> Iterator[Hit]:
    """A statement after `return`, `raise`, `break` or `continue`. Other jumps are taken away; the rest is only shown,
    as it may hold what somebody wants back. A `yield` there makes a generator and is let pass."""
    block = view.block(node)
    at = next((n for n, s in enumerate(block) if s is node), len(block))
    if any(isinstance(s, _JUMPS) for s in block[:at]) or at + 1 >= len(block):
        return
    after = block[at + 1]
    if any(isinstance(n, ast.Yield | ast.YieldFrom) for s in block[at + 1 :] for n in ast.walk(s)):
        return
    plain = _silent(after) and view.lone(after) and view.between(view.end(node), view.start(after)).strip() == ""
    plain = plain and view.line_end(view.end(after)) == view.end(after)
    yield Hit(
        after,
        "never runs",
        (view.without(block, at + 1),) if plain else None,
        _SAFE if plain else _SUGGESTION,
        anchor=view.parent(after),
    )


@rule(
    "redundant-pass",
    ast.Pass,
    grade=_SAFE,
    words=(b"pass",),
    why="A block with a statement in it needs no `pass`.",
    bad=[
        bad("class A:\n    '''Doc.'''\n    pass\n", "class A:\n    '''Doc.'''\n", _SAFE),
        bad("if x:\n    f()\n    pass\n", "if x:\n    f()\n", _SAFE),
    ],
    good=[
        "class A:\n    pass\n",
        "class A: pass\n",
        "if x:\n    f()\n    pass  # nothing else\n",
        "if x:\n    # why\n    pass\n    f()\n",
    ],
)
def redundant_pass(view: View, node: ast.AST) -> Iterator[Hit]:
    """`pass` beside other statements, where no comment hangs on it."""
    block = view.block(node)
    above = view.parent(node)
    if len(block) < 2 or isinstance(above, ast.Module) or not isinstance(node, ast.stmt):
        return
    at = next(n for n, s in enumerate(block) if s is node)
    if any(isinstance(s, _JUMPS) for s in block[:at]) or all(isinstance(s, ast.Pass) for s in block[:at]) and at:
        return  # said of the jump, or of the first
    lone = view.lone(node) and view.line_end(view.end(node)) == view.end(node)
    start, end = (view.end(block[at - 1]) if at else view.start(node)), view.start(node)
    quiet = "#" not in view.between(start, end) and (at or not _comment_above(view, node))
    yield from (
        [Hit(node, "pass is not needed", (view.without(block, at),), _SAFE, anchor=above)] if lone and quiet else []
    )


def _comment_above(view: View, node: ast.stmt) -> bool:
    line = view.line_of(node)
    starts = view.source.line_starts
    return line > 1 and view.between(starts[line - 2], starts[line - 1]).strip().startswith("#")


def _listed(node: ast.AST) -> list[ast.Constant] | None:
    """The names that an `__all__` writes out."""
    if isinstance(node, ast.List | ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts):
        return [e for e in node.elts if isinstance(e, ast.Constant)]
    return None


@rule(
    "all-names",
    ast.Assign,
    words=(b"__all__",),
    why="`from module import *` fails on a name in `__all__` that the module has not.",
    bad=[bad("__all__ = ['f', 'g']\ndef f():\n    pass\n")],
    good=[
        "__all__ = ['f']\ndef f():\n    pass\n",
        "from x import *\n__all__ = ['f']\n",
        "__all__ = ['f']\ndef __getattr__(name):\n    pass\n",
        "__all__ = ['f']\nglobals().update(f=1)\n",
    ],
)
def all_names(view: View, node: ast.AST) -> Iterator[Hit]:
    """A name in `__all__` that nothing in the module binds. Packages, whose submodules count, and modules
    that bind names in other ways are let pass."""
    if not isinstance(node, ast.Assign) or view.scope(node) is not view.walk.root or view.walk.star:
        return
    if view.name.startswith("__init__."):
        return  # a package's submodules are names of it
    if not any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
        return
    names = view.walk.root.names
    dynamic = "__getattr__" in names or "__path__" in names
    text = view.source.utf8
    if dynamic or any(word in text for word in (b"globals()", b"vars()", b"exec(", b"setattr(", b"sys.modules")):
        return
    for item in _listed(node.value) or ():
        if isinstance(item.value, str) and item.value not in names and not item.value.startswith("__"):
            yield Hit(item, f"{item.value!r} is not in this module", anchor=node)


RULES = (
    mutable_default, late_binding, super_arguments, object_base, self_assignment, unreachable, redundant_pass, all_names,
)  # fmt: skip
