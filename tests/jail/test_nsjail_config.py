"""nsjail's configuration: golden, and laws that hold for any spec."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.jail.backends.bubblewrap import SYNTHETIC_ETC
from localagent.jail.backends.nsjail import Handed, Surroundings, nsjail_argv, nsjail_config, quoted
from localagent.jail.files import host
from localagent.jail.files.host import SystemLayout

LAYOUT = SystemLayout(links=(("usr/bin", "/bin"),), folders=("/usr",), etc=("/etc/localtime",))
AROUND = Surroundings(layout=LAYOUT, submounts=(("/s/venv", ("/s/venv/a b",)),), niceness=3)
HANDED = Handed(init=7, log=8, passed=(4, 5, 9))

GOLDEN = r"""
mode: ONCE
hostname: "jail"
cwd: "/"
time_limit: 0
nice_level: 3
disable_rl: true
keep_env: false
keep_caps: false
disable_no_new_privs: false
skip_setsid: false
log_fd: 8
log_level: WARNING
clone_newuser: true
clone_newns: true
clone_newpid: true
clone_newnet: true
clone_newipc: true
clone_newuts: true
clone_newcgroup: true
uidmap { inside_id: "65534" outside_id: "" count: 1 }
gidmap { inside_id: "65534" outside_id: "" count: 1 }
pass_fd: 4
pass_fd: 5
pass_fd: 9
envar: "A=x\012\042y"
envar: "PWD=/home/u/w"
mount { src: "/usr" dst: "/usr" is_bind: true rw: false nosuid: true nodev: true }
mount { src: "usr/bin" dst: "/bin" is_symlink: true }
mount { src: "/etc/localtime" dst: "/etc/localtime" is_bind: true rw: false nosuid: true nodev: true }
ETC
mount { dst: "/proc" fstype: "proc" rw: false noexec: true nosuid: true nodev: true }
mount { dst: "/dev" fstype: "tmpfs" options: "size=64k,mode=755" rw: false noexec: true nosuid: true nodev: true }
mount { src: "/dev/null" dst: "/dev/null" is_bind: true rw: true nosuid: true }
mount { src: "/dev/zero" dst: "/dev/zero" is_bind: true rw: true nosuid: true }
mount { src: "/dev/full" dst: "/dev/full" is_bind: true rw: true nosuid: true }
mount { src: "/dev/random" dst: "/dev/random" is_bind: true rw: true nosuid: true }
mount { src: "/dev/urandom" dst: "/dev/urandom" is_bind: true rw: true nosuid: true }
mount { dst: "/dev/pts" fstype: "devpts" options: "newinstance,ptmxmode=0666,mode=620" rw: true nosuid: true noexec: true }
mount { src: "/proc/self/fd" dst: "/dev/fd" is_symlink: true }
mount { src: "/proc/self/fd/0" dst: "/dev/stdin" is_symlink: true }
mount { src: "/proc/self/fd/1" dst: "/dev/stdout" is_symlink: true }
mount { src: "/proc/self/fd/2" dst: "/dev/stderr" is_symlink: true }
mount { src: "pts/ptmx" dst: "/dev/ptmx" is_symlink: true }
mount { dst: "/tmp" fstype: "tmpfs" options: "size=4096,mode=1777" rw: true nosuid: true nodev: true }
mount { dst: "/dev/shm" fstype: "tmpfs" options: "size=4096,mode=1777" rw: true nosuid: true nodev: true }
mount { src: "/s/w" dst: "/home/u/w" is_bind: true rw: true nosuid: true nodev: true }
mount { src: "/s/venv" dst: "/home/u/w/.venv" is_bind: true rw: false nosuid: true nodev: true }
mount { src: "/s/venv/a b" dst: "/home/u/w/.venv/a b" is_bind: true rw: false nosuid: true nodev: true }
exec_bin { path: "/proc/self/fd/7" arg0: "python" arg: "-c" arg: "\303\251" exec_fd: true }
"""  # noqa: E501 - as it is


def test_golden() -> None:
    spec = JailSpec(
        argv=("python", "-c", "é"),
        cwd="/home/u/w",
        env=(("A", 'x\n"y'), ("PWD", "/elsewhere")),
        binds=(
            Bind(source="/s/venv", target="/home/u/w/.venv"),
            Bind(source="/s/w", target="/home/u/w", access=Access.READ_WRITE, untrusted=True),
        ),
        limits=JailLimits(tmp_bytes=4096),
    )
    lines = nsjail_config(spec, AROUND, HANDED).decode().splitlines()
    etc = [line for line in lines if "src_content" in line]
    assert [line.split(' dst: "')[1].split('"')[0] for line in etc] == [path for path, _ in SYNTHETIC_ETC]
    rest = "\n".join("ETC" if line in etc else line for line in lines).replace("\n".join(["ETC"] * len(etc)), "ETC")
    assert rest == GOLDEN.strip()


def test_the_command_line_holds_nothing_of_the_spec() -> None:
    assert nsjail_argv("/x/nsjail", 11) == ("/x/nsjail", "--config", "/proc/self/fd/11")


def _meant(literal: str) -> bytes:
    """What a protobuf text literal stands for, read by the rules of the format."""
    assert literal[0] == literal[-1] == '"'
    out, at, inner = bytearray(), 0, literal[1:-1]
    while at < len(inner):
        if inner[at] == "\\":
            out.append(int(inner[at + 1 : at + 4], 8))
            at += 4
        else:
            assert inner[at] not in '"\n'
            out += inner[at].encode("ascii")
            at += 1
    return bytes(out)


@given(st.binary(max_size=40))
def test_a_literal_stands_for_exactly_its_bytes(content: bytes) -> None:
    assert _meant(quoted(content.decode("utf-8", "surrogateescape"))) == content


words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)


@pytest.mark.long
@given(st.lists(words, min_size=1, max_size=5), st.lists(st.tuples(words, words), max_size=3), words)
def test_what_the_spec_says_is_never_read_as_a_setting(argv: list[str], env: list[tuple[str, str]], cwd: str) -> None:
    plain = nsjail_config(JailSpec(argv=("x",), cwd="/"), AROUND, HANDED).decode().splitlines()
    spec = JailSpec(argv=tuple(argv), cwd=cwd, env=tuple(env), binds=(Bind(source=cwd, target="/" + cwd),))
    built = nsjail_config(spec, AROUND, HANDED).decode("ascii").splitlines()
    fixed = [line for line in plain if not line.startswith(("envar", "mount", "exec_bin"))]
    assert [line for line in built if not line.startswith(("envar", "mount", "exec_bin"))] == fixed
    assert sum(line.startswith("exec_bin") for line in built) == 1


@pytest.mark.parametrize("path", ["/a b", "/a\tb", "/a\\b"])
def test_mountinfo_paths_are_read_as_they_are(path: str) -> None:
    escaped = "".join(f"\\{ord(sign):03o}" if sign in " \t\\" else sign for sign in path)
    assert host._unescaped(escaped) == path


def test_submounts_are_those_of_the_machine() -> None:
    found = dict(host.submounts(["/dev", "/no/such/path"]))
    assert set(found) <= {"/dev"}
    assert all(point.startswith("/dev/") for point in found.get("/dev", ()))
