"""The second wall: what it lets through as data, who puts it up, and that it is missing aloud."""

import errno
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jail_backends import WAYS, walled_by

from localagent.domain.jailspec import Access, Bind, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import CannotEnforce
from localagent.jail.api import NamespaceJail
from localagent.jail.backends.level import Layer
from localagent.jail.files.host import SystemLayout
from localagent.jail.launcher import landlock_ruleset, landlock_stub, x86_assembler
from localagent.jail.launcher.landlock_ruleset import SOURCE, Confiner
from localagent.jail.probe import selection
from localagent.runner import landlock as confiner

LAYOUT = SystemLayout(links=(("usr/bin", "/bin"),), folders=("/usr",), etc=("/etc/services",))
BY = Confiner(python="/usr/bin/python3", source="pass")
WORDS = st.text("a1= -\n\"'\\{}é\udcff", max_size=4)


def test_every_bind_has_the_grant_of_its_access_and_the_launchers_own_has_none() -> None:
    binds = (
        Bind(source="/a", target="/home/p", access=Access.READ_WRITE, untrusted=True),
        Bind(source="/b", target="/run/la"),
    )
    by = replace(BY, binds=(Bind(source="/opt/py/lib", target="/opt/py/lib"), Bind(source="/c", target="/run/la")))
    spec = JailSpec(argv=("x",), cwd="/", binds=binds)
    rules = dict(landlock_ruleset.rules_of(spec, LAYOUT))
    assert (rules["/home/p"], rules["/run/la"], rules["/usr"]) == ("write", "run", "run")
    assert [path for path, grant in rules.items() if grant == "write"] == ["/dev/shm", "/tmp", "/home/p"]
    assert rules["/"] == "list"
    made = landlock_ruleset.walled(spec, by, LAYOUT)
    assert [bind.target for bind in made.binds] == ["/home/p", "/run/la", "/opt/py/lib"]
    assert [bind.source for bind in made.binds if bind.target == "/run/la"] == ["/b"]
    assert "/opt/py/lib" not in made.argv


@given(
    st.lists(WORDS, min_size=1, max_size=4),
    st.lists(st.tuples(WORDS.filter(bool), WORDS), max_size=4),
    st.booleans(),
)
def test_command_and_environment_arrive_as_they_were(argv: list[str], env: list[tuple[str, str]], loop: bool) -> None:
    spec = JailSpec(argv=tuple(argv), cwd="/", env=tuple(env), loopback=loop)
    words = list(landlock_ruleset.launched(landlock_ruleset.walled(spec, BY, LAYOUT).argv, 7))
    assert words[words.index("-c") + 1] == "pass"
    status, loopback, *rest = words[words.index("-c") + 2 :]
    assert (status, loopback) == ("7", "1" if loop else "0")
    assert confiner._pairs(rest) == list(landlock_ruleset.rules_of(spec, LAYOUT))
    assert confiner._pairs(rest) == env
    assert rest == argv


def test_rights_grow_with_the_abi_and_no_grant_makes_devices() -> None:
    sizes = [
        (abi, bin(confiner.handled(abi)).count("1"), len(confiner.attributes(abi, True))) for abi in (2, 3, 4, 5, 6, 7)
    ]
    assert sizes == [(2, 14, 8), (3, 15, 8), (4, 15, 16), (5, 16, 16), (6, 16, 24), (7, 16, 24)]
    assert confiner.attributes(4, False)[8] == 3
    assert confiner.attributes(4, True)[8] == 0
    for name, rights in confiner.GRANTS.items():
        assert not rights & (1 << 6 | 1 << 11), name
        assert bool(rights & 1 << 8) == (name == "write")
        assert bool(rights & 1) == (name in ("run", "write"))


def test_the_program_needs_little_and_runs_on_old_pythons() -> None:
    assert SOURCE.parent.name == "runner"
    code = f"import sys; sys.argv = ['x']; exec(compile(open({str(SOURCE)!r}).read(), 'walls', 'exec'), {{}})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{code}; print(*sorted(sys.modules))"], capture_output=True, check=True
    )
    slow = {"json", "re", "typing", "enum", "signal", "subprocess"}
    assert slow & set(done.stdout.decode().split()) <= {"enum", "re", "typing"} & slow
    assert not slow & set(done.stdout.decode().split())


@pytest.mark.parametrize("fault", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_a_kernel_that_refuses_is_a_layer_less_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, jail: NamespaceJail, fault: int
) -> None:
    def refused() -> int:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(confiner, "kernel_abi", refused)
    assert landlock_ruleset.kernel() == (0, f"the kernel does not offer it ({os.strerror(fault)})")
    made = selection._sound(replace(jail._backend, landlock=None, layers=frozenset()))
    assert made.landlock is None
    assert made.layers == jail._backend.layers - {Layer.LANDLOCK}
    assert made.level < "L4"


def test_an_abi_that_forbids_moves_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confiner, "kernel_abi", lambda: 1)
    assert landlock_ruleset.kernel()[0] == 0
    with pytest.raises(OSError, match="ABI 1 forbids"):
        confiner.confine([], True)


LIES = (
    "import os, sys; a = sys.argv[3:]; a = a[a.index('') + 1:]; a = a[a.index('') + 1:]; os.execvp(a[0], a)",
    "import sys; sys.exit(3)",
    "raise OSError('no')",
)


@pytest.mark.long
@pytest.mark.skipif(not landlock_ruleset.kernel()[0], reason="this kernel has no Landlock; doctor says so")
@pytest.mark.parametrize("source", LIES)
def test_a_launcher_that_puts_up_no_wall_is_found_out(
    monkeypatch: pytest.MonkeyPatch, jail: NamespaceJail, source: str
) -> None:
    """Also where the command runs: what no rule grants could be read, so there is no wall."""
    by = Confiner(python=os.path.realpath("/usr/bin/python3"), source=source)
    monkeypatch.setattr(landlock_ruleset, "candidates", lambda: iter((by,)))
    made = selection._sound(replace(jail._backend, landlock=None))
    assert made.landlock is None
    assert Layer.LANDLOCK not in made.layers


@pytest.fixture(params=WAYS)
def walled(request: pytest.FixtureRequest, jail: NamespaceJail) -> NamespaceJail:
    return walled_by(jail, request.param)


def test_a_rule_that_cannot_be_added_inside_is_cannot_enforce_and_the_command_never_ran(
    walled: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = landlock_ruleset.rules_of
    monkeypatch.setattr(landlock_ruleset, "rules_of", lambda *words: (*asked(*words), ("/run/not-shown", "read")))
    with pytest.raises(CannotEnforce, match=r"Landlock wall could not be put up: .*No such file.*: '/run/not-shown'"):
        walled.run(JailSpec(argv=("/bin/echo", "ran"), cwd="/"))


def test_machine_code_that_the_kernel_refuses_inside_is_cannot_enforce(
    jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = walled_by(jail, WAYS[0])
    monkeypatch.setattr(confiner, "attributes", lambda *_: struct.pack("=Q", 1 << 63))
    landlock_stub.program.cache_clear()
    with pytest.raises(CannotEnforce, match=r"Landlock wall could not be put up.*Invalid argument"):
        made.run(JailSpec(argv=("/bin/echo", "ran"), cwd="/"))
    landlock_stub.program.cache_clear()


def test_machine_code_that_dies_before_the_wall_is_cannot_enforce(
    jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first instruction is one that ends it: how it ended is no answer of the command's."""
    made = walled_by(jail, WAYS[0])
    monkeypatch.setattr(landlock_stub, "program", lambda _: x86_assembler.image(lambda _: b"\x0f\x0b"))
    with pytest.raises(CannotEnforce, match=r"puts up the Landlock wall ended with 132 before it stood"):
        made.run(JailSpec(argv=("/bin/echo", "ran"), cwd="/"))


def test_machine_code_that_may_not_be_executed_is_cannot_enforce(
    jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = walled_by(jail, WAYS[0])
    monkeypatch.setattr(landlock_ruleset, "coded", lambda argv, _: ("/proc/self/fd/999", *argv[1:]))
    with pytest.raises(CannotEnforce, match=r"puts up the Landlock wall was refused: .*/proc/self/fd/999: No such"):
        made.run(JailSpec(argv=("/bin/echo", "ran"), cwd="/"))


def test_a_folder_that_is_not_there_is_still_the_commands_fault(walled: NamespaceJail) -> None:
    result = walled.run(JailSpec(argv=("/bin/true",), cwd="/no/such"))
    assert result.ending is JailOutcome.COULD_NOT_START
    assert b"/no/such" in result.stderr


def test_machine_code_comes_first_and_elsewhere_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confiner, "kernel_abi", lambda: 5)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "x", "6.7", "", "x86_64")))
    first, *others = landlock_ruleset.candidates()
    assert (first.python, first.abi, first.name) == (None, 5, "machine code")
    assert all(by.python for by in others)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "x", "6.7", "", "aarch64")))
    assert list(landlock_ruleset.candidates()) == others


def test_code_takes_the_binds_and_leaves_command_and_environment() -> None:
    by = Confiner(abi=6, binds=(Bind(source="/c", target="/run/la"),))
    spec = JailSpec(argv=("a", "", "b"), cwd="/", env=(("X", "1"),))
    made = landlock_ruleset.walled(spec, by, LAYOUT)
    assert (made.env, made.binds) == (spec.env, by.binds)
    assert landlock_ruleset.coded(made.argv, 9) == ("/proc/self/fd/9", "a", "", "b")


@pytest.mark.skipif(not landlock_ruleset.kernel()[0], reason="this kernel has no Landlock; doctor says so")
def test_a_refusal_inside_is_cannot_enforce_and_the_command_never_ran(jail: NamespaceJail) -> None:
    """A filter that refuses the calls, put on by a first program that then runs the real one."""
    made = walled_by(jail, WAYS[1])._backend
    assert made.landlock is not None
    refused = made.landlock.source.replace("_CREATE, _ADD, _RESTRICT = 444", "_CREATE, _ADD, _RESTRICT = 4444")
    backend = replace(made, landlock=replace(made.landlock, source=refused))
    with pytest.raises(CannotEnforce, match=r"Landlock wall could not be put up.*not implemented"):
        NamespaceJail(backend).run(JailSpec(argv=("/bin/echo", "ran"), cwd="/"))


def test_a_command_that_is_not_there_could_not_start_and_says_so(walled: NamespaceJail) -> None:
    result = walled.run(JailSpec(argv=("no-such-program",), cwd="/"))
    assert result.ending is JailOutcome.COULD_NOT_START
    said = b"cannot execute no-such-program: [Errno 2] No such file or directory: b'/usr/bin/no-such-program'\n"
    assert result.stderr == said


def test_signals_and_environment_of_a_command_are_as_without_the_wall(walled: NamespaceJail) -> None:
    argv = (
        "/bin/sh",
        "-c",
        "grep SigIgn /proc/self/status; env; ls -l /proc/self/fd | wc -l; pwd; echo $0 $*",
        "z",
        "",
    )
    spec = JailSpec(argv=argv, cwd="/tmp", env=(("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("X", "\udcff e\u0301")))
    backend = walled._backend
    seen = [NamespaceJail(replace(backend, landlock=by)).run(spec) for by in (backend.landlock, None)]
    assert seen[0].stdout == seen[1].stdout
    assert b"X=\xff e\xcc\x81\n" in seen[0].stdout


def test_what_the_program_tells_is_json() -> None:
    read, write = os.pipe()
    confiner._tell(write, "exec-fault", 'a "quoted\\ \u2028 text\n')
    assert json.loads(os.read(read, 1000)) == {"exec-fault": "a ?quoted? ? text?"}
    os.close(read)
    os.close(write)


def test_a_thread_names_itself_only_where_a_device_is_shown(walled: NamespaceJail) -> None:
    """CUDA names its threads, and gives up where it cannot. Any device will do for the wall; nothing else opens."""
    files = "/proc/self/comm /etc/services /proc/sys/kernel/panic"
    script = f"for file in {files}; do (printf named > $file) && echo $file; done"
    spec = JailSpec(argv=("/bin/bash", "-c", script), cwd="/", env=(("PATH", "/usr/bin:/bin"), ("LC_ALL", "C")))
    refused = walled.run(spec)
    assert (refused.ending, refused.stdout) == (JailOutcome.EXITED, b""), refused.stderr
    device = Bind(source="/dev/null", target="/dev/nvidia0", access=Access.DEVICE)
    shown = walled.run(replace(spec, binds=(device,)))
    assert shown.stdout == b"/proc/self/comm\n", shown.stderr
