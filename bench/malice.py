"""Malicious edits, put to the gates before anything could run: how many of each family are denied?

`python bench/malice.py FILE|FOLDER... [--policy NAME|FILE] [--json] [--show]`: JSON lines, one edit each: `family`,
`before`, `after` (null where nothing stands), and `path` (default `pkg/mod.py`). *patch*: as `localagent gate` judges
anybody's patch, *repair*: as `fix` judges a candidate. Denied is what may not run: refused, or waiting for a person; an
edit that only waits for one is also counted by itself. `--show` prints what was allowed. Bar: all denied as patches.

`cases/malicious-seen.jsonl` and `malicious-variants.jsonl` were written by those who write the rules, and
`malicious-set-aside.jsonl`, `-2`, `-4`, `-5`, `-6` and `malicious-enemy.jsonl` were read by them when their misses
became rules: all are *seen* sets. Take figures of quality from a set that is not.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.app.policies import open_policy  # noqa: E402
from localagent.app.review.patch_gate import verdict_of  # noqa: E402
from localagent.app.settings import Settings  # noqa: E402
from localagent.domain.diff import ChangeKind, FileMode, TreeChange  # noqa: E402
from localagent.domain.edit import Candidate, FileChange, Patch  # noqa: E402
from localagent.domain.gate import Allow  # noqa: E402
from localagent.domain.outcome import Baseline  # noqa: E402
from localagent.domain.paths import RepoPath  # noqa: E402
from localagent.domain.policy import Policy  # noqa: E402
from localagent.domain.review import PatchVerdict  # noqa: E402
from localagent.errors import UsageFault  # noqa: E402
from localagent.gate.approval_required import files_needing_approval  # noqa: E402
from localagent.gate.patch_gates import PatchGates  # noqa: E402
from localagent.gate.repair_gates import open_gate_chain  # noqa: E402
from localagent.gate.rule_catalogue import rule_texts  # noqa: E402

KEYS = {"family", "before", "after", "path"}


class Edit(NamedTuple):
    """One malicious edit, and where it was read."""

    family: str
    path: RepoPath
    before: bytes | None
    after: bytes | None
    place: str


def read(files: list[Path]) -> Iterator[Edit]:
    """The edits of some files, or of every *.jsonl of some folders. UsageFault for a line that is none."""
    for path in files:
        for one in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
            for number, line in enumerate(one.read_text(encoding="utf-8").splitlines(), 1):
                if line.strip():
                    yield parsed(line, f"{one}:{number}")


def parsed(line: str, place: str) -> Edit:
    try:
        found: dict[str, Any] = json.loads(line)
        if not {"family", "before", "after"} <= set(found) <= KEYS | {"id", "note"}:
            raise UsageFault(f"{place}: the keys of an edit are {', '.join(sorted(KEYS))}")
        before, after = (
            None if found[key] is None else found[key].encode("utf-8", "surrogateescape") for key in ("before", "after")
        )
        return Edit(found["family"], RepoPath(found.get("path", "pkg/mod.py")), before, after, place)
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageFault(f"{place}: no edit: {error}") from error


class Judge:
    """Both chains of a policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._rules = rule_texts(policy)
        self._gates = PatchGates(policy)
        self._chain = open_gate_chain(policy, ())

    def as_patch(self, edit: Edit) -> tuple[PatchVerdict, list[str]]:
        before, after = edit.before, edit.after
        kind = ChangeKind.ADDED if before is None else ChangeKind.DELETED if after is None else ChangeKind.MODIFIED
        entry = TreeChange(
            path=edit.path, source=edit.path, kind=kind, before=before or b"", after=after or b"",
            before_mode=None if before is None else FileMode.REGULAR,
            after_mode=None if after is None else FileMode.REGULAR,
        )  # fmt: skip
        decisions = self._gates.review((entry,), everything=True)
        return verdict_of(decisions, self._rules), sorted({f.rule for d in decisions for f in d.findings})

    def as_repair(self, edit: Edit) -> bool:
        """True if denied, or kept as a proposal for a person. What adds or removes a file is no repair."""
        if edit.before is None or edit.after is None:
            return True
        change = FileChange(path=edit.path, before=edit.before, after=edit.after)
        candidate = Candidate(number=1, patch=Patch(changes=(change,)), edits=(), cost=0.0)
        decisions = list(self._chain.review(candidate, Baseline(tests=()), {edit.path: edit.before}))
        return decisions[-1].answer is not Allow.ALLOW or bool(files_needing_approval(candidate.patch, self._policy))


def main() -> int:
    """Print the table; 1 if an edit is allowed as a patch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    judge = Judge(open_policy(Settings.from_environ(), args.policy).policy)
    table: dict[str, Counter[str]] = {}
    allowed = []
    for edit in read(args.files):
        verdict, rules = judge.as_patch(edit)
        row = table.setdefault(edit.family, Counter())
        row["edits"] += 1
        row["patch"] += verdict is not PatchVerdict.ALLOWED
        row["person"] += verdict is PatchVerdict.NEEDS_PERSON
        row["repair"] += judge.as_repair(edit)
        row.update({f"rule {rule}": 1 for rule in rules})
        if verdict is PatchVerdict.ALLOWED:
            allowed.append(edit)
    whole: Counter[str] = sum(table.values(), Counter())
    if args.json:
        print(json.dumps({"families": table, "whole": whole, "allowed": [e.place for e in allowed]}))
        return int(bool(allowed))
    width = max((len(f) for f in table), default=5)
    print(f"{'family':<{width}}  edits  denied as patch  (person only)  denied as repair")
    for family, row in [*sorted(table.items()), ("all", whole)]:
        print(f"{family:<{width}}  {row['edits']:5}  {row['patch']:15}  {row['person']:13}  {row['repair']:16}")
    for edit in allowed:
        print(f"allowed: {edit.family} {edit.place}")
        if args.show:
            print((edit.after or b"").decode("utf-8", "replace"))
    print(f"{len(table)} families, {whole['patch'] / max(1, whole['edits']):.1%} denied as patches")
    return int(bool(allowed))


if __name__ == "__main__":
    raise SystemExit(main())
