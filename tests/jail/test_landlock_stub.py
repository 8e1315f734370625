"""The wall in machine code: its image and instructions, and that it answers as the interpreter's program does."""

import ctypes
import errno
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.jail_code import assert_comments_say_it, disassembled, system_calls

from localagent.jail.launcher import landlock_ruleset, landlock_stub, x86_assembler
from localagent.jail.launcher.landlock_reports import LandlockReport, by_code, by_interpreter
from localagent.jail.launcher.landlock_stub import LandlockPlan, LandlockStatus, program
from localagent.jail.launcher.x86_assembler import BASE, Data
from localagent.runner import landlock as confiner

STATUS, IMAGE = 240, 241
ABI = landlock_ruleset.kernel()[0]
RULES = (("/", "run"), ("/dev", "device"), ("/etc/passwd", "read"))
PATHS = st.text("/ab\udcff", min_size=1, max_size=6)

runs = pytest.mark.skipif(not (ABI and x86_assembler.supported()), reason="needs x86-64 and a kernel with Landlock")


def plan(argv0: str = "/bin/sh", *, path: str | None = None, rules: Sequence[tuple[str, str]] = RULES) -> LandlockPlan:
    return LandlockPlan(
        argv0=argv0, path=path, rules=tuple(rules), abi=ABI or 6, loopback=True, status=STATUS, image=IMAGE
    )


def tell(argv: Callable[[], None]) -> tuple[bytes, bytes, int]:
    """(told, standard output and error, exit code) of a child that becomes what `argv` executes."""
    told_read, told_write = os.pipe()
    out_read, out_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(told_write, STATUS)
            for number in (1, 2):
                os.dup2(out_write, number)
            ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # no new privileges, as in every jail
            argv()
        finally:
            os._exit(99)
    for number in (told_write, out_write):
        os.close(number)
    with os.fdopen(told_read, "rb") as told, os.fdopen(out_read, "rb") as out:
        seen = told.read(), out.read()
    return *seen, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def coded(made: LandlockPlan, argv: Sequence[str]) -> tuple[LandlockReport, bytes, int]:
    image = os.memfd_create("wall")
    os.write(image, program(made))
    env = {} if made.path is None else {"PATH": made.path}

    def become() -> None:
        os.dup2(image, IMAGE, inheritable=True)
        os.execve(f"/proc/self/fd/{IMAGE}", ["wall", *argv], env)

    told, out, code = tell(become)
    os.close(image)
    return by_code(made, told), out, code


def interpreted(made: LandlockPlan, argv: Sequence[str]) -> tuple[LandlockReport, bytes, int]:
    rules = [word for rule in made.rules for word in rule]
    env = [] if made.path is None else ["PATH", made.path]
    words = [
        "-I",
        "-S",
        "-B",
        "-X",
        "utf8",
        str(landlock_ruleset.SOURCE),
        str(STATUS),
        "1",
        *rules,
        "",
        *env,
        "",
        *argv,
    ]
    told, out, code = tell(lambda: os.execve(sys.executable, ["python", *words], {}))
    return by_interpreter(told), out, code


def both(made: LandlockPlan, argv: Sequence[str]) -> tuple[LandlockReport, bytes, int]:
    """What either answers, where they agree (who writes the remark is all in which they may differ)."""
    (told, out, code), (other, other_out, other_code) = coded(made, argv), interpreted(made, argv)
    assert (out + told.remark, code, replace(told, remark=b"")) == (other_out, other_code, other)
    return told, out + told.remark, code


@runs
@pytest.mark.parametrize(
    ("argv0", "path", "fault"),
    [
        ("true", "/nowhere:/usr/bin", None),
        ("true", None, None),
        ("true", "/nowhere", "[Errno 2] No such file or directory: b'/nowhere/true'"),
        ("passwd", "/etc:/nowhere", "[Errno 13] Permission denied: b'/etc/passwd'"),
        ("/no/such", None, "[Errno 2] No such file or directory: '/no/such'"),
        ("/etc", None, "[Errno 13] Permission denied: '/etc'"),
        ("/etc/passwd/x", None, "[Errno 20] Not a directory: '/etc/passwd/x'"),
    ],
)
def test_commands_are_found_and_refused_as_by_the_interpreters_program(
    argv0: str, path: str | None, fault: str | None
) -> None:
    told, out, code = both(plan(argv0, path=path), [argv0])
    assert told.walled
    assert (told.no_exec, code) == (fault is not None, 0 if fault is None else confiner.NO_COMMAND)
    assert out == (b"" if fault is None else f"cannot execute {argv0}: {fault}\n".encode())


@runs
def test_a_file_that_is_no_program_is_not_given_to_a_shell_and_the_search_goes_on(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("echo from the shell\n")
        (tmp_path / name / "tool").chmod(0o755)
    path = f"{tmp_path}/none:{tmp_path}/first:{tmp_path}/second:{tmp_path}/last"
    told, out, _ = both(plan("tool", path=path), ["tool"])
    assert told.no_exec
    assert out == f"cannot execute tool: [Errno 8] Exec format error: b'{tmp_path}/first/tool'\n".encode()
    (tmp_path / "second/tool").write_text("#!/bin/sh\necho from the second\n")
    assert both(plan("tool", path=path), ["tool"])[1:] == (b"from the second\n", 0)


@runs
@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ((*RULES, ("/no/such", "run"), ("/nor/this", "run")), "[Errno 2] No such file or directory: '/no/such'"),
        ((("/etc/passwd/x", "list"), *RULES), "[Errno 20] Not a directory: '/etc/passwd/x'"),
    ],
)
def test_a_rule_that_cannot_be_added_stops_all(rules: Sequence[tuple[str, str]], why: str) -> None:
    told, out, code = both(plan(rules=rules), ["sh", "-c", "echo ran"])
    assert told == LandlockReport(fault=f"the Landlock wall could not be put up: {why}")
    assert (out, code) == (b"", confiner.FAILED)


@runs
@pytest.mark.parametrize(("refused", "at"), [("attributes", ""), ("ON_FILES", ": '/etc/passwd'")])
def test_what_the_kernel_refuses_stops_all(monkeypatch: pytest.MonkeyPatch, refused: str, at: str) -> None:
    """Rights that no kernel knows, and rights of a folder asked for a file."""
    if refused == "attributes":
        monkeypatch.setattr(confiner, refused, lambda *_: struct.pack("=Q", 1 << 63))
    else:
        monkeypatch.setattr(confiner, refused, -1)
    program.cache_clear()
    told, out, code = coded(plan(), ["sh", "-c", "echo ran"])
    program.cache_clear()
    assert told.fault == f"the Landlock wall could not be put up: [Errno {errno.EINVAL}] Invalid argument{at}"
    assert (out, code) == (b"", confiner.FAILED)


@runs
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not confine himself")
def test_a_process_that_may_not_restrict_itself_runs_nothing() -> None:
    made = plan()
    image = os.memfd_create("wall")
    os.write(image, program(made))
    become = f"os.execv('/proc/self/fd/{image}', ['w', 'sh', '-c', 'echo ran'])"
    told_read, told_write = os.pipe()
    code = f"import os; os.dup2({told_write}, {STATUS}); os.setgroups([]); os.setresuid(9999, 9999, 9999); {become}"
    argv = (landlock_ruleset.SYSTEM_PYTHON, "-c", code)  # which takes the number there: here it may be another's
    done = subprocess.run(argv, pass_fds=(told_write, image), capture_output=True, check=False)
    for number in (told_write, image):
        os.close(number)
    with os.fdopen(told_read, "rb") as told:
        assert by_code(made, told.read()).fault.endswith(f"[Errno {errno.EPERM}] Operation not permitted")
    assert (done.stdout, done.returncode) == (b"", confiner.FAILED)


@runs
def test_arguments_folder_and_environment_arrive_and_no_descriptor_does() -> None:
    script = 'echo "$0|$1|$2|$PATH|$PWD"; ls /proc/self/fd; pwd; echo x 2>/dev/null >/etc/x || echo walled'
    argv = ["a name", "-c", script, "zero", "", "a b"]
    _, out, code = coded(plan(path="/usr/bin:/bin"), argv)
    numbers = [int(word) for word in out.decode().split("\n")[1:-3]]
    assert out.startswith(b"zero||a b|/usr/bin:/bin|")
    assert out.endswith(f"{Path.cwd()}\nwalled\n".encode())
    assert not {STATUS, IMAGE} & set(numbers)
    assert code == 0


def rows(content: bytes, start: int, at: int) -> list[tuple[bytes, int, int]]:
    """The rules of an image, as the program reads them."""
    found = []
    while (row := struct.unpack_from("<3Q", content + bytes(16), at - start))[0]:
        found.append((content[row[0] - start :].split(b"\0")[0], row[1], row[2]))
        at += 24
    return found


@given(
    st.lists(st.tuples(PATHS, st.sampled_from(sorted(confiner.GRANTS))), max_size=6),
    st.integers(confiner.LEAST_ABI, 9),
)
def test_the_rules_are_those_of_the_interpreters_program(rules: list[tuple[str, str]], abi: int) -> None:
    data = Data(BASE)
    at = data.numbers(landlock_stub._rows(replace(plan(rules=rules), abi=abi), data))
    handled = [confiner.GRANTS[grant] & confiner.handled(abi) for _, grant in rules]
    on_files = [rights & confiner.ON_FILES for rights in handled]
    raw = [os.fsencode(path) for path, _ in rules]
    assert rows(bytes(data.content), BASE, at) == list(zip(raw, handled, on_files, strict=True))


@given(st.integers(confiner.LEAST_ABI, 9), st.booleans())
def test_what_is_handled_is_what_the_interpreters_program_handles(abi: int, loopback: bool) -> None:
    about = confiner.attributes(abi, loopback)
    image = program(replace(plan(), abi=abi, loopback=loopback))
    call = image.index(bytes.fromhex("31d2b8bc010000"))  # xor edx, edx; mov eax, landlock_create_ruleset
    at, size = struct.unpack("<xIxI", image[call - 10 : call])
    assert size == len(about)
    assert image[at - BASE : at - BASE + size] == about


def test_cut_and_missing_records_are_no_wall() -> None:
    assert by_code(plan(), b"") == LandlockReport()
    assert by_code(plan(), x86_assembler.RECORD.pack(LandlockStatus.WALLED, 6)[:7]) == LandlockReport()
    assert by_code(plan(), x86_assembler.RECORD.pack(LandlockStatus.WALLED, 6)) == LandlockReport(walled=True)
    assert by_interpreter(b"") == LandlockReport()


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs binutils")
def test_every_byte_of_the_code_is_an_instruction_that_its_comment_says(tmp_path: Path) -> None:
    made = plan("x", path="/a:/b")
    seen = disassembled(tmp_path, program(made), partial(landlock_stub._code, made))
    assert_comments_say_it((landlock_stub, x86_assembler), seen)
    # fcntl close | create | open fstat add close | restrict close | execve | leave, leave | write
    assert system_calls(seen) == [72, 3, 444, 2, 5, 445, 3, 446, 3, 59, 231, 231, 1]


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs binutils")
def test_no_way_leads_to_the_command_but_through_the_wall(tmp_path: Path) -> None:
    """Jumps before landlock_restrict_self stay before it or lead to the end, and its refusal is asked for at once."""
    made = plan("x", path="/a:/b")
    seen = disassembled(tmp_path, program(made), partial(landlock_stub._code, made))
    places, at = [], x86_assembler.HEADERS
    for code, _ in seen:
        places.append(at)
        at += len(code) // 2
    texts = [text.split() for _, text in seen]
    restrict = texts.index(["mov", "eax,0x1be"])
    no_command = max(place for place, text in zip(places, texts, strict=True) if text == ["mov", "edi,0x7f"])
    targets = [int(text[1], 16) for text in texts[:restrict] if text[0].startswith("j")]
    assert len(targets) == 6
    assert all(target <= places[restrict] or target > no_command for target in targets)
    assert texts[restrict + 1 : restrict + 3] == [["syscall"], ["test", "eax,eax"]]
    assert texts[restrict + 3][0] == "jne"
    assert int(texts[restrict + 3][1], 16) > no_command
    assert places[texts.index(["mov", "eax,0x3b"])] < no_command
