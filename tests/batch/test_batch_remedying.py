"""Findings of other tools as work of the batch: SARIF logs and mypy's errors, on real trees in real jails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batch_builder import Batch
from support.fix_builder import ADDER, home, tree_of
from support.sarif_builder import log, result, run

from localagent.batch.stacked_patches import LineMap

STYLE = "\n\ndef absent(name, names):\n    return not name in names or name == None\n"
ASYNC = (
    "async def note(seen: list[int]) -> None:\n    seen.append(1)\n\n\n"
    "async def main(seen: list[int]) -> int:\n    note(seen)\n    return 1 + ''\n"
)
EACH = (
    '[each]\nwork = ["failing-tests"]\nmodel = false\nmax_candidates = 12\nmax_seconds = 150\npolicy = "takes.toml"\n'
)
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def night() -> Iterator[tuple[Batch, Rows]]:
    """One night: a log for a repository with failing tests, one that leaves it, and one with type errors."""
    with home({}) as h:
        batch = Batch(h)
        source = ADDER["adder.py"]
        assert isinstance(source, str)
        batch.add("logged", {**ADDER, "adder.py": STYLE.lstrip() + source})
        found = (result("E713", "adder.py", 2), result("E711", "adder.py", 2), result("F401", "adder.py", 1))
        broken = source.splitlines().index("    return a - b") + STYLE.count("\n") - 1
        (h.root / "one.sarif").write_bytes(log(run(*found, result("E711", "adder.py", broken))))
        (h.root / "two.sarif").write_bytes(log(run(result("E711", "../../etc/passwd", 1))))
        batch.add("leaving", {"a.py": "x = 1\n"})
        test = "import asyncio\n\nimport work\n\n\ndef test_it():\n    seen = []\n"
        test += "    try:\n        asyncio.run(work.main(seen))\n    except TypeError:\n        pass\n"
        batch.add("typed", {"work.py": ASYNC, "test_work.py": test})
        before = tree_of(batch.folder)
        fleet = batch.write(
            f'[[repository]]\npath = "{batch.folder}/logged"\nwork = ["sarif", "failing-tests"]\n'
            f'sarif = ["{h.root}/one.sarif"]\n'
            f'[[repository]]\npath = "{batch.folder}/leaving"\nwork = ["sarif"]\nsarif = ["{h.root}/two.sarif"]\n'
            f'[[repository]]\npath = "{batch.folder}/typed"\nwork = ["type-errors"]\ntests = ["test_work.py"]\n',
            each=EACH,
        )
        assert batch.run(str(fleet), "--patches", str(h.root / "patches")).code == 1
        yield batch, {row["name"]: row for row in batch.report()["repositories"]}
        assert tree_of(batch.folder) == before
        assert list(h.scratch.iterdir()) == []


@pytest.mark.long
def test_findings_of_a_log_go_on_top_of_the_tests_repair(night: tuple[Batch, Rows]) -> None:
    _, rows = night
    tests, logged = rows["logged"]["steps"]
    assert (tests["work"], tests["state"]) == ("failing-tests", "fixed")
    became = {(f["rule"], f["line"]): f["state"] for f in logged["findings"]}
    assert (became[("E713", 2)], became[("E711", 2)], became[("F401", 1)]) == ("fixed", "skipped", "won't-fix")
    assert "+    return name not in names or name == None" in logged["patch"]
    assert "a + b" not in logged["patch"].replace(" return a + b", "")  # the earlier step's line is context at most
    assert logged["evidence"]["tests"] == "bear the patch"
    assert logged["left"] == {"ruff E711": 1, "ruff F401": 1}  # no test runs the comparison with None


@pytest.mark.long
def test_a_finding_on_lines_that_were_repaired_is_not_looked_for(night: tuple[Batch, Rows]) -> None:
    _, rows = night
    (stale,) = [f for f in rows["logged"]["steps"][1]["findings"] if f["settled"]]
    assert stale["why"].startswith("its lines were changed by the repair of an earlier step")


@pytest.mark.long
def test_a_result_that_leaves_the_repository_is_told_and_not_followed(night: tuple[Batch, Rows]) -> None:
    _, rows = night
    (step,) = rows["leaving"]["steps"]
    assert (rows["leaving"]["state"], step["patch"]) == ("gave-up", "")
    (found,) = step["findings"]
    assert (found["state"], "runs[0].results[0]" in found["why"]) == ("won't-fix", True)


@pytest.mark.long
def test_type_errors_are_found_in_the_jail_and_repaired_under_the_tests(night: tuple[Batch, Rows]) -> None:
    _, rows = night
    (step,) = rows["typed"]["steps"]
    fixed = [f for f in step["findings"] if f["state"] == "fixed"]
    assert [(f["tool"], f["rule"], f["line"], f["proof"]) for f in fixed] == [("mypy", "unused-coroutine", 6, "tests")]
    assert "+    await note(seen)" in step["patch"]
    assert (step["evidence"]["type errors before"], step["evidence"]["type errors after"]) == ("2", "1")
    assert step["left"] == {"mypy operator": 1}


@pytest.mark.long
def test_the_patches_are_a_series(night: tuple[Batch, Rows]) -> None:
    batch, _ = night
    series = sorted(p.name for p in (batch.home.root / "patches").rglob("*.patch"))
    assert series == ["0001-failing-tests.patch", "0001-type-errors.patch", "0002-sarif.patch"]
    text = Path(batch.home.root / "patches" / "logged" / "0002-sarif.patch").read_text()
    assert "] Repair findings of other tools in 1 files" in text
    assert "* adder.py:2 ruff E713" in text


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=8), st.lists(st.sampled_from(["a", "b", "d"]), max_size=8))
def test_a_line_that_stands_is_the_same_line(before: list[str], after: list[str]) -> None:
    lines = LineMap(*("\n".join(text).encode() for text in (before, after)))
    for n, text in enumerate(before, 1):
        stands = lines.now(n)
        assert not stands or (after[stands - 1] == text and lines.before(stands) == n)
