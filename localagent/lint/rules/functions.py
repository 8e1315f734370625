"""Rules on functions and classes."""

import ast
from collections.abc import Iterator

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import Cut, FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION


def _mutable(view: FileView, node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and not node.args and view.named(
        node.func, "builtins.list", "builtins.dict", "builtins.set", "collections.defaultdict",
        "collections.OrderedDict", "collections.deque", "collections.Counter",
    )  # fmt: skip


@rule(
    "mutable-default",
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    words=(b"=",),
    why="A default is created once: what one call adds, the next one sees.",
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
def mutable_default(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A default that is a new list, dictionary or set. A suggestion, because some functions use it as a cache."""
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
        yield Hit(default, "mutable default, shared by all calls", cuts, _SUGGESTION, anchor=node)


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
def late_binding(view: FileView, node: ast.AST) -> Iterator[Hit]:
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


def _class_cell_in_doubt(view: FileView) -> bool:
    """Whether something in the file binds `__class__`, or makes classes in another way than `type` does."""
    if b"metaclass" in view.source.utf8:
        return True
    scopes = (view.walk.root, *view.walk.own.values())
    if any("__class__" in (*s.names, *s.module_names, *s.outer_names) for s in scopes):
        return True
    classes = (node for node in view.walk.own if isinstance(node, ast.ClassDef))
    return any(view.named(base, "builtins.type", "abc.ABCMeta", "enum.EnumMeta") for c in classes for base in c.bases)


@rule(
    "super-arguments",
    ast.Call,
    grade=_SAFE,
    words=(b"super(",),
    why="`super()` knows its class and object; the arguments go wrong when a class is renamed or copied.",
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
        "class A(B):\n    def f(self):\n        __class__ = type(self)\n        return super(A, self).f()\n",
        "class A(B):\n    def f(self):\n        nonlocal __class__\n        return super(A, self).f()\n",
        "class A(B, metaclass=M):\n    def f(self):\n        return super(A, self).f()\n",
        "class M(type):\n    pass\nB = M('B', (), {})\nclass A(B):\n    def f(self):\n"
        "        return super(A, self).f()\n",
    ],
)
def super_arguments(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """`super(A, self)` directly in a method of class `A` that has no decorators and whose name is bound once.

    Files that bind `__class__`, from which `super()` learns its class, or that have metaclasses, which may not pass it
    on, are let pass.
    """
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
        known = view.scope(node).names.get(cls.id) is None and not _class_cell_in_doubt(view)
        if "\n" not in view.text(node) and known:
            cut = (view.end(node.func), view.end(node), "()")
            yield Hit(node, "super() needs no arguments here", (cut,), _SAFE)


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
def object_base(view: FileView, node: ast.AST) -> Iterator[Hit]:
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
            "object is the base of every class anyway",
            ((start - 1, end + 1, ""),) if plain else None,
            _SAFE,
            anchor=node,
        )


RULES = (
    mutable_default, late_binding, super_arguments, object_base,
)  # fmt: skip
