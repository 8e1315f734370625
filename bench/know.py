"""References and calls of real projects: what the code graph says, against jedi and against calls that were recorded.

    python bench/know.py --jedi VENV/bin/python CHECKOUT...            references of sampled symbols
    python bench/know.py --calls "PYTHON -m pytest -q tests" CHECKOUT   calls while the project's tests run

The baseline is jedi's `goto` at every token that bears a symbol's name: a token is a reference where jedi leads from
there to a line that binds the symbol. jedi is wrong or silent at times; `silent` counts certain references of ours
about which it says nothing, which are neither right nor wrong. Where ctags and ripgrep are installed, the same is asked
of them, by lines. Calls are recorded with `sys.settrace`; a certain call counts for precision where its line ran.
Calls of generators and coroutines are left out on both sides: Python tells who resumes them, not who calls them.
Recording runs the project's tests WITHOUT a jail: take only checkouts that
you trust.
"""

import argparse
import inspect
import io
import json
import os
import random
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from localagent.code.graph.calls import CallGraph, FunctionId
from localagent.code.graph.code_graph import CodeGraph
from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import DefinitionKind, ModuleFacts
from localagent.code.graph.references import Certainty, ReferenceKind, find_references, qualified_name
from localagent.code.graph.values import Symbol
from localagent.code.source_text import read_source
from localagent.domain.paths import RepoPath

Place = tuple[str, int, int]  # path, line, column in characters
MOST_TOKENS = 60  # of one symbol that jedi is asked about

JEDI = """
import json, sys, jedi
root, queries = json.load(sys.stdin)
project = jedi.Project(root, added_sys_path=[root + "/src", root])
scripts = {}
for path, line, column in queries:
    if path not in scripts:
        scripts[path] = jedi.Script(path=root + "/" + path, project=project)
    try:
        names = scripts[path].goto(line, column, follow_imports=True, follow_builtin_imports=False)
        found = [[str(n.module_path), n.line] for n in names if n.module_path]
    except Exception as error:
        found = []
    print(json.dumps(found), flush=True)
"""

RECORD = """
import atexit, json, os, sys, threading
ROOT = os.environ["KNOW_ROOT"] + os.sep
calls, lines = set(), set()
def local(frame, event, argument):
    if event == "line":
        lines.add((frame.f_code.co_filename, frame.f_lineno))
    return local
def trace(frame, event, argument):
    code = frame.f_code
    if not code.co_filename.startswith(ROOT):
        return None
    back = frame.f_back
    if back is not None and back.f_code.co_filename.startswith(ROOT) and code.co_name[0] != "<":
        calls.add((back.f_code.co_filename, back.f_lineno, code.co_filename, code.co_firstlineno))
    lines.add((code.co_filename, frame.f_lineno))
    return local
def write():
    sys.settrace(None)
    with open(os.environ["KNOW_OUT"], "w") as out:
        json.dump([sorted(calls), sorted(lines)], out)
atexit.register(write)
threading.settrace(trace)
sys.settrace(trace)
"""


def read_tree(root: Path) -> dict[RepoPath, bytes]:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "*.py", "*.pyi"], capture_output=True, check=True)
    return {RepoPath(p): (root / p).read_bytes() for p in listed.stdout.decode().splitlines()}


def is_test(path: str) -> bool:
    return any(part.startswith(("test", "conftest")) or part.endswith("_test.py") for part in path.split("/"))


def sampled(graph: CodeGraph, count: int, seed: int) -> list[Symbol]:
    """Functions, classes, methods, module variables and attributes outside of tests."""
    found = []
    for path in sorted(graph.facts):
        if is_test(path) or path.startswith(("docs/", "examples/")):
            continue
        view = graph.view(path)
        names = {(0, view.name_of(b.target)) for b in view.facts.bindings if b.target in module_level(view)}
        for at, members in view.members.items():
            names |= {(view.facts.definitions[at].own_scope, name) for name in members}
        found += [
            Symbol(path, scope, name)
            for scope, name in sorted(names)
            if len(name) > 2 and not name.startswith("__") and is_own(graph, Symbol(path, scope, name))
        ]
    random.Random(seed).shuffle(found)
    return found[:count]


def is_own(graph: CodeGraph, symbol: Symbol) -> bool:
    """Whether a name is no import, not even of something outside."""
    imported = {fact.bound for fact in graph.view(symbol.path).facts.imports}
    return symbol.name not in imported and graph.origins(symbol) == {symbol}


def module_level(view) -> set[int]:
    return {at for at, row in enumerate(view.facts.expressions) if row.kind == 0 and row.a == 0}


def binding_lines(graph: CodeGraph, symbol: Symbol) -> set[tuple[str, int]]:
    view = graph.view(symbol.path)
    at = view.definition_of_scope.get(symbol.scope, -1)
    members = view.members.get(at)
    bound = view.bindings(symbol.scope, symbol.name) if members is None else members.get(symbol.name, [])
    return {(symbol.path, binding.line) for binding in bound}


def tokens(sources: dict[RepoPath, bytes]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for path, source in sources.items():
        before = ""
        try:
            for token in tokenize.tokenize(io.BytesIO(source).readline):
                defines = before in ("def", "class")  # from an override jedi leads to what it overrides
                before = token.string
                if token.type == tokenize.NAME and not defines:
                    found.setdefault(token.string, []).append((path, token.start[0], token.start[1]))
        except (tokenize.TokenError, SyntaxError):
            continue
    return found


def characters(sources: dict[RepoPath, bytes], path: str, line: int, column: int) -> Place:
    text = read_source(sources[RepoPath(path)])
    start = text.line_starts[line - 1]
    return path, line, len(text.utf8[start : start + column].decode(errors="replace"))


def ask_jedi(python: str, root: Path, queries: list[Place]) -> Iterator[list[list]]:
    with tempfile.NamedTemporaryFile("w+") as question:
        json.dump([str(root), queries], question)
        question.seek(0)
        with subprocess.Popen([python, "-c", JEDI], stdin=question, stdout=subprocess.PIPE, text=True) as child:
            for number, line in enumerate(child.stdout):
                if number % 500 == 0:
                    print(f"  jedi: {number}/{len(queries)}", file=sys.stderr)
                yield json.loads(line)


def references(root: Path, args: argparse.Namespace) -> None:
    sources = read_tree(root)
    if not sources:
        sys.exit(f"{root}: no Python files; a checkout is needed, not a bare repository")
    facts = {p: f for p, s in sources.items() if isinstance(f := collect_facts(s), ModuleFacts)}
    graph = CodeGraph(facts)
    by_name = tokens({p: s for p, s in sources.items() if p in facts})
    symbols = sampled(graph, args.symbols, args.seed)
    asked = {s: sorted(by_name.get(s.name, []), key=lambda p: (hash_of(p), p))[:MOST_TOKENS] for s in symbols}
    queries = sorted({place for places in asked.values() for place in places})
    started = time.process_time()
    ours = {s: find_references(graph, [s]) for s in symbols}
    seconds = time.process_time() - started
    answers = dict(zip(queries, ask_jedi(args.jedi, root, queries), strict=True))
    total: Counter[str] = Counter()
    misses: list[str] = []
    for symbol in symbols:
        lines = binding_lines(graph, symbol)
        kinds = {characters(sources, r.path, r.line, r.column): r for r in ours[symbol]}
        for place in asked[symbol]:
            said = [(os.path.relpath(p, root), n) for p, n in answers[place]]
            mine = kinds.get(place)
            deleted = mine is not None and mine.kind == ReferenceKind.DELETE
            if place[:2] in lines or deleted:  # jedi leads from there to the place itself
                continue
            truth = bool(lines & set(said))
            label = "none" if mine is None else mine.certainty.value
            if truth:
                total[f"true {label}"] += 1
            elif label == "certain":
                total["silent" if not said else "contradicted"] += 1
            else:
                total["other"] += 1
            if (label == "certain") != truth:
                source = sources[RepoPath(place[0])].splitlines()[place[1] - 1].strip().decode(errors="replace")
                misses.append(
                    f"{label:9} jedi={truth if said else 'silent'} {qualified_name(graph, symbol)} {place} {source[:90]}"  # noqa: E501
                )
    known = total["true certain"] + total["true possible"] + total["true none"]
    sure = total["true certain"] + total["contradicted"]
    print(
        f"{root.name}: {len(symbols)} symbols, {len(queries)} tokens: precision {share(total['true certain'], sure)}, "
        f"recall certain {share(total['true certain'], known)}, "
        f"with possible {share(total['true certain'] + total['true possible'], known)}; {dict(total)}; {seconds:.1f} s"
    )
    random.Random(1).shuffle(misses)
    print("\n".join(misses[: args.misses]))
    print(beside(root, graph, asked, answers))


def beside(root: Path, graph: CodeGraph, asked: dict[Symbol, list[Place]], answers: dict[Place, list[list]]) -> str:
    """The same of ctags and ripgrep: where a name is defined and where it stands as a word, whatever it means there."""
    if not shutil.which("ctags") or not shutil.which("rg"):
        return "  ctags and ripgrep are not both installed: nothing to put beside it"
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tags, before = Path(folder) / "tags", children_seconds()
        options = ["--languages=Python", "--fields=n", "--kinds-Python=+l", "-R", "-f", str(tags), "."]
        subprocess.run(["ctags", *options], cwd=root, check=True)
        indexing = children_seconds() - before
        defined: dict[str, set[tuple[str, int]]] = {}
        for row in tags.read_text(errors="replace").splitlines():
            if not row.startswith("!"):
                name, path, *rest = row.split("\t")
                line = next(int(part[5:]) for part in rest if part.startswith("line:"))
                defined.setdefault(name, set()).add((os.path.normpath(path), line))
    before = children_seconds()
    for symbol, places in asked.items():
        lines, tagged = binding_lines(graph, symbol), defined.get(symbol.name, set())
        total["defined, right"] += bool(lines & tagged)
        total["tags"] += len(tagged)
        total["tags of it"] += len(lines & tagged)
        argv = ["rg", "-n", "--column", "-w", "-F", "--no-heading", "-g", "*.py", "-g", "*.pyi", symbol.name, "."]
        told = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False).stdout.splitlines()
        found = {(os.path.normpath(p), int(n)) for p, n, *_ in (row.split(":", 2) for row in told)}
        truth = {p[:2] for p in places if lines & {(os.path.relpath(q, root), n) for q, n in answers[p]}} - lines
        said = {p[:2] for p in places if answers[p]} - lines  # of the others jedi says nothing
        total["used, true"] += len(truth)
        total["used, found"] += len(truth & found)
        total["lines told"] += len(found & said)
    asking = (children_seconds() - before) / max(1, len(asked))
    return (
        f"  ctags and ripgrep: definition among the tags {share(total['defined, right'], len(asked))}, "
        f"tags of the name that are of it {share(total['tags of it'], total['tags'])}; "
        f"lines of use: precision {share(total['used, found'], total['lines told'])}, "
        f"recall {share(total['used, found'], total['used, true'])}; "
        f"processor seconds: tags {indexing:.2f}, a question {asking:.3f}"
    )


def children_seconds() -> float:
    """Processor seconds of the processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hash_of(place: Place) -> int:
    return random.Random(str(place)).randrange(1 << 30)


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def calls(root: Path, args: argparse.Namespace) -> None:
    sources = read_tree(root)
    facts = {p: f for p, s in sources.items() if isinstance(f := collect_facts(s), ModuleFacts)}
    graph = CallGraph(CodeGraph(facts))
    recorded, ran = record(root, args.calls)
    spans = {path: starts(one) for path, one in facts.items()}
    true = set()
    for caller_file, line, callee_file, first in recorded:
        caller = function_at(facts, os.path.relpath(caller_file, root), line)
        at = spans.get(os.path.relpath(callee_file, root), {}).get(first)
        if caller is not None and at is not None:
            true.add((caller, FunctionId(path=RepoPath(os.path.relpath(callee_file, root)), index=at)))
    lines = {(os.path.relpath(p, root), n) for p, n in ran}
    resumed = {
        FunctionId(path=path, index=spans[path][first])
        for path in facts
        for first in resumed_functions(sources[path])
        if first in spans[path]
    }
    true = {(caller, callee) for caller, callee in true if callee not in resumed}
    edges = [
        edge
        for path in facts
        for edge in graph.in_file(path)
        if facts[edge.callee.path].definitions[edge.callee.index].kind != DefinitionKind.LAMBDA  # not recorded
        and edge.callee not in resumed
    ]
    sure = {(e.caller, e.callee) for e in edges if e.certainty == Certainty.CERTAIN}
    maybe = {(e.caller, e.callee) for e in edges}
    judged = {
        (e.caller, e.callee): e for e in edges if e.certainty == Certainty.CERTAIN and (e.caller.path, e.line) in lines
    }
    print(
        f"{root.name}: {len(true)} recorded calls, {len(judged)} certain ones on lines that ran: "
        f"precision {share(len(true & set(judged)), len(judged))}, "
        f"recall certain {share(len(true & sure), len(true))}, "
        f"with possible {share(len(true & maybe), len(true))}"
    )
    show = random.Random(1)
    wrong, missed = sorted(set(judged) - true), sorted(true - maybe)
    for label, found in (("wrong", wrong), ("missed", missed)):
        show.shuffle(found)
        for caller, callee in found[: args.misses]:
            where = f":{judged[caller, callee].line}" if label == "wrong" else ""
            print(f"{label} {named(facts, caller)}{where} -> {named(facts, callee)}")


def record(root: Path, command: str) -> tuple[list, list]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sitecustomize.py").write_text(RECORD)
        out = Path(folder) / "calls.json"
        roots = os.pathsep.join([folder, str(root / "src"), str(root)])
        environ = {**os.environ, "PYTHONPATH": roots, "KNOW_ROOT": str(root), "KNOW_OUT": str(out)}
        done = subprocess.run(shlex.split(command), cwd=root, env=environ, capture_output=True, text=True, check=False)
        print("  " + (done.stdout.strip().splitlines() or [done.stderr[-500:]])[-1], file=sys.stderr)
        return tuple(json.loads(out.read_text()))


def starts(facts: ModuleFacts) -> dict[int, int]:
    return {d.first_line: at for at, d in enumerate(facts.definitions) if d.kind < DefinitionKind.CLASS}


def resumed_functions(source: bytes) -> Iterator[int]:
    """The first lines of a file's generators and coroutines."""
    try:
        waiting = [compile(source, "<source>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return
    while waiting:
        code = waiting.pop()
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            yield code.co_firstlineno
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]


def function_at(facts: dict[RepoPath, ModuleFacts], path: str, line: int) -> FunctionId | None:
    if path not in facts:
        return None
    best = -1
    for at, made in enumerate(facts[RepoPath(path)].definitions):
        if made.kind != DefinitionKind.LAMBDA and made.first_line <= line <= made.end_line and made.line <= line:
            best = at
    return FunctionId(path=RepoPath(path), index=best)


def named(facts: dict[RepoPath, ModuleFacts], function: FunctionId) -> str:
    name = facts[function.path].qualified_name(function.index) if function.index >= 0 else "<module>"
    return f"{function.path}:{name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--jedi", metavar="PYTHON", help="a Python that has jedi: measure references")
    parser.add_argument("--calls", metavar="COMMAND", help="a command that runs the tests: measure calls")
    parser.add_argument("--symbols", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misses", type=int, default=0, metavar="N", help="show N misses of each kind")
    args = parser.parse_args()
    for checkout in args.checkouts:
        if args.jedi:
            references(checkout.resolve(), args)
        if args.calls:
            calls(checkout.resolve(), args)


if __name__ == "__main__":
    main()
