"""First program inside a jail: puts up the Landlock wall around itself, then becomes the command.

On x86-64 machine code does the same (see jail/launcher/landlock_stub.py): a change here is a change there.

Run by a trusted interpreter, with an empty environment and nothing of the repository loaded, as

    python -I -S -B -X utf8 -c SOURCE STATUS LOOPBACK [PATH GRANT]... "" [NAME VALUE]... "" COMMAND...

What it did, or why it could not, is told as one JSON line on the descriptor STATUS, which the command does not get:
`landlock` (the kernel's ABI), `landlock-fault`, or `exec-fault`. LOOPBACK is 1 where TCP stays allowed.
Python 3.8 or later, the standard library only, and little of it: it stands before every command, so each import is
paid for each time.

Not promised: anything that Landlock does not govern (stat, chmod, what is reached through descriptors already open).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` brings enum along
import ctypes
import os
import stat
import struct
import sys

LEAST_ABI = 2  # before, no file could be moved between folders: ordinary programs break
FAILED = 125
NO_COMMAND = 127
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture that Linux gave one table
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 3  # bind and connect
_SCOPES = 3  # abstract Unix sockets and signals
GRANTS = {
    "list": _READ_DIR,
    "read": _READ_DIR | _READ_FILE,
    "run": _READ_DIR | _READ_FILE | _EXECUTE,
    "device": _READ_DIR | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV,
    "adjust": _READ_DIR | _READ_FILE | _WRITE_FILE | _TRUNCATE,
    "write": ((1 << 15) - 1) & ~(_MAKE_CHAR | _MAKE_BLOCK),
}


def _call(number: int, *words: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    result = int(library.syscall(ctypes.c_long(number), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def kernel_abi() -> int:
    """The kernel's Landlock ABI. OSError: ENOSYS without it, EOPNOTSUPP when it was not enabled at boot."""
    return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))


def handled(abi: int) -> int:
    """The rights over files that a kernel of this ABI can forbid, of those known here."""
    rights = (1 << 13) - 1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        rights |= right if abi >= since else 0
    return rights


def attributes(abi: int, loopback: bool) -> bytes:
    """`struct landlock_ruleset_attr` as far as a kernel of this ABI knows it."""
    words = [handled(abi)]
    if abi >= 4:
        words.append(0 if loopback else _TCP)
    if abi >= 6:
        words.append(_SCOPES)
    return struct.pack("=%dQ" % len(words), *words)


def confine(rules: list[tuple[str, str]], loopback: bool) -> int:
    """Forbid this process, and all that it becomes and starts, whatever no rule grants. The ABI; OSError if not."""
    abi = kernel_abi()
    if abi < LEAST_ABI:
        raise OSError(0, "Landlock ABI %d forbids every move between folders" % abi)
    about = attributes(abi, loopback)
    ruleset = _call(_CREATE, about, ctypes.c_size_t(len(about)), ctypes.c_uint32(0))
    try:
        for path, grant in rules:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                rights = GRANTS[grant] & handled(abi)
                if not stat.S_ISDIR(os.fstat(place).st_mode):
                    rights &= ON_FILES
                rule = struct.pack("=Qi", rights, place)
                _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
            finally:
                os.close(place)
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return abi


def _tell(status: int, key: str, text: str) -> None:
    plain = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in text)
    os.write(status, ('{"%s": "%s"}\n' % (key, plain)).encode("ascii"))


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    """Takes pairs off the front of `words`, up to and with the empty word that ends them."""
    end = 0
    while words[end]:
        end += 2
    taken = words[: end + 1]
    del words[: end + 1]
    return list(zip(taken[0:end:2], taken[1:end:2]))  # noqa: B905 - not in 3.8


def main(words: list[str]) -> None:
    """Put up the wall and become the command; does not return."""
    status, loopback = int(words[0]), words[1] == "1"
    command = words[2:]
    os.set_inheritable(status, False)
    rules = _pairs(command)
    env = dict(_pairs(command))
    try:
        _tell(status, "landlock", str(confine(rules, loopback)))
    except OSError as fault:
        _tell(status, "landlock-fault", "the Landlock wall could not be put up: %s" % fault)
        os._exit(FAILED)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # ignored by Python, and what is ignored stays so
        _signal.signal(number, _signal.SIG_DFL)
    if "PWD" in os.environ:
        env["PWD"] = os.environ["PWD"]
    try:
        os.execvpe(command[0], command, env)
    except (OSError, ValueError) as fault:
        _tell(status, "exec-fault", str(fault))
        os.write(2, ("cannot execute %s: %s\n" % (command[0], fault)).encode("utf-8", "surrogateescape"))
        os._exit(NO_COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])
