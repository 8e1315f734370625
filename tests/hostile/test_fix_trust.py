"""`fix` on repositories that deceive: nothing of theirs runs outside, and no forged or chance green is believed."""

import os
import shutil
import subprocess

import pytest
from support.fix_builder import ADDED, ADDER, home, tree_of


@pytest.mark.long
def test_modules_named_like_ours_pytest_and_the_standard_librarys() -> None:
    with home() as h:
        mark = h.root / "ran"
        evil = f"open({str(mark)!r}, 'a').write(__name__ + '\\n')\nraise SystemExit('not mine')\n"
        names = ("localagent/__init__", "localagent/__main__", "sitecustomize", "usercustomize", "pytest", "_pytest")
        h.write({f"{name}.py": evil for name in (*names, "llama_cpp", "libcst/__init__")})
        h.write({"json.py": "def loads(text):\n    return 'mine'\n", "resource.py": "LIMIT = 1\n"})
        before = tree_of(h.repo)
        ran = h.fix("--assume", candidates=8)
        assert ran.code == 0, (ran.out, ran.err)
        assert ADDED.decode() in ran.report["patch"]
        assert not mark.exists()
        assert tree_of(h.repo) == before


@pytest.mark.long
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_configuration_that_starts_programs() -> None:
    with home() as h:
        mark = h.root / "ran"
        hooks = h.repo / ".git" / "hooks"
        plain = {**os.environ, "HOME": str(h.root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        for args in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
            subprocess.run(["git", *args], cwd=h.repo, check=True, capture_output=True, env=plain)
        hooks.mkdir(exist_ok=True)
        for name in ("pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman", "applypatch-msg"):
            (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
            (hooks / name).chmod(0o755)
        lines = [
            f"[core]\n\tfsmonitor = echo fsmonitor >> {mark}; false\n\thooksPath = {hooks}\n\tpager = touch {mark}"
        ]
        lines += [f'[filter "x"]\n\tclean = touch {mark}; cat\n\tsmudge = touch {mark}; cat\n\tprocess = touch {mark}']
        lines += [f'[diff "x"]\n\ttextconv = touch {mark}; cat\n[diff]\n\texternal = touch {mark}\n']
        with (h.repo / ".git" / "config").open("a") as config:
            config.write("\n".join(lines))
        h.write({".gitattributes": "*.py filter=x diff=x\n"})
        untouched = tree_of(h.repo / ".git")
        ran = h.fix("--apply", "--assume", candidates=8)
        assert ran.code == 0, (ran.out, ran.err)
        assert h.run("undo").code == 0
        assert not mark.exists()
        assert tree_of(h.repo / ".git") == untouched


@pytest.mark.slow
def test_flaky_tests_are_named_and_not_chased() -> None:
    flaky = "import sys\n\n\ndef test_flaky():\n    assert sys._getframe().f_trace is not None\n"
    with home({**ADDER, "test_flaky.py": flaky}) as h:
        ran = h.fix("--assume", candidates=8)
        assert ran.code == 0, (ran.out, ran.err)
        assert ran.report["flaky"] == ["test_flaky.py::test_flaky"]
        assert [f["id"] for f in ran.report["failing"]] == ["test_adder.py::test_add", "test_adder.py::test_more"]
        assert "1 flaky (ignored)" in ran.err


@pytest.mark.long
def test_tests_that_any_change_turns_green() -> None:
    test = "import one\n\n\ndef test_one():\n    try:\n        got = one.one()\n    except BaseException:\n"
    test += "        got = 2\n"
    with home({"one.py": "def one():\n    return 1\n", "test_one.py": test + "    assert got != 1\n"}) as h:
        ran = h.fix("--assume", candidates=8)
        assert (ran.code, ran.report["outcome"]) == (1, "untrusted-tests")
        assert "pass even when one.py:2 is broken on purpose" in ran.reason
        assert ran.report["candidates_verified"] == 0


@pytest.mark.long
def test_a_branch_on_the_literal_of_the_test_is_refused() -> None:
    """Within reach of the search lies `x == 77`, which answers the test and no question."""
    rate = "def rate(x):\n    if x > 77:\n        return 13\n    return x * 2\n"
    test = "from rates import rate\n\n\ndef test_rate():\n    assert rate(77) == 13\n"
    test += "\n\ndef test_plain():\n    assert rate(5) == 10\n    assert rate(78) == 156\n"
    with home({"rates.py": rate, "test_rates.py": test}) as h:
        ran = h.fix(candidates=60)
        denied = ran.report["candidates_denied"]
        assert [name for name in denied if name.endswith("special-cases-test")], (ran.reason, denied)
        assert "== 77" not in (ran.report["patch"] or "")


@pytest.mark.slow
def test_two_faults_in_two_files() -> None:
    more = {
        "times.py": "def mul(a, b):\n    return a + b\n",
        "test_times.py": "from times import mul\n\n\ndef test_mul():\n    assert mul(3, 4) == 12\n",
    }
    with home({**ADDER, **more}) as h:
        ran = h.fix(candidates=80)
        assert ran.code == 0, (ran.out, ran.err)
        assert "+    return a * b" in ran.report["patch"]
        assert ADDED.decode() in ran.report["patch"]
        assert ran.report["rounds"] == 2


@pytest.mark.slow
def test_a_file_that_does_not_parse() -> None:
    with home({**ADDER, "adder.py": "def add(a, b)\n    return a + b\n"}) as h:
        ran = h.fix(candidates=12)
        assert ran.code == 0, (ran.out, ran.err)
        assert "+def add(a, b):" in ran.report["patch"]
        assert ran.report["diagnosis"]["kind"] == "syntax"
        assert len(ran.report["fail_to_pass"]) >= 1


@pytest.mark.slow
def test_tests_that_crash_the_interpreter_are_told_apart() -> None:
    crash = "import ctypes\n\n\ndef test_crash():\n    ctypes.string_at(0)\n"
    with home({**ADDER, "test_crash.py": crash}) as h:
        ran = h.fix(candidates=6)
        assert (ran.code, ran.report["outcome"]) == (1, "gave-up")
        by_id = {f["id"]: f["exception"] for f in ran.report["failing"]}
        assert by_id["test_crash.py::test_crash"] == "Crash"
        best = ran.report["near_misses"][0]
        assert sorted(best["turned"]) == ["test_adder.py::test_add", "test_adder.py::test_more"]
        assert not [w for w in ran.report["warnings"] if "jail of its own" in w]
        alone = h.fix("--test", "test_adder.py", candidates=6)
        assert alone.code == 0, (alone.out, alone.err)
