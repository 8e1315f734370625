"""Old against new as text for a person: the table of changed behaviour, from the report's JSON.

Calls and answers are shown shortened. Where two answers are equal as far as they are shown, the part that differs is
shown; differences that read alike all the same are one line, with how many there are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from localagent.text.visible_text import ends, one_line

_BEFORE = 12  # characters that are shown in front of the first one that differs


def near_lines(near: Mapping[str, Any], *, most: int, whole: bool = False, all_by: str = "") -> Iterator[str]:
    """At most so many changes; `all_by` are the options that show all of them.

    `whole`: for whom this is the answer: wider, with notes and where inputs come from.
    """
    if whole:
        yield from (f"old against new: {one_line(note, 500)}" for note in near["notes"])
    if not near["functions"]:
        return
    many = len(near["functions"])
    of_whom = f" to {many} function{'s' * (many != 1)}" if whole else ""
    demanded = f", {near['demanded']} differ as the repaired tests require" if near["demanded"] else ""
    others = len(near["differences"]) + near["differences_left_out"]
    other = "other " if near["demanded"] else ""
    explained = f" ({near['explained']} explained by these)" if near.get("explained") else ""
    yield f"old against new: {near['inputs']} inputs{of_whom}{demanded}, {others} {other}differences{explained}"
    yield from (f"  {_function_change(change)}" for change in near.get("function_changes", ()))
    lines, told = merged(_difference(one, whole=whole) for one in near["differences"])
    yield from lines[:most]
    if others > (shown := sum(told[:most])):
        yield f"  and {others - shown} more" + (f" ({all_by})" if all_by else "")
    broken, _ = merged(_broken(one, whole=whole) for one in near["broken_properties"])
    yield from broken if whole else broken[:most]


def merged(lines: Iterable[str]) -> tuple[list[str], list[int]]:
    """The lines in order, no two alike, each with how many read so; and these numbers."""
    found = Counter(lines)
    return [text + (f"  (and {n - 1} alike)" if n > 1 else "") for text, n in found.items()], list(found.values())


def _difference(told: Mapping[str, Any], *, whole: bool) -> str:
    call, answer = (110, 60) if whole else (90, 50)
    origin = f"  [{told['origin']}]" if whole else ""
    crash = "  [crash]" if told["crash"] else ""
    explained = "  [explained]" if whole and told.get("explained") else ""
    old, new = answers(told["old"], told["new"], answer)
    return f"  {ends(told['call'], call)}: {old} -> {new}{origin}{crash}{explained}"


def answers(old: str, new: str, most: int) -> tuple[str, str]:
    """Two answers, shortened so that they do not read alike where they are not."""
    shown = ends(old, most), ends(new, most)
    if old == new:
        return shown[0], f"{shown[1]} (the difference is not visible in the text)"
    if shown[0] != shown[1]:
        return shown
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = max(0, alike - _BEFORE)
    mark = "…" if start else ""
    return mark + one_line(old[start:], most), mark + one_line(new[start:], most)


def _function_change(told: Mapping[str, Any]) -> str:
    if told["parameter"]:
        return f"the argument {told['parameter']!r} of {told['function']} no longer matters"
    return f"{told['function']} returns the same for every input"


def _broken(told: Mapping[str, Any], *, whole: bool) -> str:
    both = f": {' -> '.join(answers(told['old'], told['new'], 100))}" if whole else ""
    held = f"{told['property']} held on {told['held']} inputs before"
    return f"  {told['function']}: {held}, and not on {ends(told['call'], 160)}{both}"
