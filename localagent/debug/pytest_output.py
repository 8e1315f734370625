"""Failures as pytest prints them with `--tb=long`, `short` and `line`, and its summary; `native` is CPython's form."""

import re
from collections.abc import Callable
from dataclasses import replace

from localagent.domain.traceback import ChainLink, Traceback, TracedException, TraceFrame

# one line of each side where the title is wider than the terminal; "_ _ _" stands between the frames of one failure
_SECTION = re.compile(
    r"(?:_{3,} (?P<title>.{1,400}?) _{3,}|_{1,2} (?P<wide>(?:ERROR |[\w.]*\w\[|\w{3}).{0,400}?) _{1,2})$"
)
_RULE = re.compile(r"={5,}(?: .{0,200} ={5,})?$|-{5,}(?: Captured .{0,100} -{5,})?$")
_PLACE = re.compile(
    r"(?P<file>(?:[A-Za-z]:)?[^\s:>\"'|][^:\"|]{0,1000}\.pyi?|<[\w .-]{1,80}>)"
    r":(?P<line>\d{1,9})(?::(?: (?P<rest>.*))?)?$"
)
_IN = re.compile(r"in (?P<function>[\w<>.]{1,300})$")
_DEF = re.compile(r"[> ]\s*(?:async )?def (?P<name>\w{1,200})\(")
_TYPE = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,300})(?:: (?P<message>.*))?$")
_E = re.compile(r"E(?:\s{2,}(?P<text>.*)|\s*$)")
_SUMMARY = re.compile(r"(?:FAILED|ERROR) (?P<id>\S{1,1000}?)(?: - (?P<what>.*))?$")
_NAMED = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.(?:<locals>\.)?)*[A-Z]\w*)(?:: (?P<message>.*))?$")
_MARKS = re.compile(r"[\s^~]+")
_FILE = re.compile(r'\s*File "(.{1,1000}?)", line (\d{1,9})$')
_MOST_LINES = 60
_MOST_FRAMES = 900


def is_pytest_line(line: str) -> bool:
    """Whether a line says something of a failure in pytest's own form."""
    return bool(_E.match(line) or _PLACE.match(line) or _SECTION.match(line) or _SUMMARY.match(line))


class PytestReader:
    """Takes lines one by one and hands each failure to `done`. `title`: the test whose section is being read."""

    def __init__(self, done: Callable[[Traceback], None]) -> None:
        self._done = done
        self._summaries: list[Traceback] = []
        self.title = ""
        self._clear()
        self._chain: list[TracedException] = []
        self._link = ChainLink.FIRST

    def _clear(self) -> None:
        self._frames: list[TraceFrame] = []
        self._told: list[str] = []
        self._function = self._source = ""
        self._short = False

    def feed(self, line: str) -> bool:
        """Whether the line is one of pytest's."""
        if section := _SECTION.match(line):
            self.finish()
            self.title = section["title"] or section["wide"]
            return True
        if _RULE.match(line):
            self.finish()
            self.title = ""
            return False
        if summary := _SUMMARY.match(line):
            self._summary(summary["id"], summary["what"] or "")
            return True
        if told := _E.match(line):
            if len(self._told) < _MOST_LINES:
                self._told.append(told["text"] or "")
            return True
        if place := _PLACE.match(line):
            return self._location(place["file"], int(place["line"]), (place["rest"] or "").strip())
        return self._source_line(line)

    def _source_line(self, line: str) -> bool:
        if line.startswith(">"):
            self._source = line[1:].strip() or self._source
            if found := _DEF.match(line):
                self._function = self._function or found["name"]
            return True
        if found := _DEF.match(line):  # what is shown begins with the function itself; those inside it follow
            self._function = self._function or found["name"]
            return True
        if self._short and line.startswith("    ") and self._frames and not self._frames[-1].source:
            if not _MARKS.fullmatch(line):
                self._frames[-1] = replace(self._frames[-1], source=line.strip()[:1_000])
            return True
        return False

    def _location(self, file: str, line: int, rest: str) -> bool:
        if inside := _IN.match(rest):
            if self._told:
                self._end("")
            self._short = True
            del self._frames[_MOST_FRAMES:]
            self._frames.append(TraceFrame(file=file, line=line, function=inside["function"]))
            return True
        if not rest:
            if not (self._source or self._told or self._frames):
                return False
            missing = bool(self._told) and self._told[0].startswith("fixture ")
            source = "" if missing else self._source
            del self._frames[_MOST_FRAMES:]
            self._frames.append(TraceFrame(file=file, line=line, function=self._name(), source=source))
            self._function = self._source = ""
            if missing:
                self._end("FixtureLookupError")
            return True
        frame = TraceFrame(file=file, line=line, function=self._name(), source=self._source)
        if (found := _TYPE.match(rest)) and found["message"] is None and (self._source or self._frames):
            self._frames.append(frame)
            self._end(found["type"])
            return True
        return self._line_form(frame, rest)

    def _line_form(self, frame: TraceFrame, rest: str) -> bool:
        """`path:line: KeyError: 'name'`: all there is of a failure, but for lines with `E` that say it in full."""
        named = _NAMED.match(rest)
        if place := _FILE.match(rest):  # of a text that does not parse pytest tells the place only
            self._chain.append(
                TracedException(type="SyntaxError", frames=(frame, TraceFrame(file=place[1], line=int(place[2]))))
            )
            self._told, self._frames = [], []
            self.finish()
            return True
        if named is None and not rest.startswith("assert "):
            return False
        kind = named["type"] if named else "AssertionError"
        if kind.endswith("Warning"):
            return False
        message = (named["message"] or "") if named else rest
        failed = TracedException(type=kind, message=message, frames=(frame,), link=self._link)
        self._chain.append(failed)
        self._told, self._frames = [], []
        self.finish()
        return True

    def _name(self) -> str:
        """The function of a frame: the last one defined above it, the test's own for the first frame."""
        return self._function or ("" if self._frames else self.title.rsplit(".", 1)[-1].split("[", 1)[0].split(" ")[-1])

    def _end(self, kind: str) -> None:
        """One exception is complete: frames, and what the lines with `E` say."""
        self._take_syntax_error()
        first = self._told[0] if self._told else ""
        named = _NAMED.match(first)
        if not kind and named is not None:
            kind = named["type"]
        message = first
        if named is not None and named["type"].rsplit(".", 1)[-1] == kind.rsplit(".", 1)[-1]:
            kind, message = named["type"], named["message"] or ""
        kind = kind or ("AssertionError" if first.startswith("assert") else "")
        message = "\n".join((message, *self._told[1:])).rstrip()[:4_000]
        if self._frames or kind:
            self._chain.append(
                TracedException(
                    type=kind, message=message, frames=tuple(self._frames), link=self._link, complete=bool(kind)
                )
            )
        self._link = ChainLink.FIRST
        self._clear()

    def _take_syntax_error(self) -> None:
        """The place that a syntax error names among the lines with `E`."""
        for at, text in enumerate(self._told):
            if found := _FILE.match(text):
                source = self._told[at + 1].strip() if at + 1 < len(self._told) else ""
                self._frames.append(TraceFrame(file=found[1], line=int(found[2]), source=source))
                self._told = [t for t in self._told[at + 2 :] if not _MARKS.fullmatch(t) and t]
                return

    def chained(self, link: ChainLink) -> bool:
        """A line between two exceptions of a chain; whether there is one of pytest's own before it."""
        if self._told:
            self._end("")
        if not self._chain:
            return False
        self._link = link
        return True

    def finish(self) -> None:
        """Nothing more belongs to the failure that is being read."""
        if self._frames or self._told:
            self._end("")
        if self._chain and any(e.frames for e in self._chain):
            self._done(Traceback(exceptions=tuple(self._chain), title=self.title))
        self._chain = []
        self._link = ChainLink.FIRST
        self._clear()

    def _summary(self, test: str, what: str) -> None:
        self.finish()
        named = _NAMED.match(what)
        kind = named["type"] if named else "AssertionError" if what.startswith("assert") else ""
        if kind and len(self._summaries) < 200:
            message = (named["message"] or "") if named else what
            failed = TracedException(type=kind, message=message, complete=False)
            self._summaries.append(Traceback(exceptions=(failed,), title=test))

    def summaries(self) -> tuple[Traceback, ...]:
        """What the short summary says of failures: types and messages without frames."""
        return tuple(self._summaries)
