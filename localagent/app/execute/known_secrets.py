"""Values that only this machine's user should know, so that they are never shown when a program prints them.

Taken from the caller's environment, where a variable's name says that it is secret, and from a fixed list of well-known
credential files below the home folder. They stay in this process's memory: they are not written, logged, sent to the
supervisor of sessions or shown to a jail. A file that is no regular file of the user's own, or is larger than 64 KB, is
not read.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from localagent.fs.openat import read_regular
from localagent.text.secret_names import SENSITIVE_NAME
from localagent.text.secret_redaction import Sanitizer, SecretKind

CREDENTIAL_FILES = (
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".config/pip/pip.conf",
    ".cargo/credentials.toml",
    ".docker/config.json",
    ".git-credentials",
    ".kube/config",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".cache/huggingface/token",
)
_FILE_LIMIT_BYTES = 64 << 10
_LONGEST = 8192
_SECRET_NAME = re.compile(rf"{SENSITIVE_NAME}|token|passw|access_?key|(?:^|_)(?:pat|pwd|auth|key)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_.~+/=%!$&*^-]{16,8192}")
_PLACES = ("/", "~", "./", "../")


def open_sanitizer(environ: Mapping[str, str] | None = None) -> Sanitizer:
    """A sanitizer that knows the caller's canaries."""
    env = dict(os.environ) if environ is None else environ
    return Sanitizer([*_of_environment(env), *_of_files(Path(env.get("HOME") or "~").expanduser())])


def _of_environment(env: Mapping[str, str]) -> Iterator[tuple[str, SecretKind]]:
    for name, value in env.items():
        if _SECRET_NAME.search(name) and name != "PWD" and _telling(value):
            yield value[:_LONGEST], SecretKind.ENVIRONMENT


def _telling(value: str) -> bool:
    """Not a path, and of more than a few characters: hiding `password` or `aaaaaaaa` everywhere would hide nothing."""
    return not value.startswith(_PLACES) and len(set(value)) >= 5


def _of_files(home: Path) -> Iterator[tuple[str, SecretKind]]:
    for name in CREDENTIAL_FILES:
        for word in _WORD.findall(_read(home / name)):
            if any(c.isdigit() for c in word) and any(c.isalpha() for c in word) and _telling(word):
                yield word, SecretKind.CREDENTIAL_FILE


def _read(path: Path) -> str:
    """The text of a regular file of the user's own; "" for anything else, which then gives no canary."""
    try:
        data, facts = read_regular(path, None, _FILE_LIMIT_BYTES)
    except OSError:
        return ""
    return data.decode("utf-8", "replace") if facts.st_uid == os.geteuid() else ""
