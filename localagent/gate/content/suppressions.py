"""Gate: comments that tell a tool to look away (`noqa`, `type: ignore`), texts for machines, and for shells.

Excuses are counted in changed lines before and after, so code with its excuse may move within them. A repair's own
comments count the same.
"""

import re
from collections import Counter
from collections.abc import Iterator

from localagent.domain.gate import Decision, Finding
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission, Policy
from localagent.gate.content.prompt_injection import INJECTION, first_line, spoken_in
from localagent.gate.content.shell_payloads import SHELLED, shelled_in
from localagent.gate.core.gate_input import GateInput, Touched
from localagent.gate.core.rule import became, decide, question
from localagent.text.visible_text import shortened

_F = "def f(x):\n    return x\n"

EXCUSE = question(
    id="excuse-added",
    why="a tool that is told to look away finds nothing",
    remedy="mend what the tool found; where it is wrong, have a person add the comment",
    match=tuple(
        became(_F, f"def f(x):\n    return x  {comment}\n")
        for comment in (
            "# noqa", "# noqa: S602", "#nosec B101", "# type: ignore", "# type: ignore[arg-type]", "# noqa: E501, S602",
            "# pragma: no cover", "# ruff: noqa", "# pylint: disable=all", "# mypy: ignore-errors", "# pyright: ignore",
            "# why; # NOQA", "# flake8: noqa",
        )
    ),
    not_match=(
        became(_F, "def f(x):\n    return -x  # never ignore the sign\n"),
        became("def f(x):\n    return x  # noqa\n", "def f(x):\n    return -x  # noqa\n"),
        became(_F, "def f(x):\n    return 'noqa', x\n"),
    ),
)  # fmt: skip
RULES = (EXCUSE, INJECTION, SHELLED)
_EXCUSE = re.compile(
    rb"(?i)\b(noqa|nosec|type:\s*ignore|pragma:\s*no\s*(?:cover|branch)|(?:pylint|pyre|bandit|semgrep|sonar)\s*:\s*disable"
    rb"|mypy:\s*(?:ignore|disable|allow)|pyright:\s*(?:ignore|basic|false)|(?:ruff|flake8)\s*:\s*noqa|pyre-(?:ignore|fixme)"
    rb"|nosemgrep|nosem|nosonar|isort:\s*skip|lgtm|noinspection|skipcq|no\s+mutate"
    rb"|(?:pytype|codespell|bandit|checkov|autopep8|yapf|coverage|cov|hadolint|gitleaks|trufflehog|snyk|lint|pydocstyle|vulture"
    rb"|deepsource|sourcery|dlint|pyre|semgrep|sonar|mypy|pycodestyle|pep8|pycln|autoflake|refurb|black|detect-secrets|pragma|ty|basedpyright"
    rb"|pysa|codeql|kics|trivy|dodgy|prospector|flake8|ruff|pyflakes)"
    rb"\s*[:=-]?\s*(?:skip|ignore|disable|allow(?:list)?|off|exclude|no\s*cover|nostatement|suppress)[\w -]*)"
)
# Named findings of linters' rules of layout, names, imports and docstrings. Not of type checkers: `verify` asks one.
_NARROW = re.compile(
    rb"(?i:noqa)\s*:\s*(?:E[1257]\d\d|W[1-36]\d\d|D\d{3}|N8\d\d|I00\d|F401|UP\d{3}|Q00\d|COM8\d\d)"
    rb"(?![\w, ]*[,\s]+[A-Z]+\d)"
)


class Excuses:
    """Refuses new excuses."""

    name = "excuses"

    def __init__(self, policy: Policy, *, in_repairs: bool = True) -> None:
        self._routine = not in_repairs and policy.patches.routine is Permission.ALLOW

    def review(self, change: GateInput) -> Decision:
        """Deny if changed lines hold more excuses than they did, or speak to machines, in whatever text file."""
        found: list[Finding] = []
        for file in change.changes:
            for touched in change.touched[file.path]:
                found += _texts(file.path, touched, change.touched[file.path])
                if file.path.is_python and b"#" in touched.new:
                    found += [f for f, hit in _excused(file.path, touched) if not (self._routine and _is_narrow(hit))]
        return decide(self.name, found)


def _texts(path: RepoPath, touched: Touched, others: list[Touched]) -> Iterator[Finding]:
    """The first text that speaks to a machine and the first command line that a stretch adds, each at its line."""
    lines = touched.new.split(b"\n")
    spoken = (
        (said, first_line(lines, said)) for said in Counter(spoken_in(touched.new)) - Counter(spoken_in(touched.old))
    )
    for said, at in spoken:
        if not _is_moved(lines[at : at + 1 + said.count("\n")], said.encode(), others):
            yield INJECTION.finding(path, touched.line + at, f"speaks to a machine: {shortened(ascii(said), 62)}")
            break
    commands = Counter(shelled_in(touched.new)) - Counter(shelled_in(touched.old))
    for command in commands:
        at = next((n for n, line in enumerate(lines) if command in shelled_in(line)), 0)
        if not _is_moved(lines[at : at + 1], command.encode(), others):
            yield SHELLED.finding(path, touched.line + at, f"a command line as a text: {command!a}")
            break


def _is_moved(lines: list[bytes], text: bytes, touched: list[Touched]) -> bool:
    """Whether whole lines that hold a text stand in the file as often as before: they only moved."""
    block = b"\n".join(line.strip() for line in lines)
    if b"".join(text.split()).lower() not in b"".join(block.split()).lower():
        return False  # spread over other lines
    stood = [b"\n" + b"\n".join(line.strip() for line in t.old.split(b"\n")) + b"\n" for t in touched]
    stands = [b"\n" + b"\n".join(line.strip() for line in t.new.split(b"\n")) + b"\n" for t in touched]
    whole = b"\n" + block + b"\n"
    return sum(t.count(whole) for t in stands) <= sum(t.count(whole) for t in stood)


def _excused(path: RepoPath, touched: Touched) -> Iterator[tuple[Finding, re.Match[bytes]]]:
    spare = Counter(_kind(hit) for hit in _excuses(touched.old))
    for hit in _excuses(touched.new):
        spare[_kind(hit)] -= 1
        if spare[_kind(hit)] < 0:
            line = touched.line + touched.new.count(b"\n", 0, hit.start())
            yield EXCUSE.finding(path, line, f"newly introduced: {_kind(hit)}"), hit


def _is_narrow(hit: re.Match[bytes]) -> bool:
    """An excuse that names what a checker of style found in its line: no gate and no check of ours heeds it."""
    return _NARROW.match(hit.string, hit.start()) is not None


def _excuses(text: bytes) -> Iterator[re.Match[bytes]]:
    """Every excuse behind a `#` of its line."""
    for hit in _EXCUSE.finditer(text):
        start = text.rfind(b"\n", 0, hit.start()) + 1
        if text.find(b"#", start, hit.start()) >= 0:
            yield hit


def _kind(hit: re.Match[bytes]) -> str:
    return re.sub(r"\s+", " ", hit[1].decode("ascii", "replace").lower())
