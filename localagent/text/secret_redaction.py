"""What a program printed, made fit to be read by a person or a model: secrets replaced, controls shown as escapes.

Secrets are found by the format of common tokens, as private key blocks, and as values that the caller holds (canaries).
They are looked for in what a reader would see, with the controls between their characters left out, and once more in
what is shown. Laws, tested: sanitizing twice is sanitizing once; no control character but newline and tab comes out; a
canary or a token of a known format does not come out.

Not promised: a program that holds a secret and encodes it in a way of its own gets it out. What is secret must not be
shown to a jail; this is the second line.
"""

import base64
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum

from localagent.text.escaping import SWALLOWED, escaped, is_plain, unplain

SHORTEST_CANARY = 8
_ENCODED_AT_LEAST = 12


class SecretKind(StrEnum):
    """What was replaced; the KIND of `[redacted:KIND]`."""

    PRIVATE_KEY = "private-key"
    AWS_KEY = "aws-key"
    GITHUB_TOKEN = "github-token"  # noqa: S105 - a name, as those below
    GITLAB_TOKEN = "gitlab-token"  # noqa: S105
    SLACK_TOKEN = "slack-token"  # noqa: S105
    GOOGLE_KEY = "google-key"
    STRIPE_KEY = "stripe-key"
    API_KEY = "api-key"
    PACKAGE_INDEX_TOKEN = "package-index-token"  # noqa: S105
    JSON_WEB_TOKEN = "json-web-token"  # noqa: S105
    URL_PASSWORD = "url-password"  # noqa: S105
    BEARER_TOKEN = "bearer-token"  # noqa: S105
    ENVIRONMENT = "environment"
    CREDENTIAL_FILE = "credential-file"


# Each takes time linear in the text, whatever the text: where one may begin again and again, it must not look far.
# What a group holds is replaced, the whole match where there is none.
_PATTERNS: tuple[tuple[SecretKind, re.Pattern[str]], ...] = (
    (
        SecretKind.PRIVATE_KEY,
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
            r"[\s\S]*?(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
    ),
    (SecretKind.AWS_KEY, re.compile(r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}")),
    (SecretKind.GITHUB_TOKEN, re.compile(r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255}")),
    (SecretKind.GITLAB_TOKEN, re.compile(r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_-]{20,255}")),
    (SecretKind.SLACK_TOKEN, re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[0-9]-[A-Za-z0-9-]{10,255}")),
    (SecretKind.GOOGLE_KEY, re.compile(r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,1024}")),
    (SecretKind.STRIPE_KEY, re.compile(r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9]{24,255}")),
    (SecretKind.PACKAGE_INDEX_TOKEN, re.compile(r"pypi-[A-Za-z0-9_-]{50,1024}|npm_[A-Za-z0-9]{36}")),
    (SecretKind.API_KEY, re.compile(r"(?<![A-Za-z])sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,255}")),
    (
        SecretKind.JSON_WEB_TOKEN,
        re.compile(r"eyJ(?:(?!eyJ)[A-Za-z0-9_-]){8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,4096}"),
    ),
    (SecretKind.URL_PASSWORD, re.compile(r"://([^\s/:@\[\]]{0,128}:[^\s/@\[\]]{3,256})@")),
    (
        SecretKind.BEARER_TOKEN,
        re.compile(r"\b(?:[Bb]earer|[Tt]oken|BEARER|TOKEN) ((?=[A-Za-z]{0,64}[0-9])[A-Za-z0-9_.~+/=-]{24,4096})"),
    ),
)
_MARKS = tuple(f"[redacted:{kind}]" for kind in SecretKind)
_MARK = re.compile("|".join(map(re.escape, _MARKS)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sanitized:
    """Text that may be read. `redacted` counts replacements by kind, `escaped` the characters shown as escapes."""

    text: str
    redacted: Mapping[SecretKind, int] = field(default_factory=dict)
    escaped: int = 0


class Sanitizer:
    """Holds the caller's canaries, never shows them. Values shorter than eight characters are no canaries."""

    def __init__(self, canaries: Iterable[tuple[str, SecretKind]] = ()) -> None:
        words: dict[str, SecretKind] = {}
        for value, kind in canaries:
            for run in _runs(value):
                words.setdefault(run, kind)
                for form in _forms(run):
                    words.setdefault(form, kind)
        self._kinds = words

    def clean(self, chunks: Iterable[bytes]) -> Sanitized:
        r"""One stream's bytes, in however many chunks, as one text. What is no UTF-8 is shown as `\xNN`."""
        return self.clean_text(b"".join(chunks).decode("utf-8", "surrogateescape"))

    def clean_text(self, text: str) -> Sanitized:
        """The same for text."""
        counts: Counter[SecretKind] = Counter()
        bare = self._settled(text, counts)
        if not (unseen := unplain(bare)):
            return Sanitized(text=bare, redacted=dict(counts))
        bare = self._cut(bare, _on_screen(bare, unseen), counts)
        bare = self._cut(bare, _without_controls(bare, unseen), counts)
        shown, many = escaped(bare)
        return Sanitized(text=self._settled(shown, counts), redacted=dict(counts), escaped=many)

    def _settled(self, text: str, counts: Counter[SecretKind]) -> str:
        """Until nothing is found: what stood before a secret may have kept the next one from being seen."""
        while True:
            before = sum(counts.values())
            text = self._redacted(text, counts)
            if sum(counts.values()) == before:
                return text

    def _redacted(self, text: str, counts: Counter[SecretKind]) -> str:
        return self._cut(text, range(len(text)), counts)

    def _cut(self, text: str, places: Sequence[int], counts: Counter[SecretKind]) -> str:
        """`text` without the secrets found in its characters at `places`, nor what stands between their characters."""
        view = text if len(places) == len(text) else "".join(text[place] for place in places)
        out: list[str] = []
        at = 0
        for start, end, kind in self._found(view):
            first, last = places[start], places[end - 1] + 1
            if first >= at:
                out += (text[at:first], f"[redacted:{kind}]")
                counts[kind] += 1
                at = last
        return "".join((*out, text[at:]))

    def _found(self, text: str) -> list[tuple[int, int, SecretKind]]:
        """Spans of secrets, the earliest and longest first, none of them within one of our own marks."""
        spans: list[tuple[int, int, SecretKind]] = []
        for word, kind in self._kinds.items():  # a search each: quicker than one expression of all of them
            at = text.find(word)
            while at >= 0:
                spans.append((at, at + len(word), kind))
                at = text.find(word, at + 1)
        for kind, pattern in _PATTERNS:
            spans += [(*m.span(pattern.groups), kind) for m in pattern.finditer(text)]
        if not spans:
            return []
        marks = [m.span() for m in _MARK.finditer(text)]
        begins = [first for first, _ in marks]

        def in_mark(start: int, end: int) -> bool:
            at = bisect_right(begins, start) - 1
            return at >= 0 and end <= marks[at][1]

        whole = [span for span in spans if not in_mark(span[0], span[1])]
        return sorted(whole, key=lambda span: (span[0], -span[1]))


def _on_screen(text: str, unseen: Set[str]) -> Sequence[int]:
    """The places of the characters that a terminal would show: without its control sequences."""
    kept: list[int] = []
    at = 0
    for match in (*SWALLOWED.finditer(text), None):
        end = len(text) if match is None else match.start()
        kept += [place for place in range(at, end) if text[place] not in unseen]
        at = len(text) if match is None else match.end()
    return kept


def _without_controls(text: str, unseen: Set[str]) -> Sequence[int]:
    """The places of the characters that are shown as they are."""
    return [place for place, character in enumerate(text) if character not in unseen]


def _runs(value: str) -> list[str]:
    """The pieces of a value that come out unaltered: without brackets (they delimit marks), controls and line ends."""
    pieces = "".join(c if is_plain(c) and c not in "[]\n\t" else "\n" for c in value).split("\n")
    stripped = (piece.strip() for piece in pieces)
    return [p for p in stripped if len(p) >= SHORTEST_CANARY and not any(p in mark for mark in _MARKS)]


def _forms(word: str) -> list[str]:
    """The usual encodings of a word, where they are long enough to be told from chance."""
    data = word.encode("utf-8", "surrogateescape")
    forms = [data.hex(), data.hex().upper(), _percent(data)]
    for shift in range(3):  # base64 differs with what stands before: the middle is the same for each of three places
        middle = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")[(0, 2, 3)[shift] : -1]
        forms += [middle, middle.replace("+", "-").replace("/", "_")]
    return [form for form in forms if len(form) >= _ENCODED_AT_LEAST and not any(form in mark for mark in _MARKS)]


def _percent(data: bytes) -> str:
    """As in an address: letters, digits and `-._~` as they are."""
    return "".join(chr(b) if chr(b).isascii() and (chr(b).isalnum() or b in b"-._~") else f"%{b:02X}" for b in data)
