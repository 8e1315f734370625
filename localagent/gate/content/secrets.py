"""Gate: secrets that a change brings in: keys, tokens, passwords in texts.

Looks at changed lines alone; what stood anywhere in the changed files before is not new. Messages show the first
characters at most. Texts put together from constants are read whole. Not seen: other encodings, and what is too
much like words.
"""

import ast
import contextlib
import math
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.bindings import settings
from localagent.code.regions import DoesNotParse, UnitSource
from localagent.code.string_folding import texts_of
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import ChangedRegion, GateInput, Touched
from localagent.gate.core.rule import Rule, RuleExample, became, decide
from localagent.text.secret_names import SENSITIVE_NAME

_F = "def f(x):\n    return x\n"
_B = "".join(("AK", "IA"))  # put together here, so that no scanner takes an example for a leak

KEY = Rule(
    id="secret-private-key",
    severity=Severity.HIGH,
    why="a private key that was in a repository is known to all who read it",
    remedy="take it out, make a new key, and read it from outside the repository",
    match=tuple(
        became(_F, f"{_F}K = '-----BEGIN {kind}PRIVATE" + " KEY-----'\n") for kind in ("", "RSA ", "OPENSSH ", "EC ")
    ),
    not_match=(became(_F, f"{_F}K = '-----BEGIN PUBLIC KEY-----'\n"),),
)
TOKEN = Rule(
    id="secret-token",
    severity=Severity.HIGH,
    why="a token of a known service opens that service to all who read it",
    remedy="take it out, have the service make a new one, and read it from outside the repository",
    match=tuple(
        became(_F, f"{_F}K = '{token}'\n")
        for token in (
            _B + "Q3EGRZ7LNXU5T2WP",
            "gh" + "p_" + "x7Kd92LmQp4VtRz8Ys1NcBf6Ha3We5Tg0UjE",
            "glp" + "at-" + "x7Kd92LmQp4VtRz8Ys1N",
            "xo" + "xb-" + "2837465910-x7Kd92LmQp4VtRz8",
            "sk_" + "live_" + "x7Kd92LmQp4VtRz8Ys1NcBf6",
            "AI" + "za" + "SyD7Kd92LmQp4VtRz8Ys1NcBf6Ha3We5Tg0",
            "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.x7Kd92LmQp4VtRz8Ys1NcBf6Ha3We5Tg0",
            "https://deploy:" + "x7Kd92LmQp4" + "@git.corp.net/a",
            "gh' + 'p_" + "x7Kd92LmQp4VtRz8' + 'Ys1NcBf6Ha3We5Tg0UjE",
        )
    ),
    not_match=(
        became(_F, f"{_F}K = 'AKIA'\n"),
        became(_F, f"{_F}K = 'https://user:password@example.org/'\n"),
        became(f"K = '{_B}Q3EGRZ7LNXU5T2WP'\n", f"L = 1\nK = ['{_B}Q3EGRZ7LNXU5T2WP']\n"),
    ),
)
ASSIGNED = Rule(
    id="secret-assigned",
    severity=Severity.HIGH,
    why="a text without order under a secret's name is most likely a secret",
    remedy="read it from the environment or a secret store; an example should say that it is one",
    match=(
        became(_F, f"{_F}PASSWORD = 'tR7#kq92Lm!vX'\n"),
        became(_F, f"{_F}C = {{'api_key': 'b7d2f90a4c6e81357f9ad2c4'}}\n"),
        became(_F, "def f(x):\n    return x.login(secret_token='q8Zr-31xPv7Lt0Wm')\n"),
        became(_F, f"{_F}PASSWORD = ''.join(['tR7#k', 'q92Lm!vX'])\n"),
        RuleExample(path="pkg/mod.py", before=_F, after=f"{_F}# db_password: 'tR7#kq92Lm!vX'\n"),
    ),
    not_match=(
        became(_F, f"{_F}PASSWORD = 'changeme-please'\n"),
        became(_F, f"{_F}PASSWORD_FIELD = 'password_confirmation'\n"),
        became(_F, "import os\ndef f(x):\n    return os.environ['API_KEY_OF_SERVICE']\n"),
        became(_F, f"{_F}TOKEN_URL = 'https://login.example.org/oauth2/token'\n"),
        became(_F, f"{_F}api_key = '<your-api-key-here-1234>'\n"),
    ),
)
RULES = (KEY, TOKEN, ASSIGNED)

_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[0-9A-Za-z]{30,251}|github_pat_[0-9A-Za-z_]{22,255}"
    rb"|glpat-[0-9A-Za-z_-]{20,64}|xox[abposr]-[0-9A-Za-z-]{15,250}|[sr]k_live_[0-9A-Za-z]{16,128}"
    rb"|AIza[0-9A-Za-z_-]{35}|npm_[0-9A-Za-z]{36}|pypi-AgEI[0-9A-Za-z_-]{50,255}|SG\.[\w-]{16,64}\.[\w-]{16,64}"
    rb"|sk-(?:ant-|proj-)?[0-9A-Za-z_-]{32,200}|hf_[0-9A-Za-z]{30,64}|dop_v1_[0-9a-f]{64}|AccountKey=[0-9A-Za-z+/=]{40,128}"
    rb"|eyJ[0-9A-Za-z_-]{10,2000}\.eyJ[0-9A-Za-z_-]{10,4000}\.[0-9A-Za-z_-]{16,2000})(?![0-9A-Za-z])"
)
_IN_URL = re.compile(rb"[a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{1,100}:([^\s/:@'\"]{4,200})@(?!example\.)")
_ASSIGNED = re.compile(
    rb"(?i)(?:" + SENSITIVE_NAME.encode() + rb"|pwd|token|access_?key|auth_?key)[a-z0-9_]{0,40}['\"]?\]?\s{0,8}"
    rb"(?::[ \w\[\]|.]{0,40}=|:=|=>|=|:)\s{0,8}(?:[rRbBuUfF]{0,2})(['\"])([^'\"\n]{8,400})\1"
)
_ANY = re.compile(
    rb"(?i)-----BEGIN|AKIA|ASIA|gh[pousr]_|github_pat|glpat-|xox[abposr]-|k_live_|AIza|npm_|pypi-|SG\.|sk-|hf_|dop_v1"
    rb"|accountkey|eyJ|://|pwd|token|access_?key|_key|auth_?key|" + SENSITIVE_NAME.encode()
)
_PLACEHOLDER = re.compile(
    rb"(?i)^(?:<.*>|\$\{?.*|\{.*\}|%.*%?|x+|\*+|\.+)$|example|change-?_?me|placeholder|dummy|your[-_ ]|redacted|insert"
    rb"|todo|fixme|sample|not-?a-?real|fake|https?://|[ ]|^(?:password|passwd|pass|pwd|secret|token)\d{0,3}$"
)
_LEAST_BITS = 3.0
_LEAST_TOKEN = 16
_PIECES = (ast.BinOp, ast.JoinedStr, ast.Call, ast.Subscript, ast.Constant)


class Secrets:
    """Refuses new secrets."""

    name = "secrets"

    def __init__(self, _policy: Policy) -> None:
        pass

    def review(self, change: GateInput) -> Decision:
        """Deny if a changed line holds a secret that stood in no changed file before."""
        found: list[Finding] = []
        for source in change.sources_changed:
            with contextlib.suppress(DoesNotParse):  # refused by another gate
                found += [finding for region in change.regions_of(source) for finding in _joined(region)]
        for file in change.changes:
            for touched in change.touched[file.path]:
                if not _ANY.search(touched.new):
                    continue
                for rule, at, secret in _secrets(touched):
                    if not any(secret in other.before for other in change.changes):
                        line = touched.line + touched.new.count(b"\n", 0, at)
                        found.append(rule.finding(file.path, line, f"newly introduced: {_hidden(secret)}"))
        return decide(self.name, found)


def _joined(region: ChangedRegion) -> Iterator[Finding]:
    """Tokens and keys that are put together from pieces, which no line shows whole."""
    text = region.near.after.text
    if "+" not in text and "join" not in text and "'" not in text and '"' not in text:
        return
    had = _texts_before(region.near.before) if region.near.before else set()
    for whole, node in _whole_texts(region.near.after):
        data = whole.encode("utf-8", "replace")
        if whole not in had and data not in region.file.source and (_KEY.search(data) or _TOKEN.search(data)):
            rule = KEY if _KEY.search(data) else TOKEN
            yield rule.finding(region.path, region.near.after.line_of(node), f"put together: {_hidden(data)}")
        elif whole not in had and (hit := _ASSIGNED.search(data)) and _is_secret(hit[2]):
            yield ASSIGNED.finding(region.path, region.near.after.line_of(node), f"put together: {_hidden(hit[2])}")


def _texts_before(snippet: UnitSource) -> set[str]:
    if "whole-texts" not in snippet.memo:
        snippet.memo["whole-texts"] = {whole for whole, _ in _whole_texts(snippet)}
    kept: set[str] = snippet.memo["whole-texts"]
    return kept


def _whole_texts(snippet: UnitSource) -> Iterator[tuple[str, ast.AST]]:
    """Texts that an expression of several parts comes to, and adjacent ones that the parser joined."""
    for node in snippet.nodes:
        if isinstance(node, _PIECES):
            yield from ((text, node) for text in texts_of(node) or () if len(text) >= _LEAST_TOKEN)
        for name, value in settings(node):
            if isinstance(value, _PIECES):
                yield from ((f"{name} = '{text}'", node) for text in texts_of(value) or ())


def _secrets(touched: Touched) -> Iterator[tuple[Rule, int, bytes]]:
    text = touched.new
    for hit in _KEY.finditer(text):
        yield KEY, hit.start(), text[hit.start() : hit.end() + 80]
    taken: list[tuple[int, int]] = []
    for hit in _TOKEN.finditer(text):
        taken.append(hit.span())
        yield TOKEN, hit.start(), hit[0]
    for hit in _IN_URL.finditer(text):
        if not _PLACEHOLDER.search(hit[1]) and _bits(hit[1]) >= 2.0:
            yield TOKEN, hit.start(), hit[0]
    for hit in _ASSIGNED.finditer(text):
        value = hit[2]
        known = any(start < hit.end(2) and hit.start(2) < end for start, end in taken)
        if not known and _is_secret(value):
            yield ASSIGNED, hit.start(), value


def _is_secret(value: bytes) -> bool:
    return not _PLACEHOLDER.search(value) and _bits(value) >= _LEAST_BITS and not _wordlike(value)


def _bits(value: bytes) -> float:
    """Shannon entropy of the bytes, a byte."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


def _wordlike(value: bytes) -> bool:
    """Words joined by `_`, `-` or dots: a name, not a secret."""
    return re.fullmatch(rb"[A-Za-z]+(?:[-_./]{1,2}[A-Za-z]+)*\d{0,2}", value) is not None


def _hidden(secret: bytes) -> str:
    shown = secret[:4].decode("ascii", "replace")
    return f"{shown!r}… ({len(secret)} characters)"


def holds_secret(text: bytes) -> bool:
    """Whether anything in a text looks like a secret."""
    return bool(_ANY.search(text)) and next(_secrets(Touched(old=b"", new=text, line=1)), None) is not None
