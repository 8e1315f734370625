"""Writes `models/reference-bugs.json`, the built-in set of `localagent model bench`, from the cases below `bench/`.

reference_bugs.py     cases of one file and one place: `order` where a single enumerated edit is the fix, else `write`
"""

import ast
import difflib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import casefile  # noqa: E402 - the checkout's, found by the line above
from localagent.app.fix.prior import load_prior  # noqa: E402
from localagent.app.models.bench import Bug, right_edits  # noqa: E402
from localagent.domain.paths import RepoPath  # noqa: E402
from localagent.edit.space import open_edit_space  # noqa: E402

MOST_ORDER = 14
MOST_WRITE = 8
LARGEST = 1500


def parses(source: str) -> bool:
    """Whether it is a program at all: places are known only in those that are."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def main() -> int:
    """Entry point."""
    space = open_edit_space(load_prior(ROOT / "models" / "prior.json"))
    rows: dict[str, list[dict[str, object]]] = {"order": [], "write": []}
    for case in [*casefile.read_all(casefile.CASES.parent / "spans"), *casefile.read_all()]:
        if len(case.oracle) != 1 or len(case.files) != 1:
            continue
        ((path, after),) = case.oracle.items()
        before, tests, hidden = case.files[path], *("".join(part.values()) for part in (case.visible, case.hidden))
        blocks = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n")).get_opcodes()
        changed = [block for block in blocks if block[0] != "equal"]
        if len(before) > LARGEST or not path.endswith(".py") or len(changed) != 1 or changed[0][0] != "replace":
            continue
        if not parses(before):
            continue
        line = changed[0][1] + 1
        bug = Bug(id=case.id, kind="", path=path, line=line, before=before, after=after, tests=tests, hidden=hidden)
        source, near = {RepoPath(path): before.encode()}, frozenset(range(max(1, line - 3), line + 4))
        kind = "order" if right_edits(bug, space.edits(RepoPath(path), source, lines=near, failures=())) else "write"
        if kind == "write" and changed[0][2] - changed[0][1] > 1:
            continue
        rows[kind].append(
            {n: getattr(bug, n) for n in ("id", "path", "line", "before", "after", "tests", "hidden")} | {"kind": kind}
        )
        if len(rows["order"]) >= MOST_ORDER:
            break
    bugs = [*rows["order"], *rows["write"][:MOST_WRITE]]
    text = json.dumps({"schema": 1, "bugs": bugs}, indent=1, ensure_ascii=True, sort_keys=True) + "\n"
    (ROOT / "models" / "reference-bugs.json").write_text(text, encoding="ascii")
    sys.stdout.write(f"{len(rows['order'])} to order, {len(bugs) - len(rows['order'])} to write\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
