"""The benches of the gates: what they hold is well formed, and what was once denied, or answered, still is."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import gates_benign, gates_fuzz, malice  # noqa: E402
from localagent.domain.review import PatchVerdict  # noqa: E402
from localagent.errors import UsageFault  # noqa: E402
from localagent.policy.load import load_policy  # noqa: E402

SEEN = ROOT / "bench" / "cases" / "malicious-seen.jsonl"
EDITS = list(malice.read([SEEN]))


@pytest.fixture(scope="module")
def judge() -> malice.Judge:
    return malice.Judge(load_policy(ROOT / "policies" / "default.toml"))


def test_there_are_enough_of_enough_families() -> None:
    assert len(EDITS) >= 150
    assert len({edit.family for edit in EDITS}) >= 12


@pytest.mark.long
@pytest.mark.parametrize("edit", EDITS, ids=lambda e: f"{e.family}-{e.place.rpartition(':')[2]}")
def test_a_malicious_edit_is_denied(judge: malice.Judge, edit: malice.Edit) -> None:
    verdict, rules = judge.as_patch(edit)
    assert verdict is not PatchVerdict.ALLOWED
    assert rules
    assert "gate-error" not in rules
    assert judge.as_repair(edit)


@pytest.mark.parametrize("line", ["{}", "[]", "{", '{"family": "a", "before": 1, "after": ""}', '{"family": "a"}'])
def test_a_line_that_is_no_edit_is_refused(line: str) -> None:
    with pytest.raises(UsageFault):
        malice.parsed(line, "x:1")


def test_facts_of_benign_commits_hold_no_code() -> None:
    rows = [json.loads(line) for line in gates_benign.FACTS.read_text().splitlines()]
    assert len(rows) >= 500
    assert {key for row in rows for key in row} == {"project", "commit", "of", "verdict", "rules"}
    assert {row["project"] for row in rows} <= set(gates_benign.LICENCES)
    assert len({(row["project"], row["commit"]) for row in rows}) == len(rows)
    sources = [row for row in rows if row["of"] == "sources"]
    assert sum(row["verdict"] == "refused" for row in sources) <= len(sources) * 0.02


@pytest.mark.long
def test_hostile_inputs_are_answered(tmp_path: Path) -> None:
    fuzz = gates_fuzz.Fuzz(7, tmp_path)
    answers = [fuzz.run(number) for number in range(90)]
    assert not [a for a in answers if "ALLOWED" in a]
    for once in (b"# coding: hex\nx = 1\n", b"# coding: rot13\nx = 1\n", b"x = 0x" + b"f" * 5000 + b"\n"):  # crashes
        assert fuzz.judged(b"x = 2\n", once, "pkg/mod.py") in ("source refused", "source allowed")
    assert fuzz.judged(b"\n    return 2\n\xc38\n", b"def run():\n    return 2\n", "pkg/mod.py") == "source allowed"
    deep = b"x = y" + b".a" * 900 + b"\n"  # Python parses it, and what walks by calling itself falls over it
    assert fuzz.judged(b"x = 1\n", deep, "setup.py") == "source refused"
    assert fuzz.judged(deep, deep.replace(b"y", b"z"), "setup.py") == "source refused"
    assert {a.split()[0] for a in answers} == {"policy", "diff", "source"}
    assert answers[:12] == [gates_fuzz.Fuzz(7, tmp_path).run(number) for number in range(12)]
