"""Set-uid and set-gid files in a folder of the user's, which would outlive the jail: by every call that sets a mode."""

import errno
import stat
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from support.jail_backends import KINDS, jail_by

from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.errors import CannotEnforce
from localagent.jail.api import BackendKind, NamespaceJail, Workspace, fresh_uid, interpreter_binds
from localagent.jail.launcher.seccomp import program

pytestmark = pytest.mark.skipif(program() is None, reason="libseccomp is not at hand: --rw is refused then")
LIMITS = JailLimits(wall_seconds=30.0, resident_bytes=256 << 20, processes=32)
WAYS = """
import ctypes, os, stat, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    if libc.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), "")
def link(number, name):
    if libc.linkat(at, b"/proc/self/fd/%d" % number, at, name.encode(), 0x400) < 0:
        raise OSError(ctypes.get_errno(), "")
def plain(name):
    open(name, "w").close()
    os.chmod(name, 0o755)
    return name.encode()
at, how = -100, struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, MODE, 0)
native = os.uname().machine == "x86_64"
ways = {
    "chmod": lambda n: os.chmod(plain(n), MODE),
    "fchmod": lambda n: os.fchmod(os.open(plain(n), os.O_RDONLY), MODE),
    "fchmodat": lambda n: os.chmod(plain(n), MODE, dir_fd=os.open(".", os.O_RDONLY)),
    "fchmodat2": lambda n: call(452, at, plain(n), MODE, 0),
    "open": lambda n: call(2, n.encode(), os.O_CREAT | os.O_WRONLY, MODE) if native else os.open(n, os.O_CREAT, MODE),
    "openat": lambda n: os.open(n, os.O_CREAT | os.O_WRONLY, MODE),
    "a file without a name": lambda n: link(os.open(".", os.O_TMPFILE | os.O_RDWR, MODE), n),
    "openat2": lambda n: call(437, at, n.encode(), how, len(how)),
    "mknod": lambda n: os.mknod(n, stat.S_IFREG | MODE),
    "creat": lambda n: call(85, n.encode(), MODE) if native else os.open(n, os.O_CREAT, MODE),
    "a high half": lambda n: call(452, at, plain(n), ctypes.c_ulong((1 << 32) | MODE), 0),
}
for name, way in ways.items():
    try:
        os.umask(0)
        way(name)
        print(name, "done")
    except OSError as fault:
        print(name, fault.errno)
"""


def tried(jail: NamespaceJail, folder: Path, mode: int, *, set_ids: bool) -> tuple[JailResult, dict[str, str]]:
    python, binds = interpreter_binds("/usr/bin/python3")
    code = f"MODE = 0o{mode:o}\n" + textwrap.dedent(WAYS)
    bind = Bind(source=str(folder), target="/w", access=Access.READ_WRITE, untrusted=True)
    spec = JailSpec(argv=(python, "-I", "-c", code), cwd="/w", binds=(*binds, bind), limits=LIMITS, set_ids=set_ids)
    result = jail.run(spec)
    rows = [line.rpartition(" ") for line in result.stdout.decode().splitlines()]
    return result, {name: said for name, _, said in rows}


def bits(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6711])
def test_no_way_leaves_one_behind(kind: BackendKind, mode: int) -> None:
    jail = jail_by(kind)
    with Workspace(Path("/tmp"), uid=fresh_uid()) as workspace:
        result, said = tried(jail, workspace.tree, mode, set_ids=False)
        assert len(said) == 11, result.stderr
        wanted = dict.fromkeys(said, str(errno.EPERM)) | {"openat2": str(errno.ENOSYS)}
        assert said == wanted
        assert bits(workspace.tree) == []


def test_without_that_wall_each_way_does() -> None:
    with Workspace(Path("/tmp"), uid=fresh_uid()) as workspace:
        _, said = tried(jail_by(BackendKind.BUBBLEWRAP), workspace.tree, 0o4755, set_ids=True)
        done = [name for name, answer in said.items() if answer == "done"]
        assert bits(workspace.tree) == sorted(done)
        assert set(done) >= {"chmod", "fchmod", "openat", "open", "mknod", "creat", "a file without a name"}


def test_where_nothing_forbids_them_nothing_runs() -> None:
    jail = jail_by(BackendKind.BUBBLEWRAP)
    bare = NamespaceJail(replace(jail._backend, seccomp=False))
    with Workspace(Path("/tmp"), uid=fresh_uid()) as workspace:
        with pytest.raises(CannotEnforce, match="without seccomp nothing forbids it"):
            tried(bare, workspace.tree, 0o4755, set_ids=False)
        assert list(workspace.tree.iterdir()) == []
