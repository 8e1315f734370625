"""`localagent bisect` on real repositories, in real jails: found, kept, resumed, and nothing of the user's changed."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support.fix_builder import Home, home, tree_of
from support.git_builder import Repo

GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b\n"
TEST = "from adder import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
pytestmark = pytest.mark.long


def history(repo: Repo, guilty: int, count: int = 6, broken: tuple[int, ...] = ()) -> list[str]:
    """Commits whose `guilty`th breaks the adder beside another change; `broken` do not parse; the test comes last."""
    commits = []
    for n in range(count):
        body = "def add(a, b:\n" if n in broken else BAD if n >= guilty else GOOD
        repo.stage("adder.py", f"{body}\n\ndef other():\n    return {n}\n")
        repo.stage("notes.txt", f"{n}\n")
        if n == count - 1:
            repo.stage("test_adder.py", TEST)
        repo.commit(f"change {n}")
        commits.append(repo.git("rev-parse", "HEAD").decode().strip())
    return commits


def bisect(h: Home, *arguments: str) -> tuple[int, dict[str, Any]]:
    ran = h.run("bisect", "--repo", str(h.repo), "--json", *arguments)
    assert ran.out, ran.err
    return ran.code, json.loads(ran.out)


def test_finds_the_commit_and_the_hunk_and_changes_nothing() -> None:
    with home({}) as h:
        commits = history(Repo(h.repo), guilty=3)
        before = tree_of(h.repo)
        code, told = bisect(h, "--test", "test_adder.py::test_add", "--good", commits[0])
        assert (code, told["end"], told["first_bad"]["commit"]) == (0, "found", commits[3])
        assert [(x["path"], x["after"]) for x in told["hunks"]["hunks"]] == [("adder.py", "    return a - b\n")]
        assert told["symptom"] == {"test_adder.py::test_add": "AssertionError"}
        differences = told["behaviour"]["differences"]
        assert ("add(2, 3)", "5", "-1") in [(d["call"], d["old"], d["new"]) for d in differences]
        assert {d["function"] for d in differences} == {"add"}  # other changes of the commit are not of this
        assert tree_of(h.repo) == before
        again, known = bisect(h, "--resume")  # every verdict is known
        assert (again, known["first_bad"]["commit"]) == (0, commits[3])
        assert sum(judged["runs"] for judged in known["judged"].values()) == 0


@pytest.mark.slow
def test_a_repair_takes_back_the_part_that_broke_and_keeps_the_feature_beside_it() -> None:
    before = "def total(prices, off):\n    whole = sum(prices)\n    return whole * (100 - off) // 100\n"
    after = "def total(prices, off, tax=0):\n    whole = sum(prices) + tax\n    return whole * (100 + off) // 100\n"
    test = "from shop import total\n\n\ndef test_off():\n    assert total([100, 50], 10) == 135\n"
    with home({}) as h:
        repo = Repo(h.repo)
        repo.stage("shop.py", before)
        repo.stage("test_shop.py", test)
        repo.commit("begin")
        repo.stage("shop.py", after)
        repo.stage("test_shop.py", f"{test}\n\ndef test_tax():\n    assert total([100], 0, tax=5) == 105\n")
        repo.commit("tax")
        repo.stage("shop.py", f"# A shop.\n{after}")
        repo.commit("a remark")
        spec = "test_shop.py::test_off"
        ran = h.run("bisect", "--repo", str(h.repo), "--test", spec, "--fix", "--no-model", "--json")
        told, end = json.JSONDecoder().raw_decode(ran.out)
        task = json.loads(ran.out[end:])["task"]
        assert [x["after"] for x in told["hunks"]["hunks"]] == ["    return whole * (100 + off) // 100\n"]
        proposed = () if ran.code == 0 else ("--choose", "1")  # a slow machine measures less, and is less sure
        assert h.run("apply", task, *proposed).code == 0
        assert (h.repo / "shop.py").read_text() == f"# A shop.\n{after}".replace("100 + off", "100 - off")


def test_without_a_good_commit_it_looks_for_one_and_broken_commits_are_a_range() -> None:
    with home({}) as h:
        commits = history(Repo(h.repo), guilty=4, broken=(2, 3))
        code, told = bisect(h, "--test", "test_adder.py", "--no-hunks")
        assert (code, told["end"]) == (1, "undecided")
        assert told["suspects"] == [commits[4], commits[3], commits[2]]
        assert "2 of them cannot be judged" in told["reason"]


def test_killed_in_the_middle_it_goes_on_and_no_verdict_is_lost() -> None:
    with home({}) as h:
        commits = history(Repo(h.repo), guilty=3)
        results = h.root / "state" / "localagent"
        with h.start("bisect", "--repo", str(h.repo), "--test", "test_adder.py", "--good", commits[0]) as process:
            while not (kept := sorted(results.rglob("results/*/*.json"))) or len(kept) < 2:
                assert process.poll() is None
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGKILL)
        kept = sorted(results.rglob("results/*/*.json"))
        stamps = {path: path.stat().st_mtime_ns for path in kept}
        code, told = bisect(h, "--resume", "--no-hunks")
        assert (code, told["first_bad"]["commit"]) == (0, commits[3])
        known = [c for c, judged in told["judged"].items() if sum(judged["counts"].values()) > judged["runs"]]
        assert len(known) >= 1  # that commit may be looked at once more, but not for what is known
        assert sum(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items()) >= len(kept) - 1


def test_a_moved_module_is_judged_by_the_test_as_it_was_then() -> None:
    with home({}) as h:
        repo = Repo(h.repo)
        commits: list[str] = []
        for n in range(5):
            module = "old" if n < 3 else "new"
            repo.git("rm", "-q", "-r", "--ignore-unmatch", ".")
            repo.stage(f"{module}.py", (GOOD if n < 2 else BAD) + f"# {n}\n")
            repo.stage(f"test_{module}_adder.py", TEST.replace("from adder", f"from {module}"))
            repo.commit(f"{n}")
            commits.append(repo.git("rev-parse", "HEAD").decode().strip())
        code, told = bisect(h, "--test", "test_new_adder.py::test_add", "--good", commits[0], "--no-hunks")
        assert (code, told["first_bad"]["commit"]) == (0, commits[2])
        assert "own" in {judged["version"] for judged in told["judged"].values()}


def test_a_commit_that_does_not_parse_is_not_run_again_with_its_own_tests() -> None:
    with home({}) as h:
        repo = Repo(h.repo)
        commits: list[str] = []
        for n, text in enumerate((GOOD, "def (:\n", BAD)):
            repo.stage("pkg/adder.py", text)
            repo.stage("tests/test_adder.py", TEST.replace("from adder", "from pkg.adder") + f"# {n}\n")
            repo.stage("conftest.py", "")
            repo.commit(f"{n}")
            commits.append(repo.git("rev-parse", "HEAD").decode().strip())
        code, told = bisect(h, "--test", "tests/test_adder.py", "--good", commits[0], "--no-hunks")
        assert (code, told["end"]) == (1, "undecided")
        assert (told["judged"][commits[1]]["verdict"], told["judged"][commits[1]]["runs"]) == ("skip", 1)


def test_answers_that_are_no(tmp_path: Path) -> None:
    with home({}) as h:
        commits = history(Repo(h.repo), guilty=0, count=2)
        code, told = bisect(h, "--test", "test_adder.py", "--good", commits[0], "--no-hunks")
        assert (code, told["end"]) == (1, "fails-at-good")
        code, told = bisect(h, "--check", "python -c 'import adder'", "--no-hunks")
        assert (code, told["end"]) == (1, "passes-at-bad")
    with home({}) as h:
        ran = h.run("bisect", "--repo", str(h.repo.parent), "--test", "x.py")
        assert (ran.code, "no git repository" in ran.err) == (2, True)
        ran = h.run("bisect", "--repo", str(tmp_path))
        assert (ran.code, "--test or --check" in ran.err) == (2, True)


def test_a_log_of_git_bisect_is_read_and_written() -> None:
    with home({}) as h:
        repo = Repo(h.repo)
        commits = history(repo, guilty=3)
        repo.git("bisect", "start", commits[-1], commits[0])
        repo.git("bisect", "good", commits[2])
        log = repo.git("bisect", "log")
        repo.git("bisect", "reset")
        (h.root / "in.log").write_bytes(log)
        out = h.root / "out.log"
        code, told = bisect(
            h,
            "--test",
            "test_adder.py",
            "--log",
            str(h.root / "in.log"),
            "--write-log",
            str(out),
            "--no-hunks",
            "--jobs",
            "2",
        )
        assert (code, told["first_bad"]["commit"]) == (0, commits[3])
        assert set(told["judged"]) <= set(commits[2:])  # that 2 is good was only said: it is seen to
        assert b"first bad commit" in repo.git("bisect", "replay", str(out)) + repo.git("bisect", "log")
