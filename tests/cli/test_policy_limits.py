"""A repository's `[tool.localagent.limits]` hold in the jails of `fix` and `verify`, and are told by their keys."""

import pytest
from support.fix_builder import ADDER, Files, Home, Ran, home
from support.verify_builder import FIXED, REPO, patch, verify

REMEDY = "`localagent policy show --layers` names the layer"
HOLD = (
    "import time\n\n\ndef test_hold():\n"
    "    held = [bytearray(b'x') * (20 << 20) for _ in range(20)]\n    time.sleep(4)\n    assert held\n"
)
SPIN = "def test_spin():\n    n = 0\n    for n in range(400_000_000):\n        n += 1\n    assert n\n"
WRITE = "def test_write(tmp_path):\n    (tmp_path / 'big').write_bytes(bytes(6 << 20))\n"
SPAWN = (
    "import subprocess\n\n\ndef test_spawn():\n"
    "    many = []\n    try:\n        for _ in range(20):\n            many.append(subprocess.Popen(['sleep', '9']))\n"
    "    finally:\n        for one in many:\n            one.kill()\n            one.wait()\n"
)


def limits(text: str) -> Files:
    return {"pyproject.toml": f"[tool.localagent.limits]\n{text}\n"}


def told(ran: Ran) -> str:
    return "\n".join((ran.reason, *ran.report["warnings"]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "test"), [("file_mib = 4", WRITE), ("processes = 16", SPAWN)], ids=["file", "processes"]
)
def test_a_test_that_a_limit_makes_fail_is_told(limit: str, test: str) -> None:
    files = {"adder.py": "def add(a, b):\n    return a + b\n", "test_it.py": test}
    with home(files) as h:
        free = h.fix()
        assert free.report["outcome"] == "nothing-to-fix", free
        h.write(limits(limit))
        ran = h.fix(candidates=5)
        assert ran.code == 1
        assert f"the policy's limits.{limit} may have been reached; {REMEDY}" in told(ran)


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "test"), [("memory_mib = 150", HOLD), ("cpu_seconds = 1", SPIN)], ids=["memory", "cpu"]
)
def test_a_run_that_a_limit_ends_is_told(limit: str, test: str) -> None:
    with home({**ADDER, **limits(limit), "test_it.py": test}) as h:
        ran = h.fix(candidates=5, seconds=90)
        assert ran.code == 1
        assert f"the policy's limits.{limit} was reached; {REMEDY}" in told(ran)


@pytest.mark.long
def test_a_check_command_and_verify_are_within_the_limits() -> None:
    hog = "open('big', 'wb').write(bytes(6 << 20))\n"
    with home({**REPO, "hog.py": hog, **limits("file_mib = 4")}) as h:
        ran = h.fix("--check", "python hog.py", candidates=5)
        assert "the policy's limits.file_mib = 4 may have been reached" in told(ran)
        said = verify(h, patch(REPO, {"calc.py": FIXED}), "--check", "python hog.py")
        assert f"the policy's limits.file_mib = 4 may have been reached; {REMEDY}" in "\n".join(said.told["warnings"])


@pytest.mark.long
def test_a_repair_is_found_and_verified_within_small_limits() -> None:
    """The warm workers live on while their requests are limited."""
    small = limits(
        "memory_mib = 512\nprocesses = 32\ncpu_seconds = 60\nwall_seconds = 120\nfile_mib = 4\ndisk_mib = 64"
    )
    with home({**REPO, **small}) as h:
        ran = h.fix("--assume")
        assert ran.code == 0, ran
        assert "limits." not in told(ran)
        said = verify(h, patch(REPO, {"calc.py": FIXED}))
        assert (said.code, said.verdict) == (0, "verified"), said


def test_more_than_is_built_in_is_refused_before_anything_runs() -> None:
    with home({**ADDER, **limits("processes = 4096")}) as h:
        ran = h.fix()
        assert ran.code == 2
        assert "pyproject.toml:2: tool.localagent.limits.processes: must be an integer from 1 to 128" in ran.err
        assert list_tasks(h) == []


def test_show_says_what_holds() -> None:
    with home({**ADDER, **limits("processes = 40")}) as h:
        lines = h.run("policy", "show", "--layers", "--repo", str(h.repo)).out.splitlines()
        rows = {line.split()[1]: line.split(None, 2) for line in lines if line[:1].isdigit() and " limits." in line}
        assert rows["limits.processes"][0] == "2"
        assert rows["limits.processes"][2] == "40"
        assert rows["limits.memory_mib"][2] == "the built-in limit"
        assert h.run("policy", "check", str(h.repo / "pyproject.toml")).code == 0


def list_tasks(home: Home) -> list[str]:
    return [path.name for path in home.tasks.iterdir()] if home.tasks.is_dir() else []
