"""What is the user's own stays untouched: tests get a state and a data folder of their own, and are watched.

Models are found in the user's data folder, so ours has a link to each of its files. Whatever this process does below
the user's state, data or configuration folders of localagent but read is noted, and the session fails. Not seen: what
a test's own programs do (they are given our folders by the environment), and paths relative to an open folder.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

_DEFAULTS = {"XDG_STATE_HOME": ".local/state", "XDG_DATA_HOME": ".local/share", "XDG_CONFIG_HOME": ".config"}
_CHANGES = frozenset(
    f"os.{name}" for name in ("mkdir", "rename", "remove", "rmdir", "link", "symlink", "truncate", "chmod")
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

touched: list[str] = []


def folders() -> dict[str, Path]:
    """The user's own folders, by the variable that names what they lie in, as the environment says before a change."""
    home = Path(os.environ.get("HOME") or "~").expanduser()
    named = {name: os.environ.get(name, "") for name in _DEFAULTS}
    return {
        name: (Path(named[name]) if named[name].startswith("/") else home / below) / "localagent"
        for name, below in _DEFAULTS.items()
    }


def set_apart() -> None:
    """State and data of this session, in a folder that is gone at its end; the user's are watched from now on."""
    own = folders()
    place = Path(tempfile.mkdtemp(prefix="la-tests-own-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    place.chmod(0o755)  # a jail's uid passes through to a model
    models = own["XDG_DATA_HOME"] / "models"
    for file in [*models.rglob("*")] if models.is_dir() else []:
        if file.is_file():
            link = place / "data" / "localagent" / "models" / file.relative_to(models)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    os.environ["XDG_STATE_HOME"], os.environ["XDG_DATA_HOME"] = str(place / "state"), str(place / "data")
    _watch(tuple(str(folder) for folder in own.values()))


def _watch(kept: tuple[str, ...]) -> None:
    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & _WRITES:
                return
            paths: tuple[object, ...] = (path,)
        elif event in _CHANGES:
            paths = arguments
        else:
            return
        for path in paths:
            if isinstance(path, str | bytes) and os.fsdecode(path).startswith(kept):
                touched.append(f"{event} {os.fsdecode(path)} in {os.environ.get('PYTEST_CURRENT_TEST', '?')}")

    sys.addaudithook(hook)
