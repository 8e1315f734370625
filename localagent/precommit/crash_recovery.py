"""What a repair of staged files is about to do, kept until it is done: the next run finishes or takes back.

Two things change one after the other: working files (landed together) and the index (git writes it whole). The intent
stands before the first and names what the index will hold after the second. A run that finds one asks the index: all
of it there means done; none of it means that the working files go back. Not promised: to undo what a person did
between the two runs; their files stay, and a remark says so.
"""

import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import read_bounded, write_private
from localagent.repo.apply_patch import TreeDiffers, landing_state, recover, undo
from localagent.repo.apply_record import LandState
from localagent.repo.git import Git
from localagent.repo.staged_index import entries_of
from localagent.text.strict_json import dump, load

_NAME = "intent.json"
_SCHEMA = "localagent/hook-intent/1"
_MOST_BYTES = 16 << 20


def undo_folder(undo_root: Path, root: Path) -> Path:
    """Where a repository's unfinished repair is kept."""
    return undo_root / sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def keep(folder: Path, blobs: Mapping[RepoPath, str]) -> None:
    """Write down what the index will hold, durably, before anything changes."""
    value = {"schema": _SCHEMA, "blobs": {str(path): blob for path, blob in blobs.items()}}
    write_private(folder / _NAME, dump(value))


def settle(git: Git, root: Path, folder: Path) -> str:
    """Finish or take back what a run that was killed left; a remark where there was something, else ""."""
    if not folder.exists():
        return ""
    recover(root, folder)
    wanted = _load_intent(folder)
    if landing_state(folder) is not LandState.LANDED or not wanted:
        shutil.rmtree(folder)
        return ""
    now = entries_of(git, list(wanted))
    there = [path for path, blob in wanted.items() if now.get(path, ("", ""))[1] == blob]
    remark = ""
    if not there:
        remark = "an earlier run was ended before it had written the index: its changes of working files are taken back"
        try:
            undo(root, folder)
        except TreeDiffers as since:
            remark = f"an earlier run was ended before it had written the index, and its working files stay: {since}"
    elif len(there) < len(wanted):
        remark = "an earlier run was ended half-way, and files were staged since: nothing is taken back"
    shutil.rmtree(folder)
    return remark


def _load_intent(folder: Path) -> dict[RepoPath, str]:
    """What stands in the intent; empty where there is none."""
    path = folder / _NAME
    try:
        found: Any = load(read_bounded(path, _MOST_BYTES))
        if found["schema"] != _SCHEMA:
            raise ValueError("another schema")
        return {RepoPath(name): str(blob) for name, blob in found["blobs"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError, UsageFault) as error:
        raise AnswerIsNo(
            f"{path} is damaged: {error}", remedy=f"look at the repository with git, then remove {folder}"
        ) from error
