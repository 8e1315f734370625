"""Landlock as a second wall inside the jail: who puts it up, what it lets through, and the spec that says so.

Pure but for `candidates` and `kernel`, which look at this machine.

bubblewrap mounts, and Landlock forbids mounting, so the wall cannot stand before it. The first program inside is
therefore ours; it confines itself and becomes the command. On x86-64 it is machine code (`landlock_stub.py`), elsewhere
`runner/landlock.py`, run by a trusted interpreter that the repository did not bring. That interpreter, where it lies
outside /usr, is shown but no rule grants reading it. Which of the two it is, `candidates` alone decides.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.domain.jailspec import Access, Bind, JailSpec
from localagent.errors import UsageFault
from localagent.jail.files.binds import interpreter_binds
from localagent.jail.files.host import SystemLayout
from localagent.jail.launcher import x86_assembler
from localagent.runner import landlock as confiner

SOURCE = Path(confiner.__file__)
SYSTEM_PYTHON = "/usr/bin/python3"
_OPTIONS = ("-I", "-S", "-B", "-X", "utf8", "-c")
_STATUS_AT = len(_OPTIONS) + 2
UNGRANTED = "/run/ungranted"  # in trial jails: a file that is shown and readable, but for the wall
PRIVATE = (
    ("/", "list"),
    ("/etc", "read"),
    ("/proc", "read"),
    ("/dev", "device"),
    ("/dev/shm", "write"),  # noqa: S108 - the jail's own
    ("/tmp", "write"),  # noqa: S108 - the jail's own
)
_GRANTS = {Access.READ_WRITE: "write", Access.READ_ONLY: "run"}
REMEDY = (
    "Linux 5.19 or later, built with CONFIG_SECURITY_LANDLOCK=y and with `landlock` among `lsm=` on its command line "
    "(/sys/kernel/security/lsm lists what is on); in a container the seccomp profile must allow landlock_* calls"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Confiner:
    """Who puts the wall up: a trusted interpreter inside the jail, else (None) our machine code for the kernel's `abi`.

    `binds` are what it needs to be shown there; `source` is what the interpreter runs.
    """

    python: str | None = None
    abi: int = 0
    binds: tuple[Bind, ...] = ()
    source: str = ""

    @property
    def name(self) -> str:
        """As reports say it."""
        return self.python or "machine code"


def kernel() -> tuple[int, str]:
    """(ABI, "") of this kernel, or (0, why not). A kernel that has it may still refuse it inside: that is tried."""
    try:
        abi = confiner.kernel_abi()
    except OSError as fault:
        return 0, f"the kernel does not offer it ({fault.strerror})"
    if abi < confiner.LEAST_ABI:
        return 0, f"the kernel's ABI is {abi}; below {confiner.LEAST_ABI} no file could be moved between folders"
    return abi, ""


def candidates() -> Iterator[Confiner]:
    """Who could put the wall up, best first: machine code, an interpreter that every jail shows anyway, our own."""
    if x86_assembler.supported() and (abi := kernel()[0]):
        yield Confiner(abi=abi)
    source = SOURCE.read_text(encoding="utf-8")
    ours = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    for python in dict.fromkeys((ours, os.path.realpath(SYSTEM_PYTHON))):
        if python.startswith("/usr/") and os.access(python, os.X_OK):
            yield Confiner(python=python, source=source)
    if not ours.startswith("/usr/"):
        try:
            inside, binds = interpreter_binds(ours)
        except UsageFault:
            return
        yield Confiner(python=inside, binds=binds, source=source)


def with_bait(by: Confiner) -> Confiner:
    """The same, and a file shown at UNGRANTED that no rule grants reading: whether it can be read tells the wall."""
    return replace(by, binds=(*by.binds, Bind(source=str(SOURCE), target=UNGRANTED)))


def rules_of(spec: JailSpec, layout: SystemLayout) -> tuple[tuple[str, str], ...]:
    """(path inside, grant) for all that the spec shows; what is not below one of them cannot even be read."""
    return (
        *PRIVATE,
        *((("/proc", "adjust"),) if spec.shows_devices else ()),  # CUDA gives up where it cannot name its threads there
        *((folder, "run") for folder in layout.folders),
        *((bind.target, _GRANTS[bind.access]) for bind in spec.binds if bind.access is not Access.DEVICE),  # below /dev
    )


def walled(spec: JailSpec, by: Confiner, layout: SystemLayout) -> JailSpec:
    """The same spec with the wall put up first; `launched` or `coded` then fills in the descriptors."""
    targets = {bind.target for bind in spec.binds}
    shown = replace(spec, binds=(*spec.binds, *(bind for bind in by.binds if bind.target not in targets)))
    if by.python is None:
        return replace(shown, argv=("", *spec.argv))
    rules = (word for rule in rules_of(spec, layout) for word in rule)
    env = (word for pair in spec.env for word in pair)
    return replace(
        shown,
        argv=(by.python, *_OPTIONS, by.source, "", "1" if spec.loopback else "0", *rules, "", *env, "", *spec.argv),
        env=(),
    )


def launched(argv: Sequence[str], status: int) -> tuple[str, ...]:
    """The command line of a spec `walled` by an interpreter, with the number of its status descriptor."""
    return (*argv[:_STATUS_AT], str(status), *argv[_STATUS_AT + 1 :])


def coded(argv: Sequence[str], image: int) -> tuple[str, ...]:
    """The command line of a spec `walled` by machine code, with the descriptor of its image."""
    return (f"/proc/self/fd/{image}", *argv[1:])
