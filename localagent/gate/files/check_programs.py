"""Which files of the repository a `--check` command starts: the program that says whether a patch is good.

Read from the words of the command alone. Limitations: what a script that is no Python starts in turn, and entry points
that only an installed environment knows, are not followed.
"""

import re
import shlex
from collections.abc import Container, Iterator, Sequence
from itertools import dropwhile

from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault

_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*t?")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_BREAKS = frozenset({"&&", "||", ";", "|", "&"})
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})  # options of Python that take the next word
_LAUNCHERS = frozenset({"env", "nice", "timeout", "time", "xvfb-run", "stdbuf", "setsid", "nohup", "ionice", "chrt"})
_RUNNERS = dict.fromkeys(("coverage", "poetry", "pdm", "uv", "hatch", "pipenv", "rye"), "run")
_RUNS_A_PROGRAM = frozenset({"pdb", "cProfile", "profile", "trace", "runpy", "kernprof", "viztracer"})
_ROOTS = ("", "src/", "lib/", "python/")
_DEEPEST = 4  # programs that start programs


def check_programs(command: str, files: Container[RepoPath]) -> frozenset[RepoPath]:
    """The Python files that a command starts, of those there are. Empty for a command that cannot be read."""
    try:
        words = shlex.split(command)
    except ValueError:
        return frozenset()
    return frozenset(path for path in _started(words, _DEEPEST) if path in files)


def _started(words: Sequence[str], depth: int) -> Iterator[RepoPath]:
    """Every file that would be started if it were there."""
    words = _launched(words)
    if not words or not depth:
        return
    program, rest = words[0], words[1:]
    if _PYTHON.fullmatch(program):
        yield from _by_python(rest, depth)
    elif _SHELL.fullmatch(program):
        yield from _by_shell(rest, depth)
    elif rest and _RUNNERS.get(program.rpartition("/")[2]) == rest[0]:
        after = list(dropwhile(lambda word: word.startswith("-") and word != "-m", rest[1:]))
        yield from _by_python(after, depth)
        yield from _started(after, depth - 1)
    else:
        yield from _script(program)


def _launched(words: Sequence[str]) -> list[str]:
    """The command without what only launches it: assignments, `env`, `nice -n 5`, `timeout 60`."""
    left = list(words)
    launched = False
    while left:
        word = left[0]
        if word.rpartition("/")[2] in _LAUNCHERS:
            launched = True
        elif not _ASSIGNED.match(word) and not (launched and (word.startswith("-") or word[:1].isdigit())):
            break
        left.pop(0)
    return left


def _by_python(words: Sequence[str], depth: int) -> Iterator[RepoPath]:
    """What `python WORDS` runs."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "-m" or (word.startswith("-") and not word.startswith("--") and word.endswith("m")):
            yield from _module(words[at + 1 :], depth)
            return
        if word in {"-c", "-"}:
            return
        at += 2 if word in _WITH_VALUE else 1
    if at < len(words):
        yield from _script(words[at])


def _module(words: Sequence[str], depth: int) -> Iterator[RepoPath]:
    if not words:
        return
    name, rest = words[0], words[1:]
    if name in _RUNS_A_PROGRAM:
        yield from _by_python(rest, depth - 1)
    elif rest and _RUNNERS.get(name) == rest[0]:
        yield from _started(["python", *rest[1:]], depth - 1)
    named = [word for word in rest if not word.startswith("-")] if name == "unittest" else []
    for word in named:
        yield from _script(word)
    dotted = [".".join(parts[: n + 1]) for parts in (word.split(".") for word in named) for n in range(len(parts))]
    for stem in (root + module.replace(".", "/") for module in (name, *dotted) for root in _ROOTS):
        yield from _paths((f"{stem}.py", f"{stem}/__main__.py"))


def _script(word: str) -> Iterator[RepoPath]:
    """A file, or a folder that is run by its `__main__.py`."""
    plain = re.sub(r"/+", "/", word)
    while plain.startswith("./"):
        plain = plain[2:]
    plain = plain.rstrip("/")
    yield from _paths((plain, f"{plain}/__main__.py" if plain and plain != "." else "__main__.py"))


def _by_shell(words: Sequence[str], depth: int) -> Iterator[RepoPath]:
    """What the commands of `sh -c TEXT` start, as far as plain words tell."""
    for at, word in enumerate(words[:-1]):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            lexer = shlex.shlex(words[at + 1], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            try:
                told = list(lexer)
            except ValueError:
                return
            part: list[str] = []
            for one in (*told, ";"):
                if one in _BREAKS:
                    yield from _started(part, depth - 1)
                    part = []
                else:
                    part.append(one)
            return


def _paths(names: Sequence[str]) -> Iterator[RepoPath]:
    for name in names:
        try:
            yield RepoPath(name)
        except UsageFault:  # leaves the repository, or is no path: nothing of ours
            continue
