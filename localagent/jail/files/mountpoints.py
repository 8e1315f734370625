"""Which binds a jail may have. Refuses what bubblewrap could be led astray by (CVE-2026-87766), with every reason.

bubblewrap before 0.12 makes missing mount points by path under the new root and follows links that an earlier,
untrusted bind put there. So no mount point may have to be made below an untrusted bind: each component of such a
target must already be a real folder (the last one: a real folder or file) in the source, seen by lstat. That holds
only while the source is quiescent: no process of the repository may be running on it while a jail starts.
"""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from localagent.domain.jailspec import Access, Bind, JailSpec
from localagent.errors import CannotEnforce

RESERVED = ("/proc", "/dev", "/sys", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
WHOLE = ("/", "/usr", "/tmp", "/root", "/home", "/var")  # noqa: S108 - as targets refused

_GPU_NODE = re.compile(r"/dev/(?:nvidia(?:[0-9]+|ctl|-uvm|-uvm-tools|-caps/[a-z0-9-]+)|dri/renderD[0-9]+|kfd)")


def resolved(spec: JailSpec) -> JailSpec:
    """The same spec with every source free of links; CannotEnforce naming every fault of the binds."""
    faults = [*_text_faults(spec)]
    binds: list[Bind] = []
    for bind in spec.binds:
        try:
            binds.append(replace(bind, source=os.path.realpath(bind.source, strict=True)))
        except OSError as fault:
            faults.append(f"bind source {bind.source!r}: {fault.strerror}")
    if not faults:
        faults = faults_of(binds)
    if faults:
        raise CannotEnforce("the jail was refused: " + "; ".join(faults))
    return replace(spec, binds=tuple(binds))


def _text_faults(spec: JailSpec) -> list[str]:
    words = [*spec.argv, spec.cwd, *(word for pair in spec.env for word in pair)]
    words += [path for bind in spec.binds for path in (bind.source, bind.target)]
    faults = [] if spec.argv else ["no command"]
    faults += [f"NUL in {word!r}" for word in words if "\0" in word]
    faults += [f"not a variable name: {name!r}" for name, _ in spec.env if not name or "=" in name]
    if not spec.cwd.startswith("/"):
        faults.append(f"the working folder {spec.cwd!r} is not absolute")
    return faults


def faults_of(binds: Sequence[Bind]) -> list[str]:
    """Every reason why these binds are refused; empty means accepted."""
    faults: list[str] = []
    seen: set[str] = set()
    for bind in binds:
        fault = _device_fault(bind) if bind.access is Access.DEVICE else _target_fault(bind.target)
        if fault:
            faults.append(f"bind target {bind.target!r} {fault}")
        elif bind.target in seen:
            faults.append(f"bind target {bind.target!r} is given twice")
        seen.add(bind.target)
    if not faults:
        for inner in binds:
            for outer in binds:
                if outer.untrusted and inner is not outer:
                    fault = _below_fault(inner, outer)
                    faults += [fault] if fault else []
    return faults


def _device_fault(bind: Bind) -> str:
    """Why a device may not be shown there, or "": only nodes of GPUs are, at places of their names."""
    if not _GPU_NODE.fullmatch(bind.target):
        return "is no node of a GPU"
    try:
        node = stat.S_ISCHR(os.lstat(bind.source).st_mode)
    except OSError as fault:
        return f"cannot be looked at: {fault.strerror}"
    return "" if node else "is not a device"


def _target_fault(target: str) -> str:
    if not target.startswith("/") or str(PurePosixPath(target)) != target or ".." in PurePosixPath(target).parts:
        return "is not an absolute, plain path"
    if target in WHOLE:
        return "would hide or show too much"
    if any(target == folder or target.startswith(folder + "/") for folder in RESERVED):
        return "is reserved for the system"
    return ""


def _below_fault(inner: Bind, outer: Bind) -> str:
    """Why `inner`'s mount point may not lie below the untrusted `outer`, or ""."""
    if not inner.target.startswith(outer.target + "/"):
        return ""
    path = outer.source
    parts = inner.target[len(outer.target) + 1 :].split("/")
    for number, part in enumerate(parts):
        path = f"{path}/{part}"
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return f"{inner.target!r} lies below the untrusted {outer.target!r} where {part!r} does not exist"
        last = number == len(parts) - 1
        if not (stat.S_ISDIR(mode) or (last and stat.S_ISREG(mode))):
            return f"{inner.target!r} lies below the untrusted {outer.target!r} where {part!r} is not a real folder"
    return ""
