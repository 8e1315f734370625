"""Our own init: its image, its instructions, and what it does with a command, as an ordinary process."""

import errno
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.jail_code import assert_comments_say_it, disassembled

from localagent.jail.launcher import init_stub, x86_assembler
from localagent.jail.launcher.init_stub import InitPlan, InitStatus, program
from localagent.jail.launcher.seccomp import program as seccomp_program
from localagent.jail.launcher.x86_assembler import exec_candidates, parse

pytestmark = pytest.mark.skipif(not x86_assembler.supported(), reason="written for x86-64")
STATUS, BLOCK, IMAGE = 240, 241, 242


def plan(
    argv0: str = "/bin/true", *, path: str | None = None, cwd: str = "/", seccomp: bytes | None = None
) -> InitPlan:
    return InitPlan(argv0=argv0, path=path, cwd=cwd, status=STATUS, block=BLOCK, seccomp=seccomp)


def run(made: InitPlan, argv: Sequence[str], *, go: bool = True, filtered: bool = False) -> list[tuple[int, int]]:
    """What the init reports, run as a child of ours."""
    status_read, status_write = os.pipe()
    block_read, block_write = os.pipe()
    if go:
        os.write(block_write, b"1")
    image = os.memfd_create("init")
    os.write(image, program(made))
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as the launcher does: ours may have been started ignoring it
            os.dup2(status_write, STATUS)
            os.dup2(block_read, BLOCK)
            if filtered:  # as every jail: else the kernel refuses a filter to the unprivileged
                import ctypes

                ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
            os.close(block_write)
            os.execve(image, list(argv), {"PATH": made.path} if made.path is not None else {})
        finally:
            os._exit(99)
    for number in (status_write, block_read, block_write, image):
        os.close(number)
    with os.fdopen(status_read, "rb") as stream:
        told = stream.read()
    os.waitpid(pid, 0)
    return list(parse(told))


@pytest.mark.parametrize("code", [0, 1, 127, 128, 137, 200, 255])
def test_exit_codes_are_told_as_they_are(code: int) -> None:
    told = run(plan("/bin/sh"), ["sh", "-c", f"exit {code}"])
    assert told == [(InitStatus.READY, 0), (InitStatus.ENDED, code << 8)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGXCPU])
def test_signals_are_told_apart_from_codes(number: signal.Signals) -> None:
    told = run(plan("/bin/sh"), ["sh", "-c", f"ulimit -c 0; kill -{int(number)} $$"])
    assert told[0] == (InitStatus.READY, 0)
    assert (told[1][0], os.WTERMSIG(told[1][1])) == (InitStatus.ENDED, number)


def test_nothing_starts_without_the_go_ahead(tmp_path: Path) -> None:
    assert run(plan("/bin/touch"), ["touch", str(tmp_path / "mark")], go=False) == [(InitStatus.READY, 0)]
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("argv0", "path", "code"),
    [
        ("true", "/nowhere:/usr/bin", None),
        ("true", None, None),
        ("true", "/nowhere", errno.ENOENT),
        ("passwd", "/etc:/nowhere", errno.EACCES),
        ("/no/such", None, errno.ENOENT),
        ("/etc", None, errno.EACCES),
        ("", None, errno.ENOENT),
    ],
)
def test_commands_are_found_as_execvp_finds_them(argv0: str, path: str | None, code: int | None) -> None:
    told = run(plan(argv0, path=path), [argv0 or "-"])
    assert told[1] == ((InitStatus.ENDED, 0) if code is None else (InitStatus.NO_EXEC, code))


def test_a_script_without_an_interpreter_is_given_to_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('[ "$1" = "a b" ] && exit 7\n')
    script.chmod(0o755)
    assert run(plan(str(script)), [str(script), "a b"])[1] == (InitStatus.ENDED, 7 << 8)


def test_a_missing_folder_is_told() -> None:
    assert run(plan(cwd="/no/such"), ["true"])[1] == (InitStatus.NO_FOLDER, errno.ENOENT)


@pytest.mark.skipif(seccomp_program() is None, reason="libseccomp is not at hand")
def test_the_filter_is_on_before_the_command() -> None:
    script = "read -r x < /dev/null; while read -r k v; do [ $k = Seccomp: ] && exit $v; done < /proc/self/status"
    assert run(plan("/bin/sh", seccomp=seccomp_program()), ["sh", "-c", script], filtered=True)[1] == (
        InitStatus.ENDED,
        2 << 8,
    )


def test_a_filter_that_the_kernel_refuses_stops_all(tmp_path: Path) -> None:
    told = run(plan("/bin/touch", seccomp=b"\xff" * 16), ["touch", str(tmp_path / "mark")], filtered=True)
    assert told[1] == (InitStatus.NO_FILTER, errno.EINVAL)
    assert not (tmp_path / "mark").exists()


def test_places() -> None:
    assert exec_candidates("a/b", "/x") == ("a/b",)
    assert exec_candidates("a", "/x::/y") == ("/x/a", "a", "/y/a")
    assert exec_candidates("a", None) == ("/bin/a", "/usr/bin/a")


def test_cut_records_are_left_out() -> None:
    assert parse(bytes(8) + b"abc") == [(0, 0)]


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs binutils")
def test_every_byte_of_the_code_is_an_instruction_that_its_comment_says(tmp_path: Path) -> None:
    seen = []
    for made in (plan(seccomp=b"\0" * 8), replace(plan(), block=None, image=IMAGE)):
        seen += disassembled(tmp_path, program(made), partial(init_stub._code, made))
    assert_comments_say_it((init_stub, x86_assembler), seen)


def test_by_its_own_name_it_needs_no_go_ahead_and_passes_nothing_of_itself_on() -> None:
    made = replace(plan("/bin/sh"), block=None, image=IMAGE)
    image, status = os.memfd_create("init"), os.memfd_create("told")
    os.write(image, program(made))
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(image, IMAGE)
            os.dup2(status, STATUS)
            code = (
                f'test "$0" = named && ! test -e /proc/self/fd/{IMAGE} && ! test -e /proc/self/fd/{STATUS} && exit 192'
            )
            os.execv(f"/proc/self/fd/{IMAGE}", ["its own name", "sh", "-c", code, "named"])
        finally:
            os._exit(99)
    os.waitpid(pid, 0)
    os.close(image)
    with os.fdopen(status, "rb") as stream:
        stream.seek(0)
        assert list(parse(stream.read())) == [(InitStatus.READY, 0), (InitStatus.ENDED, 192 << 8)]
