"""The folder of results: written whole beside its place and renamed there, or not at all; nothing is ever overwritten.

A program that is killed between leaves a folder `.localagent-…` beside it, and no results.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from localagent.fs.atomic_files import CannotRecord, read_bounded
from localagent.fs.openat import replace_file, sync_directory
from localagent.text.strict_json import load

REPORT_NAME = "analysis.json"
_MOST_REPORT_BYTES = 16 << 20


def results_fault(results: Path, session: str = "") -> str:
    """Why no results can be written there, "" where they can, or where those of that very session are there."""
    if not results.absolute().parent.is_dir():
        return f"--results: the directory of {results} does not exist"
    if ".git" in map(str.lower, results.resolve().parts):
        return f"--results: {results} lies in a folder .git, which is git's own; name another place"
    if not os.path.lexists(results):
        return ""
    if results.is_symlink() or not results.is_dir():
        return f"--results: {results} is there and no folder; name a new one"
    try:
        full = any(results.iterdir()) and not (session and _session_of(results) == session)
    except OSError as error:
        return f"--results: {results}: {error.strerror}"
    return f"--results: {results} is not empty; name a new folder" if full else ""


def _session_of(results: Path) -> str:
    """The session whose results are there, by their report; "" where that cannot be told."""
    try:
        told = load(read_bounded(results / REPORT_NAME, _MOST_REPORT_BYTES))
    except (OSError, ValueError):
        return ""
    return str(told.get("session", "")) if isinstance(told, dict) else ""


def publish(results: Path, files: Path, texts: Mapping[str, bytes], session: str = "") -> None:
    """Copies of the regular files below `files`, and `texts` by name. CannotRecord where they cannot be written.

    Results of that very session that are there already, as after a kill, stay; CannotRecord where they are others.
    """
    fault = results_fault(results, session)
    if not fault and session and _session_of(results) == session:
        if read_bounded(results / REPORT_NAME, _MOST_REPORT_BYTES) == texts[REPORT_NAME]:
            return
        fault = f"--results: {results} holds other results of this session"
    if fault:
        raise CannotRecord(fault, remedy="free the place, then `localagent session resume`")
    target = results.absolute()
    beside = target.with_name(f".localagent-{secrets.token_hex(8)}")
    try:
        beside.mkdir()
        for source in sorted(files.rglob("*")):
            place = beside / source.relative_to(files)
            if source.is_dir():
                place.mkdir()
            else:
                replace_file(place, source.read_bytes(), mode=None)
        for name, data in texts.items():
            replace_file(beside / name, data, mode=None)
        beside.rename(target)  # over an empty folder, and over nothing else
        sync_directory(target.parent)
    except OSError as error:
        remedy = f"free space in {target.parent}, or the right to write there, then `localagent session resume`"
        raise CannotRecord(f"cannot write {results}: {error.strerror or error}", remedy=remedy) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
