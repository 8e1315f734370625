"""Forgeries and leftovers: none is taken for good or met by the next candidate, and each fools a simpler judge."""

import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.jail_backends import KINDS, jail_by

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.domain.outcome import Failure, Outcome, TestResult
from localagent.jail.api import BackendKind
from localagent.jail.attacks.row import AttackVerdict
from localagent.jail.files.binds import interpreter_binds
from localagent.jail.files.host import fresh_uid
from localagent.jail.files.workspace import Workspace
from localagent.verify.attacks import forgery_suite, leftovers
from localagent.verify.attacks.forgery import FORGERIES, SOURCE, TEST, Forgery, ForgeryKind, Naive
from localagent.verify.attacks.forgery_suite import NAMES, ForgeryBench
from localagent.verify.attacks.leftovers import LEFTOVERS

SANDBOX = Path(__file__).resolve().parents[2] / "sandbox"
ENV = (("HOME", "/tmp"), ("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("PYTHONDONTWRITEBYTECODE", "1"))
REPORT = "/tmp/report.xml"
SCRIPT = f'"$0" -m pytest -q -rA -p no:cacheprovider --junitxml={REPORT}; code=$?; cat {REPORT}; exit $code'
SAMPLE = ("leaving with status 0 at exit", "a forged JUnit file")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_taken_for_good_or_met_in_the_worker(kind: BackendKind, scratch: Path) -> None:
    all_held(kind, scratch, (ForgeryKind.BODY, ForgeryKind.SESSION))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_taken_for_good_in_the_full_check(kind: BackendKind, scratch: Path) -> None:
    all_held(kind, scratch, (ForgeryKind.FULL,))


def all_held(kind: BackendKind, scratch: Path, ways: tuple[ForgeryKind, ...]) -> None:
    rows = list(forgery_suite.run(ForgeryBench(jail=jail_by(kind), scratch=scratch, sandbox_dir=SANDBOX), ways))
    other_ways = {entry.name for entry in FORGERIES if entry.way not in ways}
    assert sorted(row.name for row in rows) == sorted(set(NAMES) - other_ways)
    assert [(row.name, row.why) for row in rows if row.result is not AttackVerdict.HELD] == []
    assert list(scratch.iterdir()) == []


# -- controls: plain pytest, in the same jail, with a simpler judge -----------------------------------------------


def plainly(files: Mapping[str, str], scratch: Path) -> tuple[int, str]:
    """Exit status and output (the JUnit file at its end) of pytest in a jail."""
    python, binds = interpreter_binds(sys.executable)
    uid = fresh_uid()
    with Workspace(scratch, uid=uid) as workspace:
        from localagent.domain.paths import RepoPath

        for name, text in files.items():
            workspace.write(RepoPath(name), text.encode())
        tree = Bind(source=str(workspace.tree), target="/w", access=Access.READ_WRITE, untrusted=True)
        spec = JailSpec(
            argv=("/bin/sh", "-c", SCRIPT, python),
            cwd="/w",
            binds=(*binds, tree),
            env=ENV,
            limits=JailLimits(wall_seconds=60, cpu_seconds=30, output_bytes=32 << 20),
        )
        result = jail_by(BackendKind.BUBBLEWRAP).run(spec)
    return result.returncode, result.stdout.decode(errors="replace")


def files_of(entry: Forgery) -> dict[str, str]:
    if entry.way is ForgeryKind.BODY:
        return forgery_suite.repository([entry])
    return {"m.py": entry.body or SOURCE, "test_m.py": TEST, **entry.files}


def fools(entry: Forgery, scratch: Path) -> None:
    code, output = plainly(files_of(entry), scratch)
    if entry.naive is Naive.EXIT:
        assert code == 0, output[-500:]
    elif entry.naive is Naive.ENDED:
        assert code == 128 + signal.SIGKILL, (code, output)
    elif entry.naive is Naive.JUNIT:
        assert 'failures="0"' in output.splitlines()[-1], output
    else:
        assert re.search(r"^1 passed in", output, re.MULTILINE), output


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_fools_a_simpler_judge(name: str, scratch: Path) -> None:
    fools(next(entry for entry in FORGERIES if entry.name == name), scratch)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [e for e in FORGERIES if e.name not in SAMPLE], ids=lambda e: e.name)
def test_every_forgery_fools_a_simpler_judge(entry: Forgery, scratch: Path) -> None:
    fools(entry, scratch)


@pytest.mark.long
def test_an_honest_failure_fools_nobody(scratch: Path) -> None:
    code, output = plainly({"m.py": SOURCE, "test_m.py": TEST}, scratch)
    assert code == 1
    assert not re.search(r"^1 passed in", output, re.MULTILINE)


@pytest.mark.long
def test_in_one_process_every_leftover_is_met(scratch: Path) -> None:
    _, output = plainly(leftovers.repository(), scratch)
    met = set(re.findall(r"^FAILED test_m.py::test_look_(\d+)", output, re.MULTILINE))
    assert [entry.name for number, entry in enumerate(LEFTOVERS) if str(number) not in met] == []


# -- judging ------------------------------------------------------------------------------------------------------


def result(outcome: Outcome, exception: str = "") -> TestResult:
    failure = Failure(exception=exception, message="") if exception else None
    return TestResult(id="t", outcome=outcome, failure=failure)


PASSED, FAILED = result(Outcome.PASSED), result(Outcome.FAILED, "AssertionError")


@pytest.mark.parametrize(
    ("left", "looked", "held", "why"),
    [
        (PASSED, PASSED, AttackVerdict.HELD, "nothing met"),
        (PASSED, FAILED, AttackVerdict.ESCAPED, "the next candidate met it"),
        (PASSED, None, AttackVerdict.ESCAPED, "no-result"),
        (FAILED, PASSED, AttackVerdict.ESCAPED, "could not be left"),
        (None, PASSED, AttackVerdict.ESCAPED, "could not be left"),
    ],
)
def test_a_leftover_is_judged(
    left: TestResult | None, looked: TestResult | None, held: AttackVerdict, why: str
) -> None:
    told, reason = forgery_suite._met(left, looked)
    assert told is held
    assert why in reason


def test_a_forgery_taken_for_good_has_escaped(scratch: Path) -> None:
    """An honest pass stands in for a forgery that worked; and a failure for another reason is not held either."""
    bench = ForgeryBench(jail=jail_by(BackendKind.BUBBLEWRAP), scratch=scratch, sandbox_dir=SANDBOX)
    good = replace(FORGERIES[0], body="assert f() == 1")
    other = replace(FORGERIES[0], body="raise KeyError('other')")
    rows = list(forgery_suite._judged_bodies(bench, [good, other]))
    assert [row.result for row in rows] == [AttackVerdict.ESCAPED, AttackVerdict.ESCAPED]
    assert "taken for good" in rows[0].why
    assert "KeyError" in rows[1].why
