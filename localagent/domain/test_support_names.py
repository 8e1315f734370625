"""Which files say by their name that they support tests: helpers for a project's own, or for those of its users.

Limitations: names alone. What a file holds, and who imports it, the gate `test-helpers` looks at; what the policy calls
a test (`paths.tests`) is not asked about here.
"""

import re

from localagent.domain.paths import RepoPath

_PUBLIC = frozenset({"testing"})
_WORD = r"(?:test|tests|testing)"
_PURPOSE = (
    r"(?:util|utils|utility|utilities|helper|helpers|support|lib|kit|tool|tools|common|case|cases|mixin|mixins|"
    r"fixture|fixtures|assertion|assertions|client|harness)"
)
_HELPER = re.compile(rf"{_WORD}_?{_PURPOSE}|{_PURPOSE}_(?:for_)?{_WORD}")
_ROOTS = frozenset({"src", "lib", "python"})


def is_testing_support(path: RepoPath) -> bool:
    """Whether a file lies in `testing/` or is named like a helper of tests (`testutil.py`, `_test_support/`).

    The top-level folder of a distribution counts only where it is `testing` itself: whose product is a testing library
    would else have nothing but support.
    """
    folders, stem = _parts(path)
    return _is_public(stem) or _is_helper(stem) or any(map(_is_public, folders)) or any(map(_is_helper, folders[1:]))


def is_test_helper_name(path: RepoPath) -> bool:
    """Whether the name says that a file helps the project's own tests; not where others are meant to use it.

    `testing/` inside a package is for others; beside the package it is the project's own.
    """
    folders, stem = _parts(path)
    if not folders:
        return _is_public(stem) or _is_helper(stem)
    if _is_public(folders[0]):
        return True
    if any(map(_is_public, (*folders[1:], stem))):
        return False
    return _is_helper(stem) or any(map(_is_helper, folders[1:]))


def _parts(path: RepoPath) -> tuple[tuple[str, ...], str]:
    """The folders below the source root, and the file's name without its ending, both in lower case."""
    *folders, name = (part.lower() for part in path.parts)
    if folders and folders[0] in _ROOTS:
        folders = folders[1:]
    return tuple(folders), name.partition(".")[0]


def _is_public(word: str) -> bool:
    return word.strip("_") in _PUBLIC


def _is_helper(word: str) -> bool:
    return _HELPER.fullmatch(word.strip("_")) is not None
