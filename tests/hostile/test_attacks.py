"""The attack suite: every attack is held for its wall's own reason, and succeeds where exactly that wall is open."""

import ast
import os
import re
import shutil
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.attack_controls import control, staged
from support.jail_backends import KINDS, jail_by

from localagent.app.inventory.attack_suite import ATTACKS
from localagent.jail.api import BackendKind
from localagent.jail.attacks import inside, suite
from localagent.jail.attacks.attack import DID, LACKS, Attack, Category, Witness
from localagent.jail.attacks.reads import strangers
from localagent.jail.attacks.row import AttackVerdict
from localagent.jail.attacks.suite import AttackOutcome, Cast, judged
from localagent.jail.boundaries import OPENABLE, Wall

CLEANERS = [attack for attack in ATTACKS if attack.wall is Wall.CLEANING]
CONTROLLED = [attack for attack in ATTACKS if attack.wall is not Wall.CLEANING]
SAMPLE = (
    "the host's temporary files",
    "a new file in a folder shown read-only",
    "TCP to the host's loopback",
    "a signal to a process outside",
    "a user namespace of its own",
    "raw IP sockets",
    "open files",
    "the environment",
)
SYS_RESOURCE = 24
NEEDS_SYS_RESOURCE = ("raising a hard limit", "safe from the memory killer")


def named(name: str) -> Attack:
    return next(attack for attack in ATTACKS if attack.name == name)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_attack_is_held(kind: BackendKind, scratch: Path) -> None:
    with staged(scratch) as stage:
        rows = list(suite.run(jail_by(kind), ATTACKS, stage))
    assert sorted(row.name for row in rows) == sorted(attack.name for attack in ATTACKS)
    assert [(row.name, row.why) for row in rows if row.result is AttackVerdict.ESCAPED] == []
    lacking = [row.name for row in rows if row.result is AttackVerdict.NOT_APPLICABLE]
    assert len(lacking) <= 10, lacking
    assert [path.name for path in scratch.iterdir()] == []


def succeeds_without_its_wall(attack: Attack, scratch: Path) -> None:
    if suite.missing(attack):
        pytest.skip(suite.missing(attack))
    if attack.name in NEEDS_SYS_RESOURCE and not has_capability(SYS_RESOURCE):
        pytest.skip("this session is not allowed CAP_SYS_RESOURCE itself")
    with staged(scratch) as stage:
        seen = control(attack, stage)
        if seen.reason == LACKS:
            pytest.skip(seen.text)
        if seen.reason in ("ENETUNREACH", "EADDRNOTAVAIL") and not loopback_is_up():
            pytest.skip(
                "this machine's own loopback is down, so nothing on it can be reached with the wall open either"
            )
        through = attack.witness is not None and stage.witnessed(attack.witness)
    assert through or seen.reason in attack.open_reason.split("|"), seen
    assert through or seen.reason == DID or seen.reason not in attack.reasons, "the control cannot tell the difference"


def loopback_is_up() -> bool:
    with socket.socket() as listener, socket.socket() as caller:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        try:
            caller.connect(listener.getsockname())
        except OSError:
            return False
    return True


def has_capability(number: int) -> bool:
    text = Path("/proc/self/status").read_text()
    return bool(int(re.findall(r"CapEff:\s*([0-9a-f]+)", text)[0], 16) >> number & 1)


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_succeeds_without_its_wall(name: str, scratch: Path) -> None:
    succeeds_without_its_wall(named(name), scratch)


@pytest.mark.slow
@pytest.mark.parametrize("attack", [a for a in CONTROLLED if a.name not in SAMPLE], ids=lambda a: a.name)
def test_every_attack_succeeds_without_its_wall(attack: Attack, scratch: Path) -> None:
    succeeds_without_its_wall(attack, scratch)


@pytest.mark.long
@pytest.mark.parametrize("attack", CLEANERS, ids=lambda a: a.name)
def test_what_is_left_for_the_cleaner_is_more_than_a_plain_removal_takes(attack: Attack, scratch: Path) -> None:
    """The control: the standard library's own removal, or a walk that follows links, stumbles or destroys."""
    with staged(scratch) as stage:
        workspace = stage.workspace(own=True)
        jail = jail_by(BackendKind.BUBBLEWRAP)
        jail.run(suite.spec_of(Cast(attacks=(attack,)), workspace, stage))
        if attack.witness is Witness.REST:
            with pytest.raises((RecursionError, OSError)):
                shutil.rmtree(workspace.tree)
        else:
            reached = {os.path.realpath(base) for base, _, _ in os.walk(workspace.tree, followlinks=True)}
            assert os.path.realpath(stage.outside) in reached
        workspace.remove()
        assert not workspace.folder.exists()
        assert not stage.witnessed(Witness.CANARY)


# -- what the suite is ------------------------------------------------------------------------------------------


def test_the_catalogue_is_large_distinct_and_said() -> None:
    assert len(ATTACKS) >= 80
    assert not [name for name, count in Counter(attack.name for attack in ATTACKS).items() if count > 1]
    assert not [name for name, count in Counter(attack.program for attack in ATTACKS).items() if count > 1]
    assert all(attack.text and attack.reasons for attack in ATTACKS)
    inside_ones = set(Category) - {Category.VERDICT, Category.STATE}
    assert {attack.category for attack in ATTACKS} == inside_ones


def test_nothing_that_attacks_leave_has_a_name_that_others_could_have_taken() -> None:
    fixed = {
        text.value
        for path in sorted(Path(suite.__file__).parent.glob("*.py"))
        for text in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.startswith("/tmp/")
    }
    assert fixed == {"/tmp/"}  # of the token that follows it


def test_every_attack_has_a_control() -> None:
    for attack in CONTROLLED:
        assert attack.opens or attack.standin or attack.shown or attack.raised or attack.given, attack.name
        assert set(attack.opens) <= OPENABLE, attack.name
        assert not attack.reasons & set(attack.open_reason.split("|")) or attack.witness or len(attack.reasons) > 1


def test_forks_are_few() -> None:
    from localagent.jail.attacks import processes

    assert processes.FORKS <= 100
    assert all(dict(attack.raised).get("processes", 0) <= 100 for attack in ATTACKS)


# -- judging ----------------------------------------------------------------------------------------------------

SUBJECT = replace(named("a file in /etc"), witness=Witness.CANARY)


@pytest.mark.parametrize(
    ("seen", "witnessed", "result", "why"),
    [
        (AttackOutcome(reason="EROFS"), False, AttackVerdict.HELD, "read-only mounts: EROFS"),
        (AttackOutcome(reason=DID, text="wrote it"), False, AttackVerdict.ESCAPED, "it succeeded: wrote it"),
        (AttackOutcome(reason="EROFS"), True, AttackVerdict.ESCAPED, "the canary file outside changed"),
        (AttackOutcome(reason="EPERM"), False, AttackVerdict.ESCAPED, "not the answer of this wall"),
        (
            AttackOutcome(reason="no-answer", text="the jail ended as exited"),
            False,
            AttackVerdict.ESCAPED,
            "the jail ended as exited",
        ),
        (AttackOutcome(reason="fault", text="TypeError"), False, AttackVerdict.ESCAPED, "TypeError"),
        (
            AttackOutcome(reason=LACKS, text="the kernel has none"),
            False,
            AttackVerdict.NOT_APPLICABLE,
            "the kernel has none",
        ),
        (None, False, AttackVerdict.ESCAPED, "it was not run"),
    ],
)
def test_only_the_walls_own_answer_is_held(
    seen: AttackOutcome | None, witnessed: bool, result: AttackVerdict, why: str
) -> None:
    told, reason = judged(SUBJECT, seen, witnessed=witnessed)
    assert told is result
    assert why in reason


def test_what_the_machine_lacks_is_not_applicable() -> None:
    attack = replace(SUBJECT, target="/no/such/1|/no/such/2")
    told, why = judged(attack, None, witnessed=False)
    assert (told, why) == (AttackVerdict.NOT_APPLICABLE, "this machine has no /no/such/1 or /no/such/2")


def test_only_the_way_to_the_interpreter_is_no_find(tmp_path: Path) -> None:
    """Below a home that is shown for the interpreter's sake, whatever lies beside the way to it is told."""
    shown = (f"{tmp_path}/maria/project/.venv", f"{tmp_path}/maria/.pyenv/versions/3.11/lib")
    for place in shown:
        Path(place, "bin").mkdir(parents=True)
    assert strangers(str(tmp_path), shown) == []
    (tmp_path / "maria" / ".ssh").mkdir()
    (tmp_path / "maria" / "project" / "notes").write_text("")
    (tmp_path / "bob").mkdir()
    found = {path.removeprefix(f"{tmp_path}/") for path in strangers(str(tmp_path), shown)}
    assert found == {"maria/.ssh", "maria/project/notes", "bob"}
    assert strangers(str(tmp_path), ()) != []


def test_programs_refuse_to_run_outside_a_jail(capsys: pytest.CaptureFixture[str]) -> None:
    assert inside.main("{}", ["processes:a fork bomb"]) == 2
    assert "in a jail only" in capsys.readouterr().err


def test_a_jail_without_a_wall_is_found_out(scratch: Path) -> None:
    """The suite itself sees the difference: with seccomp off, what it holds alone is reported as escaped."""
    from support.attack_controls import open_jail_without

    wanted = [a for a in ATTACKS if a.opens == (Wall.SECCOMP,) and a.open_reason == DID and not a.standin][:10]
    with staged(scratch) as stage:
        rows = list(suite.run(open_jail_without(frozenset({Wall.SECCOMP})), wanted, stage))
    escaped = [row for row in rows if row.result is AttackVerdict.ESCAPED]
    assert len(escaped) >= 5
    assert all(row.why.startswith("it succeeded") for row in escaped)
