"""Real one-place fixes of permissively licensed projects: how many are one edit of the edit space, their place known?

`python bench/space.py --repos DIR [--each 40] [--skip 0] [--written SECONDS] [--json FILE]`: DIR holds clones (as for
gates_benign.py). Taken of each history, newest first, are the commits that say that they mend something and change one
place of one source, at most six lines of code, and tests beside it; `--skip` passes over so many first. The file is
given to the edit space as it stood before, with the other sources of that tree, and the changed lines. Printed: the
share whose exact syntax tree is among the first 2,000 edits, and among all. With `--written` the bundled model then
writes spans at the same lines for so long where the first 2,000 lack the fix, the changed tests in front: of 2,000
candidates a search gives at most 400 to it. Nothing runs; nothing is learned from them; of other right fixes it says
nothing.
"""

import argparse
import ast
import difflib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.gates_benign import _TESTS, git, project_of  # noqa: E402
from localagent.app.fix.prior import load_prior  # noqa: E402
from localagent.app.jail_level import least_level  # noqa: E402
from localagent.app.settings import Settings as House  # noqa: E402
from localagent.domain.outcome import Baseline  # noqa: E402
from localagent.domain.paths import RepoPath  # noqa: E402
from localagent.domain.task import Suspicion  # noqa: E402
from localagent.edit.space import open_edit_space  # noqa: E402
from localagent.jail.api import open_jail  # noqa: E402
from localagent.llm.model.quantized_store import serving  # noqa: E402
from localagent.llm.model.registry import Registry  # noqa: E402
from localagent.llm.scoring.scorer import ModelScorer  # noqa: E402
from localagent.llm.scoring.test_context import build_failing  # noqa: E402
from localagent.llm.writing.span_writer import SpanWriter  # noqa: E402
from localagent.repair.ordering.weights import load_weights  # noqa: E402

_MENDS = re.compile(
    r"\b(fix\w*|bug|regress\w*|wrong\w*|incorrect\w*|crash\w*|broken|error|handle\w*|issue|raise\w*)\b", re.I
)
_LOOSE = re.compile(rb"#[^\n]*|[\s()\"',\\]+")  # a comment comes or goes with many a fix
_MOST_LINES = 6
_FIRST = 2_000
_LAID_OUT_BYTES = 400  # by which layout and comments may differ
_FILE_BYTES = 400_000
_MOST_FILES = 60
_SECONDS = 60.0
_MOST_WRITTEN = 400  # of 2,000 candidates (repair/search/frontier.py)


class Fix(NamedTuple):
    """A file before and after, and the lines of `before` that changed (a place of insertion: its neighbours)."""

    project: str
    sha: str
    path: str
    before: bytes
    after: bytes
    lines: frozenset[int]


def _code(source: bytes) -> str | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0].value = ast.Constant(0)
        plain = (ast.Constant, ast.Name)  # in whichever order, they say the same
        if isinstance(node, ast.Call) and all(k.arg and isinstance(k.value, plain) for k in node.keywords):
            node.keywords.sort(key=lambda k: k.arg or "")
        if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
            node.type.elts.sort(key=ast.dump)
    return ast.dump(tree)


def fix_of(clone: Path, project: str, sha: str) -> Fix | None:
    """The one place of the one source that a commit changes; None if it changes more, or no code."""
    names = git(clone, "diff-tree", "-r", "--no-commit-id", "--name-status", "-z", sha).split(b"\0")[:-1]
    pairs = list(zip(names[::2], [n.decode("utf-8", "replace") for n in names[1::2]], strict=False))
    sources = [(s, n) for s, n in pairs if n.endswith(".py") and not _TESTS.search(n) and not n.startswith("doc")]
    if len(sources) != 1 or sources[0][0] != b"M" or not any(_TESTS.search(n) for _, n in pairs):
        return None
    path = sources[0][1]
    before, after = (git(clone, "show", f"{sha}{at}:{path}") for at in ("^", ""))
    if not 0 < len(before) <= _FILE_BYTES:
        return None
    old, new = before.splitlines(), after.splitlines()
    changes = [c for c in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if c[0] != "equal"]
    if len(changes) != 1:
        return None
    _, i1, i2, j1, j2 = changes[0]
    if max(i2 - i1, j2 - j1) > _MOST_LINES:
        return None
    codes = _code(before), _code(after)
    if None in codes or codes[0] == codes[1]:
        return None
    lines = frozenset(range(i1 + 1, i2 + 1)) if i2 > i1 else _neighbours(old, i1)
    return Fix(project, sha, path, before, after, lines)


def _neighbours(rows: list[bytes], at: int) -> frozenset[int]:
    """The lines, from 1, of the code before and behind a place; blank lines and comments are none."""
    code = [n for n, row in enumerate(rows, 1) if row.strip() and not row.lstrip().startswith(b"#")]
    return frozenset([*[n for n in code if n <= at][-1:], *[n for n in code if n > at][:1]])


def mined(clone: Path, project: str, most: int) -> Iterator[Fix]:
    """Newest first, at most so many."""
    count = 0
    for row in (
        git(clone, "log", "--no-merges", "--min-parents=1", "--format=%H %s", "--", "*.py")
        .decode("utf-8", "replace")
        .splitlines()
    ):
        sha, _, subject = row.partition(" ")
        if _MENDS.search(subject) and (fix := fix_of(clone, project, sha)) is not None:
            yield fix
            count += 1
            if count == most:
                return


def _tree(clone: Path, fix: Fix) -> Mapping[RepoPath, bytes]:
    names = git(clone, "ls-tree", "-r", "-z", "--name-only", f"{fix.sha}^").split(b"\0")
    folder = fix.path.rpartition("/")[0]
    paths = [n.decode() for n in names if n.endswith(b".py") and n.isascii()]
    near = sorted(paths, key=lambda p: (not p.startswith(folder), p.count("/"), p))[:_MOST_FILES]
    return {RepoPath(p): git(clone, "show", f"{fix.sha}^:{p}") for p in dict.fromkeys([fix.path, *near])}


def _weighed(source: bytes) -> tuple[int, int]:
    """What sources of the same code, in whichever order it stands, have in common: quicker than to parse them."""
    tight = _LOOSE.sub(b"", source)
    return len(tight), sum(tight)


def rank(clone: Path, fix: Fix, prior: Mapping[str, float]) -> tuple[int | None, str, int]:
    """(place from 1 or None, the operator, how many edits were seen)."""
    code = _code(fix.after)
    wanted, path, seen, ends = _weighed(fix.after), RepoPath(fix.path), 0, time.monotonic() + _SECONDS
    edits = open_edit_space(prior).edits(path, _tree(clone, fix), lines=fix.lines, failures=())
    for seen, edit in enumerate(edits, 1):
        made = edit.apply(fix.before)
        if (
            len(made) - len(fix.after) in range(-_LAID_OUT_BYTES, _LAID_OUT_BYTES)
            and _weighed(made) == wanted
            and _code(made) == code
        ):
            return seen, edit.operator, seen
        if time.monotonic() > ends:
            break
    return None, "", seen


class Scribe:
    """The bundled model, which writes at the lines of a fix."""

    def __init__(self, seconds: float) -> None:
        house = House.from_environ()
        model = serving(Registry(house.models_dir, house.data_dir).default(), house.data_dir)
        self._weights = load_weights(house.models_dir / "order.json")
        self._served = ModelScorer(model, open_jail(least=least_level(house)), threads=1)
        self._seconds = seconds

    def rank(self, clone: Path, fix: Fix) -> int | None:
        """Which of the edits that it writes is the fix, from 1; None if none is."""
        shown = build_failing(_changed_tests(clone, fix), ())
        writer = SpanWriter(
            self._served,
            lambda _path, _baseline: shown,
            localization=self._weights.localization,
            malus=self._weights.written,
        )
        places = [Suspicion(path=RepoPath(fix.path), line=n, end_line=n, score=1.0) for n in sorted(fix.lines)]
        writer.begin(_tree(clone, fix), places, _NO_BASELINE)
        code, seen, ends = _code(fix.after), 0, time.monotonic() + self._seconds
        while seen < _MOST_WRITTEN and writer.next_cost < float("inf") and time.monotonic() < ends:
            for written in writer.more(timeout_seconds=20.0):
                seen += 1
                if _code(written.edit.apply(fix.before)) == code:
                    return seen
        return None


_NO_BASELINE = Baseline(tests=())


def _changed_tests(clone: Path, fix: Fix) -> list[tuple[RepoPath, bytes, Sequence[str]]]:
    """The test functions that a commit adds or changes, by file."""
    names = git(clone, "diff-tree", "-r", "--no-commit-id", "--name-only", "-z", fix.sha).split(b"\0")
    out: list[tuple[RepoPath, bytes, Sequence[str]]] = []
    for name in (n.decode("utf-8", "replace") for n in names):
        if name.endswith(".py") and _TESTS.search(name):
            before, after = (git(clone, "show", f"{fix.sha}{at}:{name}") for at in ("^", ""))
            known = _functions(before)
            fresh = [function for function, text in _functions(after).items() if known.get(function) != text]
            out += [(RepoPath(name), after, fresh)] if fresh else []
    return out


def _functions(source: bytes) -> dict[str, str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    return {n.name: ast.dump(n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test")}


def main() -> int:
    """Print one line per fix and the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="pass over the first N fixes of each history")
    parser.add_argument("--written", type=float, default=0.0, metavar="SECONDS", help="let the model write, too")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    prior = load_prior(ROOT / "models" / "prior.json")
    scribe = Scribe(args.written) if args.written else None
    rows = []
    for clone in sorted(args.repos.iterdir()):
        if not (project := project_of(clone)):
            continue
        for fix in list(mined(clone, project, args.skip + args.each))[args.skip :]:
            place, operator, seen = rank(clone, fix, prior)
            row = {"project": project, "commit": fix.sha, "rank": place, "operator": operator, "edits": seen}
            if scribe is not None and (place is None or place > _FIRST):
                row["written"] = scribe.rank(clone, fix)
            rows.append(row)
            wrote = f"written {row['written']}" if row.get("written") else ""
            print(f"{project:30} {fix.sha[:12]} {place or '-':>6} of {seen:6} {operator} {wrote}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    found = [int(r["rank"]) for r in rows if isinstance(r["rank"], int)]
    first = sum(r <= _FIRST for r in found)
    share = f"{first / max(1, len(rows)):.1%}"
    print(f"fixes {len(rows)}; among the first {_FIRST:,}: {first} = {share}; among all: {len(found)}")
    if scribe is not None:
        both = first + sum(bool(r.get("written")) for r in rows)
        print(f"written besides: {both - first}; among both: {both} = {both / max(1, len(rows)):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
