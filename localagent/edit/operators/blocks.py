"""Blocks: a statement put into a condition or loop or taken out, deeper or less deep, an else added or removed."""

from collections.abc import Iterator

import libcst as cst

from localagent.domain.edit import EditEffect
from localagent.edit.layout import body_statements, inside_function, is_docstring, movable, reindented, removed, step
from localagent.edit.operator_context import Change, OperatorContext
from localagent.edit.operator_registry import operator
from localagent.edit.operators.guards import conditions_at
from localagent.edit.unit import Stmt


@operator("dedent", prior=-0.4, deep=True)
def dedent(ctx: OperatorContext) -> Iterator[Change]:
    """The last statements of a block leave it and follow it."""
    for s in body_statements(ctx):
        owner = s.suite.owner
        if owner is None or s.index == 0 or isinstance(owner.node, (cst.FunctionDef, cst.ClassDef)):
            continue
        if not movable(owner) and not owner.is_elif:
            continue
        tail = s.suite.statements[s.index :]
        texts = [reindented(ctx, t, owner.indent) for t in tail]
        if any(t is None for t in texts) or tail[-1].end != owner.end:
            continue
        previous = s.suite.statements[s.index - 1]
        text = ctx.unit.newline + ctx.unit.newline.join(t for t in texts if t is not None)
        yield ctx.splice(
            s,
            (previous.eol, tail[-1].eol, text),
            delta=-0.2 * (len(tail) - 1),
            note=f"{len(tail)} statement(s) dedented",
        )


@operator("indent", prior=-0.5, deep=True)
def indent(ctx: OperatorContext) -> Iterator[Change]:
    """The statements after a block become its last ones."""
    for s in body_statements(ctx):
        if s.index == 0:
            continue
        previous = s.suite.statements[s.index - 1]
        at: Stmt | None = previous
        while at is not None and at.suites:
            inner = next((x for x in reversed(at.suites) if x.statements), None)
            if inner is None or inner.inline:
                break
            last = inner.statements[-1]
            if inner.slot != "elif":
                for count in range(1, min(4, len(s.suite.statements) - s.index) + 1):
                    run = s.suite.statements[s.index : s.index + count]
                    texts = [reindented(ctx, t, last.indent) for t in run if movable(t)]
                    if len(texts) == count and all(t is not None for t in texts):
                        text = ctx.unit.newline.join(t for t in texts if t is not None) + ctx.unit.newline
                        yield ctx.splice(
                            s,
                            (s.line_start, run[-1].line_end, text),
                            delta=-0.2 * (count - 1),
                            note=f"{count} indented",
                        )
            at = last


@operator("unblock", prior=-0.9, deep=True, effects={EditEffect.UNWRAPS_BLOCK})
def unblock(ctx: OperatorContext) -> Iterator[Change]:
    """A block's header is removed and its statements stay: `if x: y` to `y`."""
    for s in ctx.statements:
        if not isinstance(s.node, (cst.If, cst.While, cst.For, cst.With, cst.Try)) or not movable(s):
            continue
        for suite in s.suites:
            if suite.inline or suite.slot == "elif" or not suite.statements:
                continue
            texts = [reindented(ctx, t, s.indent) for t in suite.statements]
            if all(t is not None for t in texts):
                text = ctx.unit.newline.join(t for t in texts if t is not None)
                others = sum(1 for x in s.suites if x.statements and x is not suite)
                yield ctx.splice(
                    s, (s.line_start, s.eol, text), delta=-0.4 * others, note=f"only the {suite.slot} stays"
                )


@operator("else-drop", prior=-0.7, deep=True)
def else_drop(ctx: OperatorContext) -> Iterator[Change]:
    """An `else` is removed: with its statements, or keeping them after the block."""
    for s in ctx.statements:
        suite = next((x for x in s.suites if x.slot == "else" and x.statements), None)
        if suite is None or suite.inline or not (movable(s) or s.is_elif):
            continue
        body_end = max(x.statements[-1].eol for x in s.suites if x.statements and x is not suite)
        last = suite.statements[-1]
        yield ctx.splice(s, (body_end, last.eol, ""), delta=-0.3, note="else removed")
        texts = [reindented(ctx, t, s.indent) for t in suite.statements]
        if all(t is not None for t in texts):
            text = ctx.unit.newline + ctx.unit.newline.join(t for t in texts if t is not None)
            yield ctx.splice(s, (body_end, last.eol, text), note="else's statements follow the block")


@operator("else-add", prior=-0.9, deep=True)
def else_add(ctx: OperatorContext) -> Iterator[Change]:
    """The statements after an `if` or a loop become its `else`; or a branch gets an `else` with a known statement."""
    inner = step(ctx)
    for s in body_statements(ctx):
        if not isinstance(s.node, (cst.If, cst.For, cst.While)):
            continue
        tip = s
        while tip.suites[-1].slot == "elif" and tip.suites[-1].statements:
            tip = tip.suites[-1].statements[0]
        if tip.suites[-1].statements or tip.suites[0].inline:
            continue
        following = s.suite.statements[s.index + 1 :]
        for count in range(1, min(3, len(following)) + 1):
            texts = [reindented(ctx, t, s.indent + inner) for t in following[:count]]
            if all(t is not None for t in texts):
                text = f"{ctx.unit.newline}{s.indent}else:{ctx.unit.newline}"
                text += ctx.unit.newline.join(t for t in texts if t is not None)
                yield ctx.splice(s, (s.eol, following[count - 1].eol, text), delta=-0.2 * count, note="else added")
        if isinstance(s.node, cst.If) and inside_function(ctx, s):
            yield from _else_copies(ctx, s, inner)


def _else_copies(ctx: OperatorContext, s: Stmt, inner: str) -> Iterator[Change]:
    offers: dict[str, int] = {}
    for other in ctx.unit.statements:
        if not other.compound and other.line == other.end_line and not is_docstring(other) and other.scope is s.scope:
            offers.setdefault(ctx.unit.slice(other.start, other.end), other.line)
    for name, kind in ctx.names.kinds.items():
        if kind == "int" and name in ctx.visible(s):
            offers.setdefault(f"{name} += 1", s.line + 5)
            offers.setdefault(f"{name} -= 1", s.line + 5)
            offers.setdefault(f"{name} = 0", s.line + 5)
    for text, line in sorted(offers.items(), key=lambda x: abs(x[1] - s.line))[:25]:
        if text in ("break", "continue") and not s.in_loop:
            continue
        insertion = f"{ctx.unit.newline}{s.indent}else:{ctx.unit.newline}{s.indent}{inner}{text}"
        yield ctx.splice(
            s, (s.eol, s.eol, insertion), delta=-1.4 - 0.02 * min(abs(line - s.line), 30), note=f"else: {text}"
        )


@operator("branch-swap", prior=-0.7)
def branch_swap(ctx: OperatorContext) -> Iterator[Change]:
    """The two branches of an `if` change places, or the tests of an `if` and its `elif`."""
    for s in ctx.statements:
        if not isinstance(s.node, cst.If):
            continue
        body, orelse = s.suites
        if orelse.slot == "else" and orelse.statements and not (body.inline or orelse.inline):
            a = ctx.unit.slice(body.statements[0].line_start, body.statements[-1].eol)
            b = ctx.unit.slice(orelse.statements[0].line_start, orelse.statements[-1].eol)
            yield ctx.splice(
                s,
                (body.statements[0].line_start, body.statements[-1].eol, b),
                (orelse.statements[0].line_start, orelse.statements[-1].eol, a),
                note="branches swapped",
            )
        if orelse.slot == "elif" and orelse.statements:
            other = orelse.statements[0]
            if isinstance(other.node, cst.If):
                one, two = ctx.unit.outer(s.node.test), ctx.unit.outer(other.node.test)
                yield ctx.splice(
                    s, (*one, ctx.unit.slice(*two)), (*two, ctx.unit.slice(*one)), note="tests of if and elif swapped"
                )
                yield from _bodies_swapped(ctx, s, other)


def _bodies_swapped(ctx: OperatorContext, s: Stmt, other: Stmt) -> Iterator[Change]:
    body, body2 = s.suites[0], other.suites[0]
    if body.inline or body2.inline or not body.statements or not body2.statements:
        return
    one = (body.statements[0].line_start, body.statements[-1].eol)
    two = (body2.statements[0].line_start, body2.statements[-1].eol)
    yield ctx.splice(
        s, (*one, ctx.unit.slice(*two)), (*two, ctx.unit.slice(*one)), note="bodies of if and elif swapped"
    )


@operator("condition-around", prior=-2.3, effects={EditEffect.CHANGES_CONDITION})
def condition_around(ctx: OperatorContext) -> Iterator[Change]:
    """A statement (or it and those after it) is put under a known condition, or one made of names in scope."""
    inner = step(ctx)
    for s in body_statements(ctx):
        if not inside_function(ctx, s) or isinstance(s.node, (cst.FunctionDef, cst.ClassDef)):
            continue
        rest = s.suite.statements[s.index :]
        for run in ([s], rest) if 1 < len(rest) <= 6 else ([s],):
            if not all(map(movable, run)):
                continue
            texts = [reindented(ctx, t, s.indent + inner) for t in run]
            if any(t is None for t in texts):
                continue
            body = ctx.unit.newline.join(t for t in texts if t is not None)
            for condition, likely in conditions_at(ctx, s):
                for word, plus in (("if", 0.0), ("while", -1.2)):
                    text = f"{s.indent}{word} {condition}:{ctx.unit.newline}{body}"
                    delta = likely + plus - (0.4 if len(run) > 1 else 0.0)
                    yield ctx.splice(s, (s.line_start, run[-1].eol, text), delta=delta, note=f"{word} {condition}: ...")


@operator("try-around", prior=-3.3)
def try_around(ctx: OperatorContext) -> Iterator[Change]:
    """A statement is put into `try`; known exceptions lead to a return, `continue` or a default."""
    inner = step(ctx)
    names = [n for n, _ in ctx.facts.exceptions.most_common(4)] + [
        f.exception for f in ctx.failures if f.exception.isidentifier()
    ]
    names = [n for n in dict.fromkeys(names) if n not in ("AssertionError", "Exception", "BaseException")]
    for s in body_statements(ctx):
        if s.compound or not inside_function(ctx, s) or isinstance(s.node, (cst.Pass, cst.Break, cst.Continue)):
            continue
        text = reindented(ctx, s, s.indent + inner)
        if text is None:
            continue
        rescues = ["return None", "return False", "return []", *(["continue"] if s.in_loop else [])]
        if isinstance(s.node, cst.Assign) and isinstance(s.node.targets[0].target, cst.Name):
            rescues = [f"{s.node.targets[0].target.value} = None", *rescues]
        for name in names[:4]:
            for place, rescue in enumerate(rescues):
                nl = ctx.unit.newline
                new = f"{s.indent}try:{nl}{text}{nl}{s.indent}except {name}:{nl}{s.indent}{inner}{rescue}"
                yield ctx.splice(s, (s.line_start, s.eol, new), delta=-0.1 * place, note=f"except {name}: {rescue}")


@operator("merge-conditions", prior=-1.4, deep=True, effects={EditEffect.CHANGES_CONDITION})
def merge_conditions(ctx: OperatorContext) -> Iterator[Change]:
    """A nested `if` is moved out: it follows the outer `if`, or their conditions are merged."""
    for s in body_statements(ctx):
        owner = s.suite.owner
        if owner is None or not isinstance(owner.node, cst.If) or not movable(owner) or len(s.suite.statements) != 1:
            continue
        text = reindented(ctx, s, owner.indent)
        if text is not None:
            at = (owner.line_start, owner.line_start, text + ctx.unit.newline)
            yield ctx.splice(s, removed(s), at, note="inner block before the outer")
