"""A jail within a policy's limits: each of them really stops a program, and is told by its key. Real jails."""

import sys
from dataclasses import fields

import pytest

from localagent.domain.jailspec import JailLimits, JailResult, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.domain.policy import LimitRules
from localagent.jail.api import NamespaceJail, interpreter_binds
from localagent.jail.limits.policy_limits import OPEN_ENDED_SECONDS, BoundedJail, PolicyLimits

PYTHON, BINDS = interpreter_binds(sys.executable)
HOLD = "import time\nheld = bytearray(b'x') * (200 << 20)\nprint('held', flush=True)\ntime.sleep(3)\n"
SPAWN = """
import os, time
made = 0
try:
    while made < 30:
        if not os.fork():
            time.sleep(20)
            os._exit(0)
        made += 1
finally:
    print(made, flush=True)
"""
SPIN = "while True:\n    pass\n"
WAIT = "import time\ntime.sleep(60)\n"
WRITE = """
import tempfile
with tempfile.NamedTemporaryFile(dir='/tmp', delete=False) as f:
    for _ in range(8):
        f.write(bytes(1 << 20))
"""
MANY = """
import tempfile
for _ in range(8):
    with tempfile.NamedTemporaryFile(dir='/tmp', delete=False) as f:
        f.write(bytes(1 << 20))
"""


def ran(jail: NamespaceJail, code: str, bounds: PolicyLimits) -> JailResult:
    limits = JailLimits(wall_seconds=60, cpu_seconds=30)
    spec = JailSpec(argv=(PYTHON, "-I", "-S", "-c", code), cwd="/tmp", binds=BINDS, limits=limits)
    return BoundedJail(jail, bounds).run(spec)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rules", "code", "ending"),
    [
        (LimitRules(memory_mib=64), HOLD, JailOutcome.MEMORY),
        (LimitRules(cpu_seconds=1), SPIN, JailOutcome.CPU),
        (LimitRules(wall_seconds=1), WAIT, JailOutcome.WALL),
    ],
)
def test_a_limit_ends_the_run_and_is_told_by_its_key(
    jail: NamespaceJail, rules: LimitRules, code: str, ending: JailOutcome
) -> None:
    bounds = PolicyLimits(rules)
    result = ran(jail, code, bounds)
    assert result.ending is ending, result
    [(key, limit)] = given(rules)
    told = f"the policy's limits.{key} = {limit} was reached; `localagent policy show --layers` names the layer"
    assert told in result.stderr.decode()
    assert len(bounds.remarks) == 1
    assert bounds.remarks[0].startswith(told)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (LimitRules(file_mib=4), WRITE),
        (LimitRules(disk_mib=4), MANY),
        (LimitRules(processes=5), SPAWN),
    ],
)
def test_a_limit_that_makes_a_call_fail_is_told_by_its_key(jail: NamespaceJail, rules: LimitRules, code: str) -> None:
    bounds = PolicyLimits(rules)
    result = ran(jail, code, bounds)
    assert result.returncode == 1, result
    assert b"OSError" in result.stderr or b"BlockingIOError" in result.stderr
    [(key, limit)] = given(rules)
    assert [r.partition(";")[0] for r in bounds.remarks] == [
        f"the policy's limits.{key} = {limit} may have been reached"
    ]
    if rules.processes:
        assert 0 < int(result.stdout) <= rules.processes


@pytest.mark.long
@pytest.mark.parametrize(
    "code", [HOLD.replace("sleep(3)", "sleep(0.1)"), WRITE, MANY, SPAWN], ids=["memory", "file", "disk", "processes"]
)
def test_without_limits_of_a_policy_the_same_programs_end_well(jail: NamespaceJail, code: str) -> None:
    bounds = PolicyLimits()
    result = ran(jail, code, bounds)
    assert (result.ending, result.returncode) == (JailOutcome.EXITED, 0), result
    assert bounds.remarks == ()


def test_what_is_looser_than_asked_for_changes_nothing() -> None:
    asked = JailLimits(wall_seconds=10, cpu_seconds=5, resident_bytes=32 << 20, processes=4)
    bounds = PolicyLimits(
        LimitRules(memory_mib=64, processes=5, cpu_seconds=6, wall_seconds=11, file_mib=256, disk_mib=512)
    )
    assert bounds.tightened(asked) == asked
    assert bounds.ended(JailOutcome.MEMORY, asked) == bounds.ended(JailOutcome.CPU, asked) == ""
    assert bounds.remarks == ()


def test_a_warm_worker_keeps_its_life_and_its_requests_are_limited() -> None:
    asked = JailLimits(wall_seconds=OPEN_ENDED_SECONDS, cpu_seconds=OPEN_ENDED_SECONDS)
    bounds = PolicyLimits(LimitRules(memory_mib=64, cpu_seconds=3, wall_seconds=7))
    less = bounds.tightened(asked)
    assert (less.wall_seconds, less.cpu_seconds) == (OPEN_ENDED_SECONDS, OPEN_ENDED_SECONDS)
    assert less.resident_bytes == 64 << 20
    assert (bounds.cpu(60.0), bounds.wall(60.0), bounds.cpu(2.0), bounds.wall(2.0)) == (3, 7, 2.0, 2.0)


def test_an_ending_that_no_limit_of_the_policy_made_is_not_told() -> None:
    bounds = PolicyLimits(LimitRules(memory_mib=64))
    assert bounds.ended(JailOutcome.CPU, JailLimits()) == ""
    assert bounds.ended(JailOutcome.EXITED, JailLimits()) == ""
    assert bounds.ended(JailOutcome.MEMORY, JailLimits()) != ""


def given(rules: LimitRules) -> list[tuple[str, int]]:
    return [(f.name, getattr(rules, f.name)) for f in fields(rules) if getattr(rules, f.name) is not None]
