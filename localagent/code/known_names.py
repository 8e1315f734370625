"""Which names exist: what some files define, mention and import, what Python and its common types bring.

A name listed here exists somewhere in those texts or in Python; whether it is bound where it is used is not said.
"""

import builtins
import collections
import datetime
import functools
import itertools
import json
import keyword
import math
import operator
import os.path
import re
import string
import textwrap
from bisect import bisect_left
from collections.abc import Iterable
from types import ModuleType

from localagent.code.builtin_types import ATTRIBUTES
from localagent.code.symbols import FileFacts

_MODULES: dict[str, ModuleType] = {
    m.__name__: m for m in (collections, datetime, functools, itertools, json, math, operator, re, string, textwrap)
} | {"os": os, "os.path": os.path}
_KEYWORDS = [  # of the standard library's common calls
    *("key", "reverse", "default", "encoding", "errors", "sep", "end", "file", "flush", "indent", "sort_keys"),
    *("ensure_ascii", "maxsplit", "start", "stop", "step", "strict", "exist_ok", "parents", "newline", "mode", "flags"),
    *("count", "timeout", "check", "text", "capture_output", "tzinfo", "microsecond", "hour", "minute", "second"),
    *("day", "month", "year", "days", "hours", "minutes", "seconds", "weeks", "default_factory", "maxlen", "repeat"),
    *("fillvalue", "initial", "separators", "cls", "delimiter", "fieldnames", "quotechar", "rel_tol", "abs_tol"),
    *("ndigits", "keepends", "width", "drop_whitespace", "chars", "lo", "hi", "func", "base"),
]
_PYTHON = (
    *keyword.kwlist,
    *(n for n in dir(builtins) if not n.startswith("_")),
    "__name__",
    "__file__",
    "match",
    "case",
)


class KnownIdentifiers:
    """Names, attributes and keyword arguments that exist, with their beginnings."""

    def __init__(self, files: Iterable[FileFacts]) -> None:
        names: set[str] = set(_PYTHON)
        attributes: set[str] = {a for kind in ATTRIBUTES.values() for a in kind}
        keywords: set[str] = set(_KEYWORDS)
        for facts in files:
            names |= {*facts.names, *facts.module_names, *facts.imports, *facts.functions, *facts.classes}
            attributes |= set(facts.attributes)
            for stored in facts.classes.values():
                attributes |= {*stored.methods, *stored.attributes}
            for origin in facts.imports.values():
                attributes |= (
                    {a for a in dir(_MODULES.get(origin)) if not a.startswith("_")} if origin in _MODULES else set()
                )
            for signatures in facts.functions.values():
                for signature in signatures:
                    names |= {*signature.params, *signature.keyword_only}
                    keywords |= {*signature.params, *signature.keyword_only}
            for given in facts.keywords_of.values():
                keywords |= set(given)
        names = {name for name in names if not name.startswith("test_")}
        self.names, self.attributes, self.keywords = _PrefixSet(names), _PrefixSet(attributes), _PrefixSet(keywords)


class _PrefixSet:
    """A set of words that also knows their beginnings."""

    def __init__(self, words: Iterable[str]) -> None:
        self._sorted = sorted(set(words))
        self._set = frozenset(self._sorted)

    def __contains__(self, word: str) -> bool:
        return word in self._set

    def begins(self, beginning: str) -> bool:
        """Whether a word begins so."""
        at = bisect_left(self._sorted, beginning)
        return at < len(self._sorted) and self._sorted[at].startswith(beginning)
