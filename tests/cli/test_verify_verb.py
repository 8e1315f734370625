"""`localagent verify`: verdict, comparison, evidence and exit code; the tree stays. Real jails, own processes."""

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from support.fix_builder import Home, home, tree_of
from support.git_builder import Repo
from support.schema_checker import checker
from support.verify_builder import CALC, FIXED, REPO, TESTS, Said, patch, verify

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "verify.schema.json").read_text())
GOOD = patch(REPO, {"calc.py": FIXED})
GREEN = {**REPO, "calc.py": FIXED}
WITHOUT = {"calc.py": FIXED}


def fits(told: Mapping[str, Any]) -> None:
    checker(SCHEMA).validate(told)


def failing(file: Path) -> list[int]:
    """Failures and errors of a JUnit file."""
    suite = ET.fromstring(file.read_bytes())
    return [int(suite.get(name, "")) for name in ("failures", "errors")]


@pytest.fixture(scope="module")
def mended() -> Iterator[tuple[Home, Said, dict[str, Any], dict[str, Any]]]:
    """One good patch, with every output, and the tree before and after."""
    with home(REPO) as h:
        before = tree_of(h.repo)
        outputs = [arg for name in ("sarif", "junit", "html") for arg in (f"--{name}", str(h.root / name))]
        said = verify(h, GOOD, "--json", *outputs)
        yield h, said, before, tree_of(h.repo)


@pytest.mark.long
def test_a_good_patch_is_verified_and_the_tree_stays(mended: tuple[Home, Said, dict[str, Any], dict[str, Any]]) -> None:
    h, said, before, after = mended
    assert (said.code, said.verdict) == (0, "verified"), said
    assert before == after
    assert list(h.scratch.iterdir()) == []
    fits(said.told)
    assert json.loads(said.out) == said.told
    assert said.told["comparison"] == {
        "fail_to_pass": ["test_calc.py::test_high"],
        "pass_to_pass": ["test_calc.py::test_in", "test_calc.py::test_low"],
        **{name: [] for name in ("pass_to_fail", "still_failing", "left_alone", "flaky", "added", "removed")},
    }
    assert said.told["rests_on"] == ["gates", "tests", "characterization"]


@pytest.mark.long
def test_its_strength_has_parts(mended: tuple[Home, Said, dict[str, Any], dict[str, Any]]) -> None:
    strength = mended[1].told["strength"]
    assert strength["grade"] == "A"
    assert (strength["lines"]["part"], strength["lines"]["whole"]) == (1, 1)
    assert strength["mutants"]["part"] >= 5
    assert strength["functions"]["part"] == 1


@pytest.mark.long
def test_old_against_new_shows_what_no_test_demands(mended: tuple[Home, Said, dict[str, Any], dict[str, Any]]) -> None:
    near = mended[1].told["differential"]
    assert near["demanded"] == 1
    found = near["differences"]
    assert found
    assert [len(d["call"]) for d in found] == sorted(len(d["call"]) for d in found)
    assert "clamp(50, 0, 10)" not in [d["call"] for d in found]
    assert {d["origin"] for d in found} == {"near", "generated"}
    for d in found:  # above the bounds old answered the lower one, new answers the upper one
        value, low, high = (int(n) for n in d["call"][len("clamp(") : -1].split(", "))
        assert value > high
        assert (d["old"], d["new"]) == (str(low), str(high))


@pytest.mark.long
def test_other_programs_read_the_same(mended: tuple[Home, Said, dict[str, Any], dict[str, Any]]) -> None:
    h = mended[0]
    run = json.loads((h.root / "sarif").read_bytes())["runs"][0]
    assert run["tool"]["driver"]["name"] == "localagent verify"
    assert run["properties"]["verdict"] == "allowed"
    assert {r["ruleId"] for r in run["results"]} == {"verify-differs"}
    suite = ET.fromstring((h.root / "junit").read_bytes())
    assert failing(h.root / "junit") == [0, 0]
    assert {c.get("name") for c in suite.iter("testcase")} >= {"tests", "tools", "behaviour", "strength", "paths"}
    page = (h.root / "html").read_text()
    assert "Patch verified by tests" in page
    assert "old against new" in page
    assert "<script" not in page


@pytest.mark.slow
def test_what_breaks_a_test_is_refused() -> None:
    with home(REPO) as h:
        said = verify(
            h,
            patch(
                REPO, {"calc.py": CALC.replace("value < low:\n        return low", "value < low:\n        return high")}
            ),
        )
        assert (said.code, said.verdict) == (1, "refused")
        assert said.told["comparison"]["pass_to_fail"] == ["test_calc.py::test_low"]
        assert "breaks tests or checks that passed: test_calc.py::test_low" in said.reason
        assert said.told["strength"] is None
        fits(said.told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("after", "verdict", "word"),
    [
        ({"calc.py": FIXED.replace("return value", "return eval('value')")}, "refused", "run-text"),
        pytest.param(
            {"test_calc.py": TESTS.partition("\n\n\ndef test_high")[0] + "\n"},
            "needs-person",
            "test-deleted",
            marks=pytest.mark.slow,
        ),
        pytest.param({"requirements.txt": "a==1\n"}, "needs-person", "dependency-edit", marks=pytest.mark.slow),
        ({"calc.py": CALC + "\n"}, "refused", "patch-does-not-apply"),
    ],
)
def test_what_a_gate_refuses_never_runs(after: dict[str, str | None], verdict: str, word: str) -> None:
    marker = {"conftest.py": "import pathlib\npathlib.Path('/tmp/ran').touch()\n"}
    with home({**REPO, **marker}) as h:
        base = {**REPO, "calc.py": "other\n" + CALC} if word == "patch-does-not-apply" else REPO
        said = verify(h, patch(base, after))
        assert (said.code, said.verdict) == (1, verdict), said
        assert word in said.out
        assert "nothing ran" in said.reason
        assert (said.told["jail"], said.told["comparison"]) == ({"backend": "", "level": ""}, None)
        fits(said.told)


@pytest.mark.long
def test_what_a_gate_asks_about_the_meaning_of_is_shown_with_the_evidence_and_stays_a_persons() -> None:
    refusing = "def part(n, size):\n    if n > 2**size:\n        raise ValueError(n)\n    return n\n"
    tests = "import pytest\nfrom parts import part\n\n\ndef test_part():\n    assert part(1, 3) == 1\n"
    tests += "    with pytest.raises(ValueError):\n        part(8, 3)\n"
    tests += "\n\ndef test_small():\n    assert part(0, 3) == 0\n"  # passed before: it shows what is to stay
    base = {"parts.py": refusing, "test_parts.py": tests}
    with home(base) as h:
        said = verify(h, patch(base, {"parts.py": refusing.replace("n > 2", "n >= 2")}), "--junit", str(h.root / "j"))
        assert (said.code, said.verdict) == (1, "needs-person"), said
        assert said.told["comparison"]["fail_to_pass"] == ["test_parts.py::test_part"]
        assert said.told["strength"]["grade"] in ("A", "B", "C")
        assert said.told["jail"]["backend"]
        assert said.reason.startswith("steering-changed asks what the change means; patch verified by tests: ")
        assert "part: what is refused is another" in said.out  # the question stands below
        assert failing(h.root / "j") == [1, 0]  # the gate's question: what differs is what the test wants, or told
        fits(said.told)


@pytest.mark.slow
def test_a_policy_that_lets_no_tests_go_refuses_a_deleted_one() -> None:
    with home(REPO) as h:
        fewer = TESTS.partition("\n\n\ndef test_high")[0] + "\n"
        said = verify(h, patch(REPO, {"test_calc.py": fewer}), "--policy", "strict")
        assert (said.code, said.verdict) == (1, "refused"), said
        assert "test-deleted" in said.reason


@pytest.mark.slow
def test_a_patch_that_is_there_already_says_so_and_a_commit_helps() -> None:
    with home({}) as h:
        repo = Repo(h.repo)
        for name, text in REPO.items():
            repo.stage(name, text)
        repo.commit()
        repo.write("calc.py", FIXED)
        said = verify(h, GOOD)
        assert (said.code, said.verdict) == (1, "could-not-verify")
        assert "holds this patch already" in said.reason
        assert "--baseline HEAD" in said.told["remedy"]
        said = verify(h, GOOD, "--baseline", "HEAD", "--min-strength", "B")
        assert (said.code, said.verdict) == (0, "verified"), said
        assert said.told["baseline_commit"] == repo.git("rev-parse", "HEAD").decode().strip()


@pytest.mark.long
def test_every_usage_fault_at_once() -> None:
    with home(REPO) as h:
        args = (
            "verify",
            "/nonexistent.patch",
            "--repo",
            str(h.root / "no"),
            "--check",
            "python 'x",
            "--html",
            str(h.root / "no" / "x"),
        )
        ran = h.run(*args, "--baseline=-x", "--report", str(h.root))
        assert ran.code == 2
        wanted = ("--repo", "--check", "--html", "--baseline", "--report", "/nonexistent.patch")
        assert [name for name in wanted if f"localagent: {name}" not in ran.err] == []
        ran = h.run("verify", str(h.root / "none"), "--repo", str(h.repo), "--min-strength", "F")
        assert ran.code == 2


@pytest.mark.long
def test_a_revision_that_is_none_is_a_usage_fault() -> None:
    with home({}) as h:
        Repo(h.repo).commit()
        said = verify(h, GOOD, "--baseline", "nowhere")
        assert said.code == 2
        assert "'nowhere' names no commit" in said.err


@pytest.mark.long
def test_without_a_jail_nothing_runs() -> None:
    with home(REPO, PATH="/nonexistent") as h:
        policy = h.root / "p.toml"
        text = (Path(__file__).resolve().parents[2] / "policies" / "default.toml").read_text()
        policy.write_text(
            text.replace('third_party_binaries = "allow"', 'third_party_binaries = "deny"').replace(
                'least_level = "L2"', 'least_level = "L4"'
            )
        )
        said = verify(h, GOOD, "--policy", str(policy), "--backend", "nsjail")
        assert said.code == 4, said
        assert said.verdict == "cannot-enforce"
        assert said.told["comparison"] is None


@pytest.mark.slow
def test_too_weak_evidence_is_refused() -> None:
    """The tests run the changed line and would hardly notice a fault in it."""
    files = {
        "m.py": "def area(w, h):\n    return w * h\n",
        "test_m.py": "from m import area\n\n\ndef test_area():\n    assert area(0, 0) == 0\n",
    }
    with home(files) as h:
        text = patch(files, {"m.py": "def area(w, h):\n    return h * w\n"})
        said = verify(h, text, "--min-strength", "B")
        assert (said.code, said.verdict) == (1, "too-weak"), said
        assert "--min-strength asks for B" in said.reason
        assert said.told["mutants"]["alive"]
        assert verify(h, text).verdict == "verified"
        h.write({"pyproject.toml": '[tool.localagent.verification]\nmin_strength = "C"\n'})
        said = verify(h, text, "--min-strength", "D")
        assert (said.code, said.verdict, said.told["min_strength"]) == (1, "too-weak", "C"), said
        assert "the policy 'default' asks for C" in said.reason


@pytest.mark.slow
def test_tests_that_cannot_fail_count_for_nothing() -> None:
    files = {
        "m.py": "def area(w: int, h: int) -> int:\n    return w * h\n",
        "test_m.py": (
            "from contextlib import suppress\n\nfrom m import area\n\n\ndef test_area():\n"
            "    with suppress(BaseException):\n        area(1, 2)\n"
        ),
    }
    with home(files) as h:
        said = verify(h, patch(files, {"m.py": files["m.py"].replace("w * h", "h * w")}))
        assert (said.code, said.verdict) == (0, "characterized"), said
        assert "notice none of" in said.reason
        assert "tests" not in said.told["rests_on"]
        said = verify(h, patch(files, {"m.py": files["m.py"].replace("w * h", "w + h")}))
        assert (said.code, said.verdict) == (1, "needs-person"), said


@pytest.mark.slow
def test_without_tests_it_is_characterized_and_never_verified() -> None:
    with home(WITHOUT) as h:
        said = verify(
            h, patch(WITHOUT, {"calc.py": FIXED.replace("return value", "inside = value\n    return inside")})
        )
        assert (said.code, said.verdict) == (0, "characterized"), said
        assert said.told["rests_on"] == ["gates", "characterization"]
        assert said.told["strength"]["grade"] == "E"
        assert "verified" not in said.out
        fits(said.told)
        other = patch(WITHOUT, {"calc.py": FIXED.replace("return high", "return high + 1")})
        said = verify(h, other, "--junit", str(h.root / "j"))
        assert (said.code, said.verdict, failing(h.root / "j")) == (1, "needs-person", [1, 0]), said
        assert "a person has to say what is right" in said.reason
        said = verify(h, patch(WITHOUT, {"calc.py": FIXED, "other.py": "def g():\n    return 1\n"}))
        assert (said.code, said.verdict) == (1, "unproven"), said


@pytest.mark.slow
def test_a_test_that_comes_with_the_patch_fails_before_it() -> None:
    few = TESTS.partition("\n\n\ndef test_high")[0] + "\n"
    files = {"calc.py": CALC, "test_calc.py": few}
    with home(files) as h:
        said = verify(h, patch(files, {"calc.py": FIXED, "test_calc.py": TESTS}))
        assert (said.code, said.verdict) == (0, "verified"), said
        assert said.told["comparison"]["fail_to_pass"] == ["test_calc.py::test_high"]
        assert said.told["comparison"]["added"] == ["test_calc.py::test_high"]


@pytest.mark.slow
@pytest.mark.parametrize("code", [{"calc.py": FIXED}, {}])
def test_a_test_that_comes_with_the_patch_must_pass(code: dict[str, str | None]) -> None:
    """Whether it runs what the patch changes or not, and where the patch changes nothing else."""
    new = {"test_new.py": "def test_new():\n    assert 1 + 1 == 3\n"}
    with home(REPO) as h:
        said = verify(h, patch(REPO, {**code, **new}))
        assert (said.code, said.verdict) == (1, "refused"), said
        assert "still failing: test_new.py::test_new" in said.reason


@pytest.mark.slow
def test_failing_tests_that_have_nothing_to_do_with_it_are_left_alone_unless_named() -> None:
    other = {
        "other.py": "def g():\n    return 1\n",
        "test_other.py": "from other import g\n\n\ndef test_g():\n    assert g() == 2\n",
    }
    with home({**REPO, **other}) as h:
        said = verify(h, GOOD)
        assert (said.code, said.verdict) == (0, "verified"), said
        assert said.told["comparison"]["left_alone"] == ["test_other.py::test_g"]
        said = verify(h, GOOD, "--test", "test_other.py", "--test", "test_calc.py")
        assert (said.code, said.verdict) == (1, "refused"), said
        assert "still failing: test_other.py::test_g" in said.reason


MIXED = (
    TESTS
    + """

def test_place():
    assert open("/nowhere/at/all").read() == str(clamp(1, 0, 10))


def test_middle():
    assert clamp(5, 0, 10) == 6, "nobody meant this"
"""
)


@pytest.mark.long
def test_what_fails_on_for_another_reason_is_named_and_left_alone_and_limits() -> None:
    """Of the file that is named one test turns; what is named by itself must pass."""
    files = {**REPO, "test_calc.py": MIXED}
    with home(files) as h:
        said = verify(h, patch(files, {"calc.py": FIXED}), "--test", "test_calc.py")
        assert (said.code, said.verdict) == (0, "verified"), said
        assert said.told["comparison"]["left_alone"] == ["test_calc.py::test_place", "test_calc.py::test_middle"]
        assert "still failing, as before, and it runs what changes: test_calc.py::test_middle: C at most" in said.reason
        assert said.told["strength"]["grade"] == "C"
        named = verify(h, patch(files, {"calc.py": FIXED}), "--test", "test_calc.py::test_high", "--test",
                       "test_calc.py::test_middle")  # fmt: skip
        assert (named.code, named.verdict) == (1, "refused"), named
        assert "still failing: test_calc.py::test_middle" in named.reason


@pytest.mark.slow
def test_what_fails_on_for_the_same_reason_refuses() -> None:
    source = "def f(n):\n    if n < 3:\n        raise ValueError('bad')\n    return n\n"
    tests = "from m import f\n\n\ndef test_two():\n    assert f(2) == 2\n\n\ndef test_one():\n    assert f(1) == 1\n"
    files = {"m.py": source, "test_m.py": tests}
    with home(files) as h:
        said = verify(h, patch(files, {"m.py": source.replace("n < 3", "n < 2")}), "--claim", "fixes")
        assert (said.code, said.verdict) == (1, "refused"), said
        assert "still failing: test_m.py::test_one" in said.reason


@pytest.mark.slow
def test_the_same_seed_says_the_same() -> None:
    with home(GREEN) as h:
        text = patch(GREEN, {"calc.py": FIXED.replace("return high", "return high - 0")})
        told = [verify(h, text, "--seed", "7").told for _ in range(2)]
        for one in told:
            del one["seconds"]
        assert told[0] == told[1]


@pytest.mark.slow
def test_new_findings_of_a_tool_refuse() -> None:
    files = {**GREEN, "mypy.ini": "[mypy]\ndisallow_untyped_defs = True\n"}
    with home(files) as h:
        said = verify(h, patch(files, {"calc.py": FIXED + "\n\ndef g(x):\n    return x\n"}))
        assert (said.code, said.verdict) == (1, "refused"), said
        assert "mypy has new findings" in said.reason
        said = verify(h, patch(files, {"calc.py": FIXED.replace("return high", "return high - 0")}))
        assert "types" in said.told["rests_on"]


@pytest.mark.slow
def test_a_renamed_file_is_judged_under_its_new_name() -> None:
    """Findings that moved are not new, and tests that still import the old name break."""
    files = {
        "pk/__init__.py": "",
        "pk/calc.py": FIXED + "\n\ndef g(x):\n    return x\n",
        "test_calc.py": TESTS.replace("from calc", "from pk.calc"),
        "mypy.ini": "[mypy]\ndisallow_untyped_defs = True\n",
    }
    move = (
        "diff --git a/pk/calc.py b/pk/moved.py\nsimilarity index 100%\nrename from pk/calc.py\nrename to pk/moved.py\n"
    )
    with home(files) as h:
        said = verify(h, move)
        assert (said.code, said.verdict) == (1, "refused"), said
        assert "no longer collect" in said.reason
    with home({**files, "pk/other.py": files["pk/calc.py"]}) as h:
        said = verify(h, move.replace("calc", "other"))
        assert said.told["checks"]["mypy"] == "nothing new", said


@pytest.mark.slow
def test_an_interruption_leaves_a_report_and_nothing_else() -> None:
    with home(REPO) as h:
        path, report = h.root / "p.patch", h.root / "r.json"
        path.write_text(GOOD)
        before = tree_of(h.repo)
        with h.start("verify", str(path), "--repo", str(h.repo), "--report", str(report)) as process:
            assert process.stderr is not None
            while b"in the jail" not in process.stderr.readline():
                continue
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert process.returncode == 130
        assert json.loads(report.read_bytes())["verdict"] == "interrupted"
        assert tree_of(h.repo) == before
        assert list(h.scratch.iterdir()) == []
