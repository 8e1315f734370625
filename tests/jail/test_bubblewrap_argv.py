"""The builder: golden command line, and laws that hold for any spec."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.jail.backends.bubblewrap import Descriptors, bwrap_argv
from localagent.jail.boundaries import OPENABLE, Wall
from localagent.jail.files.host import SystemLayout
from localagent.jail.limits.rlimits import rlimits

LAYOUT = SystemLayout(
    links=(("usr/bin", "/bin"), ("usr/lib", "/lib")), folders=("/usr", "/lib64"), etc=("/etc/localtime",)
)
FDS = Descriptors(status=9, etc=(3, 4, 5, 6), seccomp=7, block=8)

GOLDEN = """
bwrap
--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup
--uid 65534 --gid 65534 --hostname jail --die-with-parent --new-session --cap-drop ALL
--clearenv --setenv A x
--ro-bind /usr /usr --ro-bind /lib64 /lib64 --symlink usr/bin /bin --symlink usr/lib /lib
--ro-bind /etc/localtime /etc/localtime
--perms 0444 --ro-bind-data 3 /etc/passwd --perms 0444 --ro-bind-data 4 /etc/group
--perms 0444 --ro-bind-data 5 /etc/hosts --perms 0444 --ro-bind-data 6 /etc/nsswitch.conf
--proc /proc --dev /dev
--perms 1777 --size 4096 --tmpfs /tmp --perms 1777 --size 4096 --tmpfs /dev/shm
--bind /s/w /home/u/w --ro-bind /s/venv /home/u/w/.venv
--remount-ro /dev --remount-ro / --chdir /home/u/w
--json-status-fd 9 --block-fd 8 --seccomp 7
-- python -c 1
"""


def test_golden() -> None:
    spec = JailSpec(
        argv=("python", "-c", "1"),
        cwd="/home/u/w",
        env=(("A", "x"),),
        binds=(
            Bind(source="/s/venv", target="/home/u/w/.venv"),
            Bind(source="/s/w", target="/home/u/w", access=Access.READ_WRITE, untrusted=True),
        ),
        limits=JailLimits(tmp_bytes=4096),
    )
    assert list(bwrap_argv(spec, LAYOUT, FDS)) == GOLDEN.split()


def test_without_cgroup_namespace_and_seccomp() -> None:
    spec = JailSpec(argv=("true",), cwd="/")
    argv = bwrap_argv(spec, LAYOUT, Descriptors(status=9, etc=(3, 4, 5, 6)), cgroup_namespace=False)
    assert "--unshare-cgroup-try" in argv
    assert "--unshare-cgroup" not in argv
    assert "--seccomp" not in argv


words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=12)


@given(st.lists(words, min_size=1, max_size=5), st.lists(st.tuples(words, words), max_size=3), words)
def test_what_the_spec_says_is_never_read_as_an_option(argv: list[str], env: list[tuple[str, str]], cwd: str) -> None:
    spec = JailSpec(argv=tuple(argv), cwd=cwd, env=tuple(env), binds=(Bind(source=cwd, target="/" + cwd),))
    built = bwrap_argv(spec, LAYOUT, FDS)
    cut = len(built) - len(argv) - 1
    assert built[cut] == "--"
    assert list(built[cut + 1 :]) == argv
    plain = bwrap_argv(JailSpec(argv=("x",), cwd="/"), LAYOUT, FDS)
    isolating = [word for word in plain if word.startswith("--unshare") or word in ("--die-with-parent", "--clearenv")]
    assert [word for word in built[: len(isolating) + 12] if word in isolating][: len(isolating)] == isolating


@given(st.permutations(["/a", "/a/b", "/a/b/c", "/d"]))
def test_parents_are_mounted_before_children(targets: list[str]) -> None:
    spec = JailSpec(argv=("x",), cwd="/", binds=tuple(Bind(source="/s", target=target) for target in targets))
    built = bwrap_argv(spec, LAYOUT, FDS)
    places = [built.index(target) for target in ("/a", "/a/b", "/a/b/c")]
    assert places == sorted(places)


OPENED = {  # wall -> (options that go, options that come)
    Wall.USER: ({"--unshare-user", "--uid", "--gid", "65534", "--cap-drop"}, {"--cap-add"}),
    Wall.CAPABILITIES: ({"--cap-drop", "65534"}, {"--cap-add", "0"}),
    Wall.PROCESSES: ({"--unshare-pid", "--proc"}, set()),
    Wall.NETWORK: ({"--unshare-net"}, set()),
    Wall.IPC: ({"--unshare-ipc"}, set()),
    Wall.HOST_NAME: ({"--unshare-uts", "--hostname", "jail"}, set()),
    Wall.CGROUP_PATH: ({"--unshare-cgroup"}, set()),
    Wall.DEVICES: ({"--dev"}, {"--dev-bind"}),
    Wall.READ_ONLY: ({"--remount-ro"}, set()),
}


@pytest.mark.parametrize("wall", OPENED, ids=lambda wall: wall.name)
def test_an_open_wall_leaves_out_what_it_names_and_nothing_else(wall: Wall) -> None:
    """For controls alone. What stays is in the same order."""
    bind = Bind(source="/s/w", target="/w", access=Access.READ_WRITE)
    spec = JailSpec(argv=("true",), cwd="/", binds=(bind,))
    closed = bwrap_argv(spec, LAYOUT, FDS)
    opened = bwrap_argv(spec, LAYOUT, FDS, open_walls=frozenset({wall}))
    gone, come = OPENED[wall]
    assert set(closed) - set(opened) == gone
    assert set(opened) - set(closed) <= come | {"--bind"}


def test_walls_that_are_not_bubblewraps_change_nothing_here() -> None:
    spec = JailSpec(argv=("true",), cwd="/")
    others = frozenset(OPENABLE - set(OPENED) - {Wall.FILES})
    assert others == {Wall.SECCOMP, Wall.FIXED_LIMITS}
    assert bwrap_argv(spec, LAYOUT, FDS, open_walls=others) == bwrap_argv(spec, LAYOUT, FDS)


def test_limits_that_no_spec_changes() -> None:
    limits = rlimits(JailLimits(), None)
    assert limits["RLIMIT_CORE"] == (1, 1)  # 0 is ignored where cores are piped to a program of the host
    assert limits["RLIMIT_NICE"] == limits["RLIMIT_RTPRIO"] == limits["RLIMIT_MSGQUEUE"] == (0, 0)
    assert "RLIMIT_CORE" not in rlimits(JailLimits(), None, frozenset({Wall.FIXED_LIMITS}))
