"""A machine to install on that is not this one: namespaces in which everything an installation writes to is an overlay.

Needs root. What is written to /etc, /opt, /usr/local, /var and /run there is gone with `end`; `systemctl` is a program
that notes what it was asked, when the machine is told to have systemd.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

WRITTEN = ("etc", "opt", "usr/local", "var")
MOUNTS = """
set -eu
mount -t tmpfs -o size=1g,mode=755 machine "$1"
for name in etc opt usr/local var; do
    mkdir -p "$1/upper/$name" "$1/work/$name"
    mount -t overlay -o "lowerdir=/$name,upperdir=$1/upper/$name,workdir=$1/work/$name" machine "/$name"
done
mount -t tmpfs -o mode=755 machine /run
for name in localagent localagent-audit; do
    if getent passwd "$name" >/dev/null || getent group "$name" >/dev/null; then echo "$name is there"; exit 3; fi
done
mkdir /run/home
mount -t proc proc /proc
echo ready
while :; do # takes away what ended without a parent, as init does: locks ask whether their owner lives
    sleep 86400 &
    wait $!
done
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/run/asked
[ ! -e /run/systemctl-fails ]
"""


def possible() -> bool:
    """Whether such a machine can be made here."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "useradd", "getent"))):
        return False
    tried = "mkdir /run/w /run/u && mount -t overlay -o lowerdir=/etc,upperdir=/run/u,workdir=/run/w machine /etc"
    argv = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs machine /run && {tried}"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


class Machine:
    """One such machine. `path` is a file of it as it is seen from outside: never follow its absolute links.

    `python` is what a kit's scripts find there as PYTHON.
    """

    python = sys.executable

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        argv = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            MOUNTS,
            "sh",
        ]
        self.process = subprocess.Popen(
            [*argv, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if said != "ready\n":
            raise AssertionError(said + self.process.stdout.read())
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        self.pid = int(children.split()[0])

    def end(self) -> None:
        """The machine is gone, with all its processes."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def path(self, name: str) -> Path:
        """A file of the machine."""
        return Path(f"/proc/{self.pid}/root{name}")

    def argv(self, *argv: str | Path) -> list[str]:
        """A command as it is run there, by root."""
        environ = ("HOME=/run/home", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", f"PYTHON={self.python}")
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--wd=/", "env", "-i", *environ]
        return [*enter, *map(str, argv)]

    def run(self, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        """What came of a command there."""
        return subprocess.run(self.argv(*argv), capture_output=True, text=True, check=False, timeout=300)

    def kit(self, kit: Path, command: str, *args: str) -> subprocess.CompletedProcess[str]:
        """A command of a kit, for the machine."""
        return self.run("sh", kit / command, "--system", *args)

    def version(self) -> str:
        """What the installed command answers, or ""."""
        return self.run("/usr/local/bin/localagent").stdout.strip()

    def with_systemd(self) -> None:
        """From now on systemd seems to run, and notes what it is asked in /run/asked."""
        self.path("/run/systemd/system").mkdir(parents=True)
        self.path("/run/systemctl").write_text(SYSTEMCTL, encoding="utf-8")
        self.path("/run/systemctl").chmod(0o755)
        done = self.run("mount", "--bind", "/run/systemctl", "/usr/bin/systemctl")
        assert done.returncode == 0, done.stderr

    def asked(self) -> list[str]:
        """What systemctl was asked since this was called last."""
        place = self.path("/run/asked")
        lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
        place.unlink(missing_ok=True)
        return lines

    def left(self) -> list[str]:
        """Everything but folders that was written or removed, but for the copies that the tools of accounts keep."""
        upper = self.path(str(self.folder)) / "upper"
        found = sorted(str(p.relative_to(upper)) for p in upper.rglob("*") if p.is_symlink() or not p.is_dir())
        kept = {
            f"etc/{name}{end}"
            for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
            for end in ("", "-")
        }
        return [name for name in found if name not in {*kept, "etc/.pwd.lock"}]

    def accounts(self) -> list[str]:
        """Lines of the machine's account files that speak of us."""
        files = ("passwd", "group", "shadow", "gshadow")
        lines = [line for name in files for line in self.path(f"/etc/{name}").read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if "localagent" in line]


def with_units(kit: Path, units: dict[str, str]) -> Path:
    """A gathered kit's systemd folder, before it is sealed."""
    (kit / "systemd").mkdir()
    for name, text in units.items():
        (kit / "systemd" / name).write_text(text, encoding="utf-8")
    return kit
