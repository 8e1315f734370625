"""Gate: how much a repair may change. Cheap: looks at bytes, parses nothing."""

import difflib
from collections.abc import Iterator

from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.gate.core.gate_input import GateInput, ReplacedBytes
from localagent.gate.core.rule import Rule, RuleExample, became, decide
from localagent.text.byte_diff import changed_span

_MOST_COMPARED_LINES = 20_000
_LINES = "".join(f"x{n} = {n}\n" for n in range(100))
_THIRDS = tuple(
    "".join(f"x{n} = {n + (n % 3 == new)}\n" for n in range(400)) for new in (3, 0)
)  # 134 places between them

FILES = Rule(
    id="size-files",
    severity=Severity.MEDIUM,
    why="a repair of many files is not a small one",
    remedy="split the patch",
    match=(RuleExample(before="x = 1\n", after="x = 2\n", files="4"),),
    not_match=(became("x = 1\n", "x = 2\n"),),
)
HUNKS = Rule(
    id="size-hunks",
    severity=Severity.MEDIUM,
    why="a repair of many places is not a small one",
    remedy="split the patch",
    match=(became(_THIRDS[0], _THIRDS[1]),),
    not_match=(
        became(_LINES, _LINES.replace("x0 = 0", "x0 = 1").replace("x99 = 99", "x99 = 98")),
        became(_LINES, _LINES.replace("x1", "y1")),
    ),
)
LINES = Rule(
    id="size-lines",
    severity=Severity.MEDIUM,
    why="a repair of many lines is not a small one",
    remedy="split the patch",
    match=(became("x = 1\n", _LINES), became(_LINES, "x = 1\n")),
    not_match=(became(_LINES, _LINES.replace("x0 = 0", "x0 = 1").replace("x99 = 99", "x99 = 98")),),
)
BYTES = Rule(
    id="size-bytes",
    severity=Severity.MEDIUM,
    why="a repair that adds or removes much text is not a small one",
    remedy="split the patch; data belongs in files of its own",
    match=(became("x = ''\n", f"x = '{'a' * 20_000}'\n"),),
    not_match=(became("x = ''\n", f"x = '{'a' * 200}'\n"),),
)
FILE = Rule(
    id="size-file",
    severity=Severity.MEDIUM,
    why="a file so large is not read as source",
    remedy="split the file, or raise the policy's size.max_file_bytes",
    match=(became("x = 1\n" * 700_000, "x = 2\n" + "x = 1\n" * 699_999),),
    not_match=(became("x = 1\n" * 1000, "x = 2\n" + "x = 1\n" * 999),),
)
RULES = (FILES, HUNKS, LINES, BYTES, FILE)


class Size:
    """Refuses what is larger than the policy allows."""

    name = "size"

    def __init__(self, policy: Policy) -> None:
        self._most = policy.size

    def review(self, change: GateInput) -> Decision:
        """Deny if files, lines, bytes or a whole file are over their limits."""
        most, files = self._most, change.changes
        found: list[Finding] = []
        if len(files) > most.max_files:
            found.append(FILES.finding(None, 0, f"{len(files)} files changed, at most {most.max_files}"))
        for file in files:
            if max(len(file.before), len(file.after)) > most.max_file_bytes:
                found.append(FILE.finding(file.path, 0, f"larger than {most.max_file_bytes:,} bytes"))
        if found:
            return decide(self.name, found)
        hunks = sum(_hunks(file, change.spans[file.path], most.max_hunks, told=bool(change.entries)) for file in files)
        if hunks > most.max_hunks:
            found.append(HUNKS.finding(None, 0, f"{hunks} places changed, at most {most.max_hunks}"))
        if change.entries:  # a patch that says its lines; comparing hostile texts could take for ever
            sizes = [_span_size(file, change.spans[file.path]) for file in files]
            return decide(self.name, [*found, *self._over(sizes)])
        sizes = [_spanned(file, change.spans[file.path]) for file in files]
        if sum(s[0] for s in sizes) > most.max_changed_lines or sum(s[1] for s in sizes) > most.max_changed_bytes:
            sizes = [_changed(file, change.spans[file.path]) for file in files]
        return decide(self.name, [*found, *self._over(sizes)])

    def _over(self, sizes: list[tuple[int, int]]) -> Iterator[Finding]:
        most, lines, size = self._most, sum(s[0] for s in sizes), sum(s[1] for s in sizes)
        if size > most.max_changed_bytes:
            yield BYTES.finding(None, 0, f"{size:,} bytes changed, at most {most.max_changed_bytes:,}")
        if lines > most.max_changed_lines:
            yield LINES.finding(None, 0, f"{lines} lines changed, at most {most.max_changed_lines}")


def _span_size(file: FileChange, spans: list[ReplacedBytes]) -> tuple[int, int]:
    """Lines and bytes of spans that are whole lines."""
    lines = size = 0
    for start, end, text in spans:
        gone = file.before.count(b"\n", start, end) + (end > start and file.before[end - 1 : end] != b"\n")
        come = text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
        lines += max(gone, come)
        size += max(end - start, len(text))
    return lines, size


def _hunks(file: FileChange, spans: list[ReplacedBytes], most: int, *, told: bool) -> int:
    """The changed places of a file: as a patch tells them, else counted where there is room for more than `most`."""
    lines = sum(max(file.before.count(b"\n", s.start, s.end), s.text.count(b"\n")) + 1 for s in spans)
    if told or lines < 2 * most or lines > _MOST_COMPARED_LINES:
        return len(spans)
    start, end, new_end = changed_span(file.before, file.after)
    old, new = (t.splitlines(keepends=True) for t in (file.before[start:end], file.after[start:new_end]))
    opcodes = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    return max(len(spans), sum(tag != "equal" for tag, *_ in opcodes))


def _spanned(file: FileChange, spans: list[ReplacedBytes]) -> tuple[int, int]:
    """Lines and bytes from the first difference to the last of each span: never less than what changed."""
    lines = sum(max(file.before.count(b"\n", s.start, s.end), s.text.count(b"\n")) + 1 for s in spans)
    return lines, sum(max(s.end - s.start, len(s.text)) for s in spans)


def _changed(file: FileChange, spans: list[ReplacedBytes]) -> tuple[int, int]:
    """Changed lines and bytes; what stays the same between two far-apart edits is not counted."""
    start, end, new_end = changed_span(file.before, file.after)
    old, new = (t.splitlines(keepends=True) for t in (file.before[start:end], file.after[start:new_end]))
    if len(old) + len(new) > _MOST_COMPARED_LINES:
        return _spanned(file, spans)
    lines = size = 0
    for tag, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if tag != "equal":
            lines += max(b - a, d - c)
            size += max(sum(map(len, old[a:b])), sum(map(len, new[c:d])))
    return lines, size
