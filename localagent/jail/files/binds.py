"""What a Python interpreter needs to be seen in a jail, found by looking at files only: it runs in the jail alone.

A virtual environment may lie inside the repository and is hostile: `pyvenv.cfg` is read bounded and without following
links, and what its `home` names is shown only where it looks like a Python prefix, and then only its `bin` and `lib`.
Not promised: shared libraries outside the prefix and /usr (RPATH into another folder) are not found.
"""

import os
import re
from pathlib import Path

from localagent.domain.jailspec import Bind
from localagent.errors import UsageFault
from localagent.fs.openat import closing, open_regular

CONFIG_LIMIT_BYTES = 1 << 16
LINKS_LIMIT = 16
PREFIX_FOLDERS = ("bin", "lib", "lib64", "include")  # headers: tests build extensions
_STDLIB = re.compile(r"(python|pypy)3\.\d+t?")


def interpreter_binds(python: str) -> tuple[str, tuple[Bind, ...]]:
    """(path to execute inside, binds it needs). UsageFault when it is no interpreter that could run there."""
    path = _plain(python)
    if not Path(path).is_file() or not os.access(path, os.X_OK):
        raise UsageFault(f"not an executable file: {python}", remedy="name the project's interpreter with --python")
    environment = _environment(path)
    if environment is None:
        real = os.path.realpath(path)
        return real, tuple(_prefix_binds(_prefix(real), real))
    binds = {environment: Bind(source=os.path.realpath(environment), target=environment, untrusted=True)}
    home = _home(environment)
    for bind in _home_binds(home, path):
        binds.setdefault(bind.target, bind)
    for hop in _hops(path):
        if not hop.startswith(environment + "/"):
            for bind in _hop_binds(hop, set(binds)):
                binds.setdefault(bind.target, bind)
    return path, tuple(bind for bind in binds.values() if not _in_system(bind.target))


def _plain(python: str) -> str:
    if "\0" in python or not python.startswith("/"):
        raise UsageFault(f"the interpreter must be given by an absolute path: {python!r}")
    return os.path.normpath(python)


def _in_system(path: str) -> bool:
    return path == "/usr" or path.startswith("/usr/")


def _environment(path: str) -> str | None:
    """The virtual environment that `path` belongs to, by its pyvenv.cfg, or None."""
    for folder in (Path(path).parent.parent, Path(path).parent):
        if (folder / "pyvenv.cfg").is_file():
            return str(folder)
    return None


def _home(environment: str) -> str:
    """`home` of pyvenv.cfg; UsageFault when it is missing or no absolute path."""
    config = f"{environment}/pyvenv.cfg"
    try:
        with closing(open_regular(config)) as number:
            text = os.read(number, CONFIG_LIMIT_BYTES).decode(errors="replace")
    except OSError as fault:
        raise UsageFault(f"{config}: {fault.strerror}") from fault
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "home" and value.strip().startswith("/") and "\0" not in value:
            return os.path.normpath(value.strip())
    raise UsageFault(f"{config}: no usable `home`", remedy="make the virtual environment anew")


def _home_binds(home: str, wanted_by: str) -> list[Bind]:
    """Binds for what pyvenv.cfg names; `/bin` and the like are the system's where they lead there."""
    if _in_system(os.path.realpath(home)):
        return []
    return _prefix_binds(str(Path(home).parent), wanted_by)


def _prefix(executable: str) -> str:
    return str(Path(executable).parent.parent)


def _is_prefix(prefix: str) -> bool:
    """True for a folder with a `lib/pythonX.Y/os.py` that is a regular file."""
    try:
        folders = [path for path in Path(prefix, "lib").iterdir() if _STDLIB.fullmatch(path.name)]
    except OSError:
        return False
    return any((folder / "os.py").is_file() for folder in folders)


def _prefix_binds(prefix: str, wanted_by: str) -> list[Bind]:
    """Binds of a prefix's folders, at its textual and at its real place."""
    real = os.path.realpath(prefix)
    if _in_system(real) and _in_system(prefix):
        return []
    if real == "/" or not _is_prefix(real):
        raise UsageFault(
            f"{wanted_by}: {prefix} does not look like the prefix of a Python installation (no lib/python3.*/os.py)",
            remedy="give the real interpreter, not a wrapper script, with --python",
        )
    folders = [name for name in PREFIX_FOLDERS if Path(real, name).is_dir() and not Path(real, name).is_symlink()]
    places = dict.fromkeys((prefix, real))
    return [Bind(source=f"{real}/{name}", target=f"{place}/{name}") for place in places for name in folders]


def _hops(path: str) -> list[str]:
    """The paths that the link `path` leads through, in order; UsageFault for a circle."""
    hops: list[str] = []
    while Path(path).is_symlink():
        path = os.path.normpath(str(Path(path).parent / Path(path).readlink()))
        hops.append(path)
        if len(hops) > LINKS_LIMIT:
            raise UsageFault(f"{path}: too many links")
    return hops


def _hop_binds(hop: str, shown: set[str]) -> list[Bind]:
    """What makes `hop`, a path outside the environment, resolvable inside."""
    if _in_system(hop) or str(Path(hop).parent) in shown or hop in shown:
        return []
    real = os.path.realpath(hop)
    if _in_system(real) or not _is_prefix(_prefix(real)):
        return [Bind(source=real, target=hop)] if _in_system(real) else _prefix_binds(_prefix(real), hop)
    named = _prefix(hop)
    if os.path.realpath(named) == _prefix(real):
        return _prefix_binds(named, hop)
    return [Bind(source=real, target=hop), *_prefix_binds(_prefix(real), hop)]
