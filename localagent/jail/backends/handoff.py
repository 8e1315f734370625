"""What each kind of backend is handed for one jail: command line, descriptors, and who reads its reports.

Opens descriptors (kept in `OpenDescriptors`, which closes them) and looks at the host's mounts; starts nothing.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from localagent.domain.jailspec import JailSpec
from localagent.errors import CannotEnforce
from localagent.fs.openat import write_all
from localagent.jail.backends.backend import Backend, BackendKind
from localagent.jail.backends.bubblewrap import SYNTHETIC_ETC, Descriptors, bwrap_argv
from localagent.jail.backends.nsjail import WORK_FOLDERS, Handed, Surroundings, nsjail_argv, nsjail_config
from localagent.jail.boundaries import Wall
from localagent.jail.files import host, mountpoints
from localagent.jail.launcher import init_stub, landlock_stub, seccomp, x86_assembler
from localagent.jail.launcher import landlock_ruleset as landlock
from localagent.jail.launcher.init_stub import InitPlan
from localagent.jail.launcher.landlock_reports import LandlockReport, by_code, by_interpreter
from localagent.jail.launcher.landlock_ruleset import Confiner
from localagent.jail.launcher.landlock_stub import LandlockPlan as WallPlan
from localagent.jail.launcher.status_protocol import BubblewrapReports, InitRecords, InitReports, Reports


@dataclass(kw_only=True, slots=True)
class OpenDescriptors:
    """Descriptors opened for one start: `passed` go to the child, `kept` are ours once it runs."""

    passed: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def memfd(self, name: str, content: bytes) -> int:
        """A descriptor that reads as `content`, to be passed."""
        self.passed.append(memfd(name, content))
        return self.passed[-1]

    def close(self) -> None:
        """Close all that is still listed."""
        for number in (*self.passed, *self.kept):
            os.close(number)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildPipes:
    """The child's ends of the two pipes that every backend has, the channel (None without), what the wall takes."""

    status: int
    block: int
    channel: int | None
    landlock: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    """`work_folders` are those of the host in which the program would make folders of its own."""

    argv: tuple[str, ...]
    reports: Reports
    work_folders: tuple[str, ...] = ()


def memfd(name: str, content: bytes) -> int:
    """An open file in memory, at its start."""
    number = os.memfd_create(name, os.MFD_CLOEXEC)
    _fill(number, content)
    return number


def _fill(number: int, content: bytes) -> None:
    write_all(number, content)
    os.lseek(number, 0, os.SEEK_SET)


@dataclass(frozen=True, kw_only=True, slots=True)
class SecondWall:
    """The spec whose first program puts up the wall, the descriptors it takes, ours, and how what it tells is read."""

    spec: JailSpec
    inside: tuple[int, ...]
    told: int
    read: Callable[[bytes], LandlockReport]


def hand_wall(by: Confiner, spec: JailSpec, rules: tuple[tuple[str, str], ...], opened: OpenDescriptors) -> SecondWall:
    """What the first program of a `walled` spec is handed; `rules` are those of the spec before it was walled."""
    told, status = os.pipe2(os.O_CLOEXEC)
    opened.kept.append(told)
    opened.passed.append(status)
    if by.python is not None:
        made = replace(spec, argv=landlock.launched(spec.argv, status))
        return SecondWall(spec=made, inside=(status,), told=told, read=by_interpreter)
    image = opened.memfd("localagent-wall", b"")
    plan = WallPlan(
        argv0=spec.argv[1],
        path=dict(spec.env).get("PATH"),
        rules=rules,
        abi=by.abi,
        loopback=spec.loopback,
        status=status,
        image=image,
    )
    _fill(image, landlock_stub.program(plan))
    made = replace(spec, argv=landlock.coded(spec.argv, image))
    return SecondWall(spec=made, inside=(status, image), told=told, read=partial(by_code, plan))


def hand_over(backend: Backend, spec: JailSpec, pipes: ChildPipes, opened: OpenDescriptors) -> Handover:
    """Everything that the backend's program needs for this spec, whose binds are resolved."""
    filtered = backend.seccomp and Wall.SECCOMP not in backend.open_walls
    code = seccomp.program(set_ids=spec.set_ids) if filtered else None
    if code is None and not spec.set_ids and not backend.open_walls:
        raise CannotEnforce(
            "a program may leave set-uid files in a writable folder of yours, and without seccomp nothing forbids it",
            remedy="install libseccomp, or copy the folder in (--file) and what comes of it out (--out)",
        )
    if backend.kind is BackendKind.NSJAIL:
        return _to_nsjail(backend, spec, pipes, opened, code)
    etc = tuple(opened.memfd("localagent-etc", content) for _, content in SYNTHETIC_ETC)
    filter_fd = None if code is None else opened.memfd("localagent-seccomp", code)
    init, records = _own_init(backend, spec, opened)
    argv = bwrap_argv(
        spec,
        host.system_layout(),
        Descriptors(status=pipes.status, etc=etc, seccomp=filter_fd, block=pipes.block, init=init),
        program=backend.program,
        cgroup_namespace=backend.cgroup_namespace,
        open_walls=backend.open_walls,
    )
    return Handover(argv=argv, reports=BubblewrapReports(records))


def _own_init(backend: Backend, spec: JailSpec, opened: OpenDescriptors) -> tuple[int | None, InitRecords | None]:
    """Our init for a bubblewrap jail and what reads its records; none of a pid namespace or a processor without it."""
    if not x86_assembler.supported() or Wall.PROCESSES in backend.open_walls:
        return None, None
    told, status = os.pipe2(os.O_CLOEXEC)
    opened.kept.append(told)
    opened.passed.append(status)
    image = opened.memfd("localagent-init", b"")
    path = dict(spec.env).get("PATH")
    plan = InitPlan(argv0=spec.argv[0], path=path, cwd=spec.cwd, status=status, block=None, seccomp=None, image=image)
    _fill(image, init_stub.program(plan))
    return image, InitRecords(spec.argv[0], spec.cwd, told)


def _to_nsjail(
    backend: Backend, spec: JailSpec, pipes: ChildPipes, opened: OpenDescriptors, code: bytes | None
) -> Handover:
    # While nsjail mounts, its binds are still writable: a missing mount point would be made in the source itself.
    faults = mountpoints.faults_of([replace(bind, untrusted=True) for bind in spec.binds])
    if faults:
        raise CannotEnforce("the jail was refused: " + "; ".join(faults))
    layout = host.system_layout()
    path = dict(spec.env).get("PATH")
    plan = InitPlan(argv0=spec.argv[0], path=path, cwd=spec.cwd, status=pipes.status, block=pipes.block, seccomp=code)
    passed = [pipes.status, pipes.block, *pipes.landlock]
    passed += [] if pipes.channel is None else [pipes.channel]
    log = os.memfd_create("localagent-log", os.MFD_CLOEXEC)
    opened.kept.append(log)
    log_inside = os.dup(log)
    opened.passed.append(log_inside)
    handed = Handed(init=opened.memfd("localagent-init", init_stub.program(plan)), log=log_inside, passed=tuple(passed))
    sources: Sequence[str] = (*layout.folders, *layout.etc, *(bind.source for bind in spec.binds))
    around = Surroundings(
        layout=layout,
        submounts=host.submounts(sources),
        niceness=os.getpriority(os.PRIO_PROCESS, 0),
        cgroup_namespace=backend.cgroup_namespace,
    )
    config = opened.memfd("localagent-nsjail", nsjail_config(spec, around, handed))
    return Handover(
        argv=nsjail_argv(backend.program, config),
        reports=InitReports(spec.argv[0], spec.cwd, log),
        work_folders=tuple(folder for folder in WORK_FOLDERS if os.path.isdir(folder)),  # noqa: PTH112
    )
