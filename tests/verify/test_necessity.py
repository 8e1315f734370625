"""The parts of a patch: small, each taken back alone, and all of them together give the old file back."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.necessity import (
    PatchPart,
    outermost,
    parts_of,
    same_statement,
    together,
    without,
)

PATH = RepoPath("m.py")


def changed(before: str, after: str) -> ChangedFile:
    return ChangedFile(path=PATH, source=PATH, before=before.encode(), after=after.encode())


def texts(before: str, after: str) -> list[str]:
    return [part.text for part in parts_of([changed(before, after)])]


BODY = "def f(x, y):\n    if x > 0 and y < 3:\n        return x\n    return y\n"


def test_edits_of_one_line_are_parts_of_their_own() -> None:
    assert texts(BODY, BODY.replace("x > 0", "x > 1").replace("y < 3", "y < 4")) == ["0 -> 1", "3 -> 4"]


def test_inserted_statements_are_parts_of_their_own() -> None:
    after = BODY.replace("    if x", "    if not x:\n        return None\n    y = abs(y)\n    if x")
    assert texts(BODY, after) == ["nothing -> if not x: return None", "nothing -> y = abs(y)"]


def test_a_removed_statement_is_a_part() -> None:
    before = BODY.replace("    if x", "    y += 1\n    if x")
    assert texts(before, BODY) == ["y += 1 -> nothing"]


def test_what_a_checker_reads_of_a_global_is_no_part_and_of_a_field_it_may_be() -> None:
    before = "SEEN: dict[str, int] = {}\n\n\nclass C:\n    n: int = 0\n"
    assert texts(before, before.replace("dict[str", "Mapping[str")) == []
    assert texts(before, before.replace("n: int", "n: float")) == ["int -> float"]


def test_of_code_that_moved_its_arrival_is_the_part() -> None:
    first, second = "        y += 1\n        x = y\n", "    if y:\n        y -= 1000\n    x += y\n"
    before, after = (f"def f(x, y):\n    if x:\n{a}    return x\n" for a in (first + second, first))
    moved = after.replace("    if x", second + "    if x")
    assert texts(before, moved) == ["nothing -> if y: y -= 1000", "nothing -> x += y"]
    assert texts(before, after) == ["if y: y -= 1000 x += y -> nothing"]
    other = "def g(x, y):\n    x = [y, x, y]\n    return [x, y]\n\n\n"
    elsewhere = other.replace("    return", second + "    return") + after
    assert "if y: y -= 1000 x += y -> nothing" in texts(other + before, elsewhere)


def test_a_constant_that_came_inside_a_larger_part_is_one_too() -> None:
    after = BODY.replace("return y", "return (abs(x - y) + 1) * 2")
    assert texts(BODY, after) == ["x - y -> (abs(x - y) + 1) * 2", "nothing -> x -", "abs(x - y) -> abs(x - y) + 1"]
    assert texts(BODY, BODY.replace("return y", "return y + 1")) == ["nothing -> + 1"]  # once
    stood = BODY.replace("return y", "return y + 1")
    assert texts(stood, stood.replace("return y + 1", "return abs(y + 1)")) == ["y + 1 -> abs(y + 1)"]
    whole = PatchPart(file=changed(BODY, after), start=0, end=len(after), before=b"")
    steps = parts_of([changed(BODY, after)])
    assert outermost([*steps, whole]) == [whole]


def test_a_bracket_goes_with_its_partner_and_not_with_what_stands_between() -> None:
    pattern = "import re\nP = re.compile(r'(?=</?[%&])|x')\n"
    assert texts(pattern, pattern.replace("[%&]", "%")) == ["[%&] -> %"]
    assert texts(pattern, pattern.replace("[%&]", "%").replace("|x", "|y")) == ["[%&] -> %", "x -> y"]
    stood = BODY.replace("return y", "return max(y, x)")
    wrapped = changed(stood, stood.replace("max(y, x)", "sorted(max(y, x + 2))"))
    outer, inner = parts_of([wrapped])[:2]
    assert outer.reverted() == stood.replace("y, x", "y, x + 2").encode()
    assert inner.reverted() == stood.replace("max(y, x)", "sorted(max(y, x))").encode()
    assert without(wrapped, [outer, inner]).before == stood.encode()
    assert outermost([outer, inner]) == [outer, inner]


def test_the_head_of_a_block_is_no_part_without_it() -> None:
    before = "def f(x):\n    if x:\n        return True\n    return False\n"
    after = "def f(x):\n    if x:\n        return bool(x)\n    else:\n        return not bool(x)\n"
    parts = parts_of([changed(before, after)])
    assert [part.text for part in parts] == ["True -> bool(x)", "return False -> else: return not bool(x)"]
    tried = BODY.replace("    return y\n", "    try:\n        return y\n    finally:\n        x = 0\n")
    assert texts(BODY, tried) == ["return y -> try: return y finally: x = 0"]
    assert without(parts[0].file, parts).before == before.encode()


def test_parts_of_one_statement_are_taken_back_together() -> None:
    after = BODY.replace("return y", "return sorted(set(y))")
    file = changed(BODY.replace("return y", "return list(dict(y))"), after)
    one, other = parts_of([file])
    assert same_statement([one, other]) == [(one, other)]
    assert together(one, other).reverted() == file.before
    apart = parts_of([changed(BODY, BODY.replace("x > 0", "x > 1").replace("return y", "return -y"))])
    assert same_statement(apart) == []


def test_what_changes_nothing_or_leaves_no_program_is_none() -> None:
    assert texts(BODY, BODY.replace("return x", "return x  # so")) == []
    assert texts(BODY, BODY.replace("(x, y):", '(x: int, y: int) -> int:\n    """Text."""')) == []
    assert texts(BODY.replace("    if", "    z = 1\n    if"), BODY.replace("    if", "    z: int = 1\n    if")) == []


def test_a_part_says_where_it_stands_and_is_swapped_into_its_function() -> None:
    (part,) = parts_of([changed(BODY, BODY.replace("return y", "return -y"))])
    candidate = part.candidate(4)
    assert (part.line, candidate.number, candidate.edits[0].line) == (4, 4, 4)
    assert candidate.patch.changes[0].after == BODY.encode()
    scope = candidate.edits[0].scope
    assert scope is not None
    assert (scope.name, scope.first_line) == ("f", 1)


lines = st.lists(st.sampled_from(["a = 1\n", "b = a\n", "c = a + b\n", "d = [a, 2]\n"]), max_size=6).map("".join)


@given(lines, lines)
def test_all_parts_taken_back_are_the_old_file_and_each_is_a_program(before: str, after: str) -> None:
    file = changed(before, after)
    parts = parts_of([file])
    assert all(parse_or_none(part.reverted()) is not None for part in parts)
    back = parse_or_none(without(file, parts).before)
    assert not parts or (back is not None and without(file, parts).after == file.after)
    if before and after and len(parts) == len(set(parts)) and before.count("\n") == after.count("\n") == 1:
        assert without(file, parts).before == before.encode()
