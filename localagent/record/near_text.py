"""Old against new as text for a person: the table of changed behaviour, from the report's JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from localagent.record.visible import ends, one_line


def near_lines(near: Mapping[str, Any], *, most: int, whole: bool = False) -> Iterator[str]:
    """At most so many changes. `whole`: for whom this is the answer: wider, with notes and where inputs come from."""
    if whole:
        yield from (f"old against new: {one_line(note, 500)}" for note in near["notes"])
    if not near["functions"]:
        return
    of_whom = f" to {len(near['functions'])} functions" if whole else ""
    demanded = f", {near['demanded']} differ where turned tests want it" if near["demanded"] else ""
    others = len(near["differences"]) + near["differences_left_out"]
    yield f"old against new: {near['inputs']} inputs{of_whom}{demanded}, {others} others differ"
    for difference in near["differences"][:most]:
        yield _difference(difference, whole=whole)
    if others > most:
        yield f"  and {others - most} more" + (" (--json, --html)" if whole else "")
    for broken in near["broken_properties"] if whole else near["broken_properties"][:most]:
        yield _broken(broken, whole=whole)


def _difference(told: Mapping[str, Any], *, whole: bool) -> str:
    call, answer = (110, 60) if whole else (90, 50)
    origin = f"  [{told['origin']}]" if whole else ""
    crash = "  [crash]" if told["crash"] else ""
    return f"  {ends(told['call'], call)}: {ends(told['old'], answer)} -> {ends(told['new'], answer)}{origin}{crash}"


def _broken(told: Mapping[str, Any], *, whole: bool) -> str:
    answers = f": {one_line(told['old'], 100)} -> {one_line(told['new'], 100)}" if whole else ""
    held = f"{told['property']} held on {told['held']} inputs before"
    return f"  {told['function']}: {held}, and not on {one_line(told['call'], 160)}{answers}"
