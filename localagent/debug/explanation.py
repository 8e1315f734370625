"""An explanation from facts: what was raised, where it surfaced, what it means, which value, who changed it last.

Each fact names its place. Nothing runs and nothing is guessed: what the text of a line does not settle is not said.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.names import callee_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import functions, head_end, lines_of
from localagent.debug.exception_meanings import Meaning, meaning_of
from localagent.debug.frame_mapping import FrameMapper, frame_lines
from localagent.domain.paths import RepoPath
from localagent.domain.traceback import FrameMatch, MappedFrame, Traceback, TracedException, TraceFrame
from localagent.repo.line_history import LineChange
from localagent.text.visible_text import shortened

Sources = Mapping[RepoPath, bytes]
History = Callable[[RepoPath, tuple[int, ...]], Mapping[int, LineChange]]
MOST_FRAMES = 12
MOST_CALLERS = 8
_CALLER_FILES = 2_000
_DIVIDING = ast.Div | ast.FloorDiv | ast.Mod


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """One sentence. `label` says what it is about; `path` and `line` where it can be seen, else None and 0."""

    label: str
    sentence: str
    path: RepoPath | None = None
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """A headline, facts in reading order, and the lines around the place that matters most."""

    headline: str
    facts: tuple[Fact, ...]
    excerpt: tuple[tuple[int, str], ...] = ()
    path: RepoPath | None = None
    line: int = 0
    frames: tuple[MappedFrame, ...] = ()


def explain_traceback(traceback: Traceback, mapper: FrameMapper, sources: Sources, history: History) -> Explanation:
    """One traceback, by the exception that began it."""
    origin, surfaced = traceback.origin, traceback.surfaced
    mapped = mapper.map(origin.frames)
    here = [f for f in mapped if f.match is not FrameMatch.OUTSIDE]
    at = here[-1] if here else None
    meaning = meaning_of(origin.type, origin.message)
    facts = [
        *_chain(traceback, mapper),
        *_raised_at(mapped),
        *(_callers(mapper.map(surfaced.frames)[:-1]) if surfaced is not origin else ()),
        *_meaning(meaning),
        *_values(origin, at, sources),
        *_last_change(at, history),
    ]
    if not origin.complete:
        facts.append(Fact(label="note", sentence="the text is cut off: frames or a message may be missing"))
    excerpt = frame_lines(at, sources) if at is not None else ()
    headline = _title(surfaced) if surfaced is origin else f"{_title(origin)}; it surfaced as {_title(surfaced)}"
    return Explanation(
        headline=headline,
        facts=tuple(facts),
        excerpt=excerpt,
        path=at.path if at else None,
        line=at.line if at else 0,
        frames=mapped,
    )


def _title(exception: TracedException) -> str:
    first = shortened(exception.message.split("\n", 1)[0], 300)
    kind = exception.type or "an exception whose name is cut off"
    return f"{kind}: {first}" if first else kind


def _chain(traceback: Traceback, mapper: FrameMapper) -> Iterator[Fact]:
    """The other exceptions of the chain, each with its innermost frame here."""
    words = {"context": "raised while that was being handled", "cause": "raised from that", "member": "in the group"}
    for one in traceback.exceptions[:20]:
        if one is traceback.origin:
            continue
        here = [f for f in mapper.map(one.frames[-MOST_FRAMES:]) if f.path is not None]
        label = words.get(one.link.value, "after it" if one is traceback.surfaced else "before it")
        place = here[-1] if here else None
        yield Fact(
            label=label, sentence=_title(one), path=place.path if place else None, line=place.line if place else 0
        )


def _raised_at(mapped: tuple[MappedFrame, ...]) -> Iterator[Fact]:
    """Where it was raised, which frame here is innermost, and how it came there."""
    if not mapped:
        yield Fact(label="raised at", sentence="the text shows no frames of it")
        return
    last = mapped[-1]
    here = [f for f in mapped if f.path is not None]
    if last.path is None:
        name = f", in {last.frame.function}" if last.frame.function else ""
        yield Fact(label="raised at", sentence=f"{last.frame.file}:{last.frame.line}{name}, outside this repository")
    for label, frame in (("raised at", last), ("surfaced at", here[-1] if here else last)):
        if frame.path is not None and (label == "raised at") == (frame is last):
            yield Fact(label=label, sentence=_where(frame), path=frame.path, line=frame.line)
    if not here:
        yield Fact(label="note", sentence="none of its frames is a file of this repository")
    yield from _callers(here[:-1])
    outside = len(mapped) - len(here)
    if outside and here:
        yield Fact(label="note", sentence=f"{outside} of {len(mapped)} frames lie outside this repository")
    repeated = max((f.frame.repeated for f in mapped), default=0)
    if repeated:
        yield Fact(label="note", sentence=f"one frame is repeated {repeated} more times: a call of itself")


def _callers(frames: Sequence[MappedFrame]) -> Iterator[Fact]:
    """The frames here, innermost first."""
    here = [f for f in frames if f.path is not None]
    for frame in reversed(here[-MOST_FRAMES:]):
        yield Fact(label="called from", sentence=_where(frame), path=frame.path, line=frame.line)


def _where(frame: MappedFrame) -> str:
    """A mapped frame in words, with how sure the mapping is."""
    name = f"in {frame.frame.function}" if frame.frame.function else "in this file"
    if frame.match is FrameMatch.MOVED:
        return f"{name}; line {frame.frame.line} in the trace, moved since"
    if frame.match is FrameMatch.FUNCTION:
        return f"{name}; its line {frame.frame.line} in the trace reads differently here"
    if frame.match is FrameMatch.FILE:
        return f"{name}, which this version of the file does not show at line {frame.frame.line}"
    return name


def _meaning(meaning: Meaning | None) -> Iterator[Fact]:
    if meaning is not None:
        yield Fact(label="it means", sentence=meaning.sentence)
        yield Fact(label="look at", sentence=meaning.look)


def _values(origin: TracedException, at: MappedFrame | None, sources: Sources) -> Iterator[Fact]:
    """Which expression of the line was None, missing or unknown, where only one can be meant."""
    if at is None or at.path is None or not at.line:
        return
    found = sorted(set(_blamed(origin, statement_at(sources[at.path], at.line))))
    if len(found) == 1:
        yield Fact(label="the value", sentence=found[0], path=at.path, line=at.line)
    elif found:
        yield Fact(label="the value", sentence="one of: " + "; ".join(found[:4]), path=at.path, line=at.line)


def _blamed(origin: TracedException, node: ast.AST | None) -> Iterator[str]:
    if node is None:
        return
    message = origin.message
    none = "NoneType" in message
    attribute = message.rpartition("attribute '")[2].split("'", 1)[0] if "has no attribute '" in message else ""
    for part in ast.walk(node):
        if attribute and isinstance(part, ast.Attribute) and part.attr == attribute:
            yield f"`{shortened(ast.unparse(part.value), 120)}` {'was None' if none else f'has no `.{attribute}`'}"
        elif none and "subscriptable" in message and isinstance(part, ast.Subscript):
            yield f"`{shortened(ast.unparse(part.value), 120)}` was None"
        elif none and "not callable" in message and isinstance(part, ast.Call):
            yield f"`{shortened(ast.unparse(part.func), 120)}` was None"
        elif none and "not iterable" in message and isinstance(part, ast.For | ast.comprehension):
            yield f"`{shortened(ast.unparse(part.iter), 120)}` was None"
        elif origin.name in ("KeyError", "IndexError") and isinstance(part, ast.Subscript):
            yield f"`{shortened(ast.unparse(part.value), 80)}` has no item `{shortened(ast.unparse(part.slice), 80)}`"
        elif origin.name == "ZeroDivisionError" and isinstance(part, ast.BinOp) and isinstance(part.op, _DIVIDING):
            yield f"`{shortened(ast.unparse(part.right), 120)}` was zero"


def statement_at(source: bytes, line: int) -> ast.AST | None:
    """The innermost statement at a line; of one with a body only its head, as an expression. None without one."""
    tree = parse_or_none(source)
    best: ast.stmt | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and node.lineno <= line <= head_end(node):
            best = node if best is None or node.lineno >= best.lineno else best
    match best:
        case ast.If(test=head) | ast.While(test=head) | ast.Match(subject=head):
            return head
        case ast.For() | ast.AsyncFor():
            return ast.comprehension(target=best.target, iter=best.iter, ifs=[], is_async=0)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return ast.Tuple(elts=[item.context_expr for item in items], ctx=ast.Load())
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Try() | ast.TryStar():
            return None
        case _:
            return best


def _last_change(at: MappedFrame | None, history: History) -> Iterator[Fact]:
    if at is None or at.path is None or not at.line:
        return
    change = history(at.path, (at.line,)).get(at.line)
    if change is not None:
        yield Fact(label="last changed", sentence=change_text(change), path=at.path, line=at.line)


def change_text(change: LineChange) -> str:
    """A change of a line in words."""
    if not change.commit:
        return "not committed yet"
    return f"{change.commit[:10]} {change.date} {shortened(change.author, 80)}: {shortened(change.summary, 160)}"


def explain_line(path: RepoPath, line: int, sources: Sources, history: History) -> Explanation:
    """A line of a file: the function it is in, what it reads and where that was last assigned, callers, last change."""
    source = sources[path]
    tree = parse_or_none(source)
    frame = MappedFrame(frame=TraceFrame(file=path, line=line), match=FrameMatch.EXACT, path=path, line=line)
    facts: list[Fact] = []
    if tree is None:
        facts.append(Fact(label="note", sentence="this file does not parse", path=path))
    else:
        around = [f for f in functions(tree) if line in lines_of(f.node)]
        node = statement_at(source, line)
        if around:
            inner = around[-1]
            facts.append(Fact(label="function", sentence=f"in {inner.qualname}", path=path, line=inner.node.lineno))
            facts += _assignments(inner.node, node, path, line)
            facts += callers_of(inner.node.name, sources)
        elif node is not None:
            facts.append(Fact(label="function", sentence="at the top of the module: it runs when that is imported"))
    facts += _last_change(frame, history)
    return Explanation(
        headline=f"{path}:{line}",
        facts=tuple(facts),
        excerpt=frame_lines(frame, sources, around=4),
        path=path,
        line=line,
    )


def _assignments(function: ast.AST, node: ast.AST | None, path: RepoPath, line: int) -> Iterator[Fact]:
    """Where the names that a statement reads were assigned last above it, in its function."""
    if node is None:
        return
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    parameters = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
    for name in sorted(read)[:10]:
        stores = (
            n.lineno
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        )
        above = [at for at in stores if at < line]
        if above:
            yield Fact(label="reads", sentence=f"`{name}`, assigned above", path=path, line=max(above))
        elif name in parameters:
            yield Fact(label="reads", sentence=f"`{name}`, a parameter", path=path, line=getattr(function, "lineno", 0))


def callers_of(name: str, sources: Sources) -> Iterator[Fact]:
    """Calls of a function of that name, by name alone: another function may be called so."""
    word = name.encode()
    shown = 0
    for path in list(sources)[:_CALLER_FILES]:
        source = sources[path]
        if word not in source or (tree := parse_or_none(source)) is None:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and callee_name(node.func) == name:
                yield Fact(label="called at", sentence=f"a call of `{name}`", path=path, line=node.lineno)
                shown += 1
                if shown >= MOST_CALLERS:
                    return
