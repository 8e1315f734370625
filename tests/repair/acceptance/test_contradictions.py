"""Every kind of contradiction: an edit that is one, a like edit that is none, and the sentence that says so."""

import pytest
from support.acceptance_builder import M, against, one_file, reasons, speaking_for, swapped

from localagent.domain.edit import FileChange, Patch
from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.repair.acceptance.contradictions import ContradictionWeight, PatchContext, contradictions, supports

DESCRIPTOR = """
class cached:
    def __get__(self, obj, owner):
        if self.name is None:
            raise TypeError(f"No '__dict__' attribute on {type(obj).__name__!r} to cache {self.name!r}")
        return obj.__dict__[self.name]
"""


class TestMessages:
    def test_an_edit_of_an_exceptions_text_alone(self) -> None:
        patch = swapped(DESCRIPTOR, "type(obj).__name__", "type(obj).cache")
        assert "message-only" in against(patch)
        assert "the message of an exception" in reasons(patch)
        crash = Failure(exception="TypeError", message="No '__dict__' attribute on 'NoneType' to cache 'x'")
        assert "message-only" in against(patch, crash)

    def test_not_where_the_failing_test_asks_for_the_text(self) -> None:
        patch = swapped(DESCRIPTOR, "type(obj).__name__", "type(obj).cache")
        failure = Failure(exception="AssertionError", message="", left="\"No '__dict__' attribute on 'A'\"", right="''")
        assert "message-only" not in against(patch, failure)
        regex = Failure(exception="Failed", message="Pattern 'a' not found in \"No '__dict__' attribute on 'A'\"")
        assert "message-only" not in against(patch, regex)

    @pytest.mark.parametrize(
        "line", ["logger.debug('x %s', a)", "warnings.warn('x %s' % a)", "assert a, f'x {a}'", "raise E('x %s' % a)"]
    )
    def test_logs_warnings_and_assertions(self, line: str) -> None:
        before = f"def f(a, b):\n    {line}\n    return a + b\n"
        after = before.replace("a)", "b)", 1) if "a)" in line else before.replace("{a}", "{b}")
        assert "message-only" in against(one_file(before, before.replace(line, line.replace("x", "y"))))
        assert "message-only" not in against(one_file(before, after.replace("a + b", "a - b")))

    def test_not_where_making_the_message_is_what_failed(self) -> None:
        patch = swapped(DESCRIPTOR, "type(obj).__name__", "type(obj).__qualname__")
        here, above = (Frame(path=M, line=n, function="__get__") for n in (5, 4))
        for frame, exception, fires in [
            (here, "AttributeError", False), (here, "TypeError", True), (above, "AttributeError", True),
        ]:  # fmt: skip
            failure = Failure(exception=exception, message="", frames=(frame,))
            assert ("message-only" in against(patch, failure)) == fires

    @pytest.mark.parametrize(
        ("old", "new"), [("'x')", "'x', stacklevel=2)"), ("'x')", "'x', Other)"), ("warnings.warn('x')", "pass")]
    )
    def test_a_warnings_category_and_whether_it_comes_are_behaviour(self, old: str, new: str) -> None:
        before = "def f(a):\n    warnings.warn('x')\n    return a\n"
        assert "message-only" not in against(swapped(before, old, new))

    def test_a_log_that_goes(self) -> None:
        before = "def f(a):\n    logger.info('x')\n    return a\n"
        assert "message-only" in against(swapped(before, "logger.info('x')\n    ", ""))

    def test_repr(self) -> None:
        before = "class A:\n    def __repr__(self):\n        return f'<A {self.x}>'\n"
        assert against(swapped(before, "self.x", "self.y")) >= {"message-only"}
        shown = Failure(exception="AssertionError", message="", left="'<A 1>'", right="'<A 2>'")
        assert "message-only" not in against(swapped(before, "self.x", "self.y"), shown)

    def test_another_file_that_changes_is_no_message(self) -> None:
        one = swapped(DESCRIPTOR, "type(obj).__name__", "type(obj).cache").changes[0]
        data = FileChange(path=RepoPath("src/words.json"), before=b"{}", after=b"[]")
        assert "message-only" not in against(Patch(changes=(one, data)))


FIND = '''
def find(xs, x, start=0, sep=":"):
    """Where x stands.

    Args:
        xs: a list
        start: where to begin (default: 0)
        sep: what stands between, default is ":"

    Returns the place, or -1 if it is not there.
    """
    for i in range(start, len(xs)):
        if xs[i] == x:
            return i
    return -1  # -1 means it is not there
'''


class TestDocumentation:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("    return -1 ", "    return None "), ("    return -1 ", "    return len(xs) "),
            ("start=0", "start=1"), ('sep=":"', 'sep=","'),
        ],
    )  # fmt: skip
    def test_a_documented_value_is_changed(self, old: str, new: str) -> None:
        patch = swapped(FIND, old, new)
        assert "docstring" in against(patch)
        assert "docstring says" in reasons(patch)
        assert "docstring" not in against(swapped(FIND, "return i\n", "return 7\n"))

    def test_the_other_way_round_agrees(self) -> None:
        wrong = swapped(FIND, "    return -1 ", "    return None ").changes[0]
        patch = Patch(changes=(FileChange(path=M, before=wrong.after, after=wrong.before),))
        assert "docstring" not in against(patch)
        assert "docstring-agrees" in speaking_for(patch)

    def test_a_docstring_that_changes_with_the_code_is_no_contradiction(self) -> None:
        after = FIND.replace("return -1", "return None").replace("or -1 if", "or None if").replace("# -1 means", "#")
        assert not {"docstring", "comment"} & against(one_file(FIND, after))

    def test_a_constant_that_the_docstring_says_is_returned_and_that_goes(self) -> None:
        end = FIND.rstrip().splitlines()[-1] + "\n"
        patch = swapped(FIND, end, "")
        assert "docstring" in against(patch)
        assert "no `return` returns it any more" in reasons(patch)
        assert "docstring" not in against(swapped(FIND.replace("or -1 ", "or -2 "), end, ""))
        twice = FIND.replace("    for", "    if not xs:\n        return -1\n    for")
        assert "docstring" not in against(swapped(twice, end, "    xs = x\n"))

    def test_a_docstring_that_states_both_values_says_nothing(self) -> None:
        before = 'def f(a):\n    """Returns 1 where a is set. Returns 2 where it is not."""\n    return 1\n'
        patch = swapped(before, "    return 1\n", "    return 2\n")
        assert "docstring" not in against(patch)
        assert "docstring-agrees" not in speaking_for(patch)

    def test_a_comment_that_states_the_literal(self) -> None:
        assert "comment" in against(swapped(FIND, "    return -1 ", "    return None "))
        before = "def f(a):\n    x = 3  # see issue 12\n    return a + x\n"
        assert "comment" not in against(swapped(before, "x = 3", "x = 4"))
        before = "def f(a):\n    x = '#' + 3\n    return a + x\n"
        assert "comment" not in against(swapped(before, "+ 3", "+ 4"))

    def test_a_return_annotation(self) -> None:
        before = "def f(a) -> str:\n    if a:\n        return str(a)\n    return ''\n"
        assert "annotation" in against(swapped(before, "return ''", "return None"))
        assert "annotation" not in against(swapped(before, "return ''", "return 'none'"))
        optional = before.replace("-> str", "-> str | None")
        assert "annotation" not in against(swapped(optional, "return ''", "return None"))
        assert "annotation" in against(swapped("def f(a) -> bool:\n    return a > 1\n", "a > 1", "3"))

    def test_a_name_that_the_docstring_speaks_of(self) -> None:
        before = 'def f(m, n):\n    """The bytes, in the encoding of the header."""\n    return m.encode(n.charset)\n'
        assert "docstring-agrees" in speaking_for(swapped(before, "n.charset", "n.encoding"))
        assert "docstring-agrees" not in speaking_for(swapped(before, "n.charset", "n.language"))


ANSWERS = "def f(xs):\n    for x in xs:\n        if x:\n            return x\n    return len(xs)\n"


class TestAnswers:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("    return len(xs)\n", ""),
            ("    return len(xs)\n", "        return len(xs)\n"),
            ("    return len(xs)\n", "    if xs:\n        return len(xs)\n"),
            ("    return len(xs)\n", "    while True:\n        break\n"),
        ],
    )
    def test_a_function_that_can_now_end_without_one(self, old: str, new: str) -> None:
        assert "no-answer" in against(swapped(ANSWERS, old, new))

    @pytest.mark.parametrize(
        "new",
        [
            "    raise ValueError(xs)\n",
            "    if xs:\n        return 1\n    else:\n        raise E\n",
            "    while True:\n        for x in xs:\n            break\n",
            "    with xs:\n        return 1\n",
            "    try:\n        return 1\n    except E:\n        raise\n",
            "    match xs:\n        case [1]:\n            return 1\n        case _:\n            return 2\n",
        ],
    )
    def test_not_one_that_answers_or_raises(self, new: str) -> None:
        assert "no-answer" not in against(swapped(ANSWERS, "    return len(xs)\n", new))

    def test_not_one_that_could_end_without_one_before(self) -> None:
        before = ANSWERS.replace("    return len(xs)\n", "    print(xs)\n")
        assert "no-answer" not in against(swapped(before, "    print(xs)\n", ""))


class TestNames:
    def test_names_that_change_places(self) -> None:
        before = "def column(grid, seat):\n    return [grid[seat][row] for row in range(len(grid))]\n"
        assert "name" not in against(swapped(before, "[seat][row]", "[row][seat]"))
        assert "name" in against(swapped(before, "[seat][row]", "[row][row]"))

    def test_the_opposite_word(self) -> None:
        before = "def get_first(xs):\n    return xs.take(xs.start)\n\ndef copy(xs):\n    return xs.first\n"
        assert "name" in against(swapped(before.replace("xs.start", "xs.first_key"), "xs.first_key", "xs.last_key"))
        assert "name" not in against(swapped(before, "return xs.first", "return xs.last"))
        both = before.replace("get_first", "get_first_or_last")
        assert "name" not in against(swapped(both, "xs.start", "xs.last"))
        assert "name-agrees" in speaking_for(swapped(before.replace("xs.start", "xs.last"), "xs.last", "xs.start"))

    def test_a_question_that_is_answered_with_a_number(self) -> None:
        before = "def is_even(n):\n    return n % 2 == 0\n"
        assert "name" in against(swapped(before, "n % 2 == 0", "3"))
        assert "name" not in against(swapped(before, "n % 2 == 0", "n % 2 == 1"))
        had = "def is_even(n):\n    if n < 0:\n        return 3\n    return n % 2 == 0\n"
        assert "name" not in against(swapped(had, "n % 2 == 0", "4")), "it answered with numbers before"
        assert "name" not in against(swapped(before.replace("is_even", "parity"), "n % 2 == 0", "3"))
        assert "name" not in against(swapped(before.replace("is_even", "isolate"), "n % 2 == 0", "3"))

    def test_a_value_passed_by_another_name(self) -> None:
        before = "def f(width, height):\n    return Box(width=width, height=1)\n"
        assert "name" in against(swapped(before, "width=width", "width=height"))
        assert "name" not in against(swapped(before, "height=1", "height=width"))
        assert "name-agrees" in speaking_for(swapped(before.replace("=width", "=height"), "=height,", "=width,"))

    def test_arguments_swapped_against_the_parameters(self) -> None:
        before = "def box(width, height):\n    return width, height\n\ndef f(width, height):\n    return box({})\n"
        right, wrong = before.format("width, height"), before.format("height, width")
        assert "name" in against(one_file(right, wrong))
        assert "name" not in against(one_file(wrong, right))
        assert "name-agrees" in speaking_for(one_file(wrong, right))
        unknown = "def f(a, b):\n    return box(a, b)\n"
        assert "name" not in against(swapped(unknown, "(a, b)\n", "(b, a)\n"))


class TestErrorTexts:
    @pytest.mark.parametrize(
        ("right", "wrong", "text"),
        [
            ("x is None", "x is not None", "x must not be None"),
            ("x is None", "x is not None", "x is required"),
            ("not x", "x", "x must be given"),
            ("x < 0", "x > 0", "x must not be negative"),
            ("x <= 0", "x >= 1", "x must be positive"),
            ("x not in self.known", "x in self.known", "unknown x"),
            ("x in self.known", "x not in self.known", "x is already there"),
            ("not isinstance(x, int)", "isinstance(x, int)", "x must be an int"),
            ("len(x) > 5", "len(x) > 6", "at most 5 of them"),
        ],
    )
    def test_a_guard_against_its_text(self, right: str, wrong: str, text: str) -> None:
        before = "class A:\n    def f(self, x):\n        if {}:\n            raise E('{}')\n        return x\n"
        patch = one_file(before.format(right, text), before.format(wrong, text))
        assert "error-text" in against(patch)
        assert text in reasons(patch)
        back = one_file(before.format(wrong, text), before.format(right, text))
        assert "error-text" not in against(back)
        assert "error-text-agrees" in speaking_for(back)
        silent = one_file(before.format(right, "no"), before.format(wrong, "no"))
        assert "error-text" not in against(silent)


def test_a_guard_that_never_fitted_its_text_is_not_held_against_an_edit() -> None:
    before = "def f(x):\n    if x is not None:\n        raise E('x must not be None')\n    return x\n"
    patch = swapped(before, "x is not None", "x != None")
    assert "error-text" not in against(patch)
    assert "error-text-agrees" not in speaking_for(patch)


LOOP = """
def total(rows, style, limit=None):
    out = []
    for row in rows:
        if limit is not None and len(out) >= limit:
            continue
        cell = style.shown(row)
        out.append(cell)
    return out
"""


class TestFlow:
    @pytest.mark.parametrize(
        ("before", "old", "new", "kind"),
        [
            ("def f(a):\n    if a:\n        b = 1\n    return b\n", "b = 1", "return 1\n        b = 1", "unreachable"),
            (
                "def f(a):\n    if a == 1:\n        return b\n    elif a == 2:\n        return c\n",
                "a == 2",
                "a == 1",
                "unreachable",
            ),
            (
                "def f(a):\n    m = None\n    if m is None:\n        m = True\n    return m\n",
                "= None",
                "= 0",
                "unreachable",
            ),
            ("def f(xs):\n    for x in xs:\n        g(x)\n    return xs\n", "g(x)", "return x", "loop-ends-early"),
            ("def f(a):\n    return a + 1\n", "a + 1", "0", "constant-answer"),
            ("def f(a):\n    if a:\n        return 1\n    return g(a)\n", "if a:", "if True:", "constant-condition"),
            (
                "def f(a):\n    if a:\n        return h(a)\n    return g(a)\n",
                "if a:",
                "if DEBUG:",
                "constant-condition",
            ),
        ],
    )
    def test_code_that_no_longer_runs_or_depends(self, before: str, old: str, new: str, kind: str) -> None:
        patch = swapped(before, old, new)
        assert kind in against(patch)
        change = patch.changes[0]
        back = Patch(changes=(FileChange(path=M, before=change.after, after=change.before),))
        assert kind not in against(back)

    @pytest.mark.parametrize(
        ("old", "new", "dead"),
        [
            ("n >= 10:", "n == 10:", "n >= 100"),  # of the three steps the second now takes all of the third
            ("n >= 10:", "n > 50:", "n >= 100"),
            ("return 5", "x = 5", "n >= 100"),
        ],
    )
    def test_a_step_that_an_earlier_one_leaves_nothing_of(self, old: str, new: str, dead: str) -> None:
        steps = "def f(n):\n    if n >= 10:\n        return 5\n    if n >= 50:\n        return 10\n    elif n >= 100:\n"
        before = steps + "        return 20\n    return 0\n"
        patch = swapped(before, old, new)
        assert "unreachable" in against(patch)
        assert f"the branch `{dead}` can never run" in reasons(patch)

    @pytest.mark.parametrize(
        "steps",
        [
            ("n >= 100", "n >= 50", "n >= 10"),
            ("n < 10", "n < 50", "m < 5"),
            ("n > 10", "n >= 10", "n <= 3"),
            ("n >= 10", "n <= 50", "n == 70"),
        ],
    )
    def test_steps_in_order_of_other_names_and_ways_all_run(self, steps: tuple[str, ...]) -> None:
        chain = "".join(f"    if {step}:\n        return {at}\n" for at, step in enumerate(steps))
        assert "unreachable" not in against(swapped(f"def f(n, m):\n{chain}    return a\n", "return a", "return b"))
        between = chain.replace("return", "n =")  # what does not leave says nothing of the next
        assert "unreachable" not in against(swapped(f"def f(n, m):\n{between}    return a\n", "return a", "return b"))

    @pytest.mark.parametrize(
        ("before", "old", "new", "kind"),
        [
            (
                "def f(c, s):\n    if c:\n        at = s.find(c)\n    else:\n        at = s.low()\n    return at\n",
                "else:\n        at",
                "at",
                "value-unused",
            ),
            ("def f(xs):\n    return xs and min(xs) == 1\n", "and", "or", "branch-negated"),
            ("def f(x):\n    return x is not None and x.y\n", "and", "or", "branch-negated"),
            ("def f(d):\n    return {k: list(v) for k, v in d.items()}\n", "list(v)", "list(d)", "value-unused"),
            (
                "class C:\n    def once(self, e):\n        self.off(e)\n        self.at[e] = 1\n",
                "self.off(e)",
                "self.at = {}",
                "state-emptied",
            ),
            (
                'def f(s):\n    """The share; 100 where none is given."""\n    return s.get("share", 100)\n',
                '"share", 100',
                '"share", 3',
                "docstring",
            ),
            (
                'def f(a, b):\n    """Whole per cent."""\n    return a // b * 100\n',
                "a // b",
                "a / b",
                "docstring",
            ),
            ("def f(a, b) -> int:\n    return a // b * 100\n", "a // b", "a / b", "annotation"),
            (
                'UNITS = ["second"]\n\n\ndef f(n):\n    return g(n, "second")\n',
                'n, "second"',
                'n, "seconds"',
                "siblings",
            ),
        ],
    )
    def test_what_the_edit_leaves_without_use_or_goes_against(self, before: str, old: str, new: str, kind: str) -> None:
        patch = swapped(before, old, new)
        assert kind in against(patch)
        change = patch.changes[0]
        back = Patch(changes=(FileChange(path=M, before=change.after, after=change.before),))
        assert kind not in against(back)

    @pytest.mark.parametrize(
        ("before", "old", "new"),
        [
            ("def f(c):\n    if c:\n        at = 1\n    return at\n", "    return", "    at = at + 1\n    return"),
            ("def f(c):\n    at = g()\n    return c\n", "return c", "at, b = at\n    return c, b"),
            ("def f(xs):\n    return xs and xs[1:]\n", "and", "or"),
            ("def f(x, y):\n    return x is not y and y.z\n", "and", "or"),
            ("def f(xs):\n    return xs and min(xs, default=0)\n", "and", "or"),
            ("def f(a, b) -> int:\n    if a // b > 1:\n        return 1\n    return 2\n", "a // b", "a / b"),
            ("def f(i):\n    for _ in i:\n        g(_)\n", "g(_)", "g(i)"),
            ("class C:\n    def reset(self):\n        self.off()\n", "self.off()", "self.at = {}"),
            ("class C:\n    def add(self):\n        self.off()\n", "self.off()", "self.cache = {}"),
            ('def f(a, b):\n    """Whole per cent."""\n    return a // b\n', "a // b", "int(a / b)"),
            ('def f(s):\n    """100 or 30."""\n    return s.get("share", 100)\n', 'e", 100', 'e", 30'),
            ('def f(n):\n    return g("secnd", "second")\n', "secnd", "second"),
        ],
    )
    def test_like_edits_that_go_against_nothing(self, before: str, old: str, new: str) -> None:
        assert not against(swapped(before, old, new))

    def test_a_value_replaced_unread_is_no_doubt_where_making_it_may_do_something(self) -> None:
        for made, severity in (("1", ContradictionWeight.HARD), ("fh.readline()", ContradictionWeight.SOFT)):
            patch = swapped("def f(fh):\n    x = fh.readline()\n    return x\n", "x = fh", f"x = {made}\n    x = fh")
            (found,) = contradictions(patch, PatchContext())
            assert (found.kind, found.severity) == ("value-unused", severity)

    def test_what_was_unreachable_before_is_not_held_against_an_edit(self) -> None:
        before = "def f(a):\n    return a + 1\n    g(a)\n"
        assert "unreachable" not in against(swapped(before, "a + 1", "a + 2"))
        assert "unreachable" in against(swapped(before, "g(a)", "h(a)"))

    def test_what_is_left_of_a_loops_body(self) -> None:
        patch = swapped(LOOP, "        out.append(cell)", "    out.append(cell)")
        assert "loop-body-left" not in against(patch), "nothing of the loop's own target is used there"
        patch = swapped(
            LOOP,
            "        cell = style.shown(row)\n        out.append(cell)",
            "    cell = style.shown(row)\n    out.append(cell)",
        )
        assert "loop-body-left" in against(patch)
        assert "for the last `row` only" in reasons(patch)
        other = LOOP.replace("    out = []\n", "    out = []\n    for row in rows:\n        style.seen(row)\n")
        body = "        cell = style.shown(row)\n        out.append(cell)"
        dedented = "    cell = style.shown(row)\n    out.append(cell)"
        assert "loop-body-left" not in against(swapped(other, body, dedented)), (
            "two loops of one head are not told apart"
        )

    def test_a_while_loop_that_waits_for_a_flag_is_no_contradiction(self) -> None:
        before = "def f(q):\n    done = False\n    while not done:\n        done = q.get()\n    return q\n"
        assert not against(swapped(before, "q.get()", "q.take()"))

    def test_a_generator_that_returns_at_once_may_yield_after_it(self) -> None:
        before = "def f(q):\n    if q:\n        yield q\n"
        after = "def f(q):\n    return\n    yield\n"
        assert "unreachable" not in against(one_file(before, after))

    def test_a_branch_that_is_turned_round(self) -> None:
        before = "def f(a):\n    if a is None:\n        g()\n    else:\n        h(a)\n    return a\n"
        patch = swapped(before, "a is None", "a is not None")
        assert "branch-negated" in against(patch)
        (found,) = [c for c in contradictions(patch, PatchContext()) if c.kind == "branch-negated"]
        assert found.severity is ContradictionWeight.SOFT
        guard = "def f(a):\n    if a is None:\n        raise E\n    return a\n"
        assert "branch-negated" not in against(swapped(guard, "a is None", "a is not None"))

    def test_a_branch_that_now_runs_for_none_and_uses_it(self) -> None:
        before = "def split(xs, limit=None):\n    if {}:\n        {}\n    return cut(xs, limit)\n"
        wrong = (before.format(f"limit is {word}None", "limit = int(limit)") for word in ("not ", ""))
        patch = one_file(*wrong)
        assert "branch-negated" in against(patch)
        assert "where `limit` is None" in reasons(patch)
        default = (before.format(f"limit is {word}None", "limit = len(xs)") for word in ("not ", ""))
        assert "branch-negated" not in against(one_file(*default))

    @pytest.mark.parametrize(
        "before",
        [
            "def f(t, w, case):\n    if case:\n        p = t.find(w)\n    else:\n        p = t.lower()\n    return p\n",
            "def f(t, w, case):\n    return t.find(w) if case else t.lower()\n",
        ],
    )
    def test_branches_that_now_do_the_same(self, before: str) -> None:
        patch = swapped(before, "t.find(w)", "t.lower()")
        (found,) = [c for c in contradictions(patch, PatchContext()) if c.kind == "constant-condition"]
        assert found.severity is ContradictionWeight.HARD
        assert "both branches of" in found.why
        assert "constant-condition" not in against(swapped(before, "t.find(w)", "t.index(w)"))
        alike = patch.changes[0].after.decode()
        assert "constant-condition" not in against(one_file(alike, before))
        assert "both branches" not in reasons(one_file(alike, alike.replace("if case", "if not case")))

    def test_a_helper_that_is_always_right(self) -> None:
        before = (
            "def raises(err, f):\n    try:\n        f()\n        return False\n    except err:\n        return True\n"
        )
        patch = swapped(before, "return False", "return True")
        assert "constant-answer" in against(patch)
        assert "always returns True" in reasons(patch)


class TestOptions:
    def test_a_parameter_that_is_no_longer_used(self) -> None:
        patch = swapped(LOOP, "limit is not None and len(out) >= limit", "not style")
        assert "option-lost" in against(patch)
        assert "`limit`" in reasons(patch)
        assert "option-lost" not in against(swapped(LOOP, "len(out) >= limit", "len(out) > limit"))
        gone = LOOP.replace(", limit=None", "").replace("limit is not None and len(out) >= limit", "not style")
        assert "option-lost" not in against(one_file(LOOP, gone)), "the parameter went with its use"
        method = "class A:\n    def f(self, x):\n        return self.g(x)\n"
        assert "option-lost" not in against(swapped(method, "self.g", "g")), "the receiver is no option"

    def test_an_attribute_that_a_condition_asked_about(self) -> None:
        before = (
            "class A:\n    def f(self, x):\n        if self.strict:\n            return x\n        return self.g(x)\n"
        )
        assert "option-lost" in against(swapped(before, "self.strict", "self.lazy"))
        assert "option-lost" not in against(swapped(before, "self.strict", "not self.strict"))

    def test_a_value_that_is_computed_for_nothing(self) -> None:
        patch = swapped(LOOP, "out.append(cell)", "out.append(row)")
        assert "value-unused" in against(patch)
        assert "`cell`" in reasons(patch)
        assert "value-unused" not in against(swapped(LOOP, "out.append(cell)", "out.insert(0, cell)"))

    def test_an_assignment_turned_round(self) -> None:
        before = "class A:\n    def f(self, at):\n        self.at = at\n        return self.g(at)\n"
        assert "assignment-reversed" in against(swapped(before, "self.at = at", "at = self.at"))
        assert "assignment-reversed" not in against(swapped(before, "self.at = at", "self.at = at + 1"))

    def test_functions_that_read_names_as_text_are_not_asked(self) -> None:
        before = "def f(a, b):\n    return g(b, locals())\n"
        assert "option-lost" not in against(swapped(before, "g(b,", "g(a,"))


TWINS = """
def f(xs, ys, kind):
    if kind == "a":
        xs.pop(0)
    if kind == "a":
        ys.pop(0)
    return xs, ys
"""
FIRST_GUARDED = TWINS.replace("if kind", "if xs and kind", 1)


class TestTwins:
    @pytest.mark.parametrize(
        "after", [FIRST_GUARDED, TWINS.replace('if kind == "a":\n        ys', 'if ys and kind == "a":\n        ys')]
    )
    def test_a_guard_at_one_of_two_like_branches(self, after: str) -> None:
        assert "siblings" in against(one_file(TWINS, after))
        assert "does the same to another name" in reasons(one_file(TWINS, after))

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (TWINS, FIRST_GUARDED.replace("if kind", "if ys and kind")),
            (TWINS, TWINS.replace("if kind", "if kind and kind", 1)),
            (TWINS.replace("ys.pop(0)", "ys.clear()"), FIRST_GUARDED.replace("ys.pop(0)", "ys.clear()")),
        ],
    )
    def test_not_where_both_are_guarded_it_asks_of_what_both_have_or_they_do_otherwise(
        self, before: str, after: str
    ) -> None:
        assert "siblings" not in against(one_file(before, after))


SIBLINGS = """
class Table:
    def first(self):
        return self.rows[0] if self.rows else None
    def last(self):
        return self.rows[-1] if self.rows else None
    def count(self):
        return len(self.rows) if self.rows else None
    def other(self):
        return {}
"""


class TestSiblings:
    def test_the_old_form_stands_in_siblings(self) -> None:
        before = SIBLINGS.format("self.rows[0] if self.rows else None").replace("[-1]", "[0]")
        after = SIBLINGS.format("self.rows[2] if self.rows else None").replace("[-1]", "[0]")
        patch = one_file(before, after)
        assert "siblings" in against(patch)
        assert "other methods of `Table`" in reasons(patch)

    def test_the_new_form_stands_in_siblings(self) -> None:
        patch = one_file(
            SIBLINGS.format("self.rows[0] if self.columns else None"),
            SIBLINGS.format("self.rows[0] if self.rows else None"),
        )
        assert "siblings-agree" in speaking_for(patch)
        assert "siblings" not in against(patch)

    def test_siblings_that_do_both_say_nothing(self) -> None:
        before = SIBLINGS.format("self.rows[0] if self.rows else None").replace("len(self.rows)", "self.rows[0]")
        patch = one_file(
            before, SIBLINGS.format("self.rows[-1] if self.rows else None").replace("len(self.rows)", "self.rows[0]")
        )
        assert "siblings-agree" not in speaking_for(patch)
        twice = before.replace(
            "    def other", "    def again(self):\n        return self.rows[0] if self.rows else None\n    def other"
        )
        last = twice.rpartition("self.rows[0]")
        assert "siblings" not in against(one_file(twice, last[0] + "self.rows[-1]" + last[2]))


class TestPlaces:
    @pytest.mark.parametrize(
        "path", ["src/p/testing/client.py", "p/testutils.py", "p/_testing/__init__.py", "noxfile.py"]
    )
    def test_support_for_tests(self, path: str) -> None:
        patch = one_file("x = 1\n", "x = 2\n", path)
        assert "testing-support" in against(patch)
        assert "testing-support" not in against(one_file("x = 1\n", "x = 2\n", "src/p/attesting.py"))

    def test_no_failing_test_runs_the_function(self) -> None:
        before = "def f(a):\n    return a + 1\n\n\ndef g(a):\n    return a - 1\n"
        patch = swapped(before, "a + 1", "a + 2")
        assert "no-failing-behaviour" not in against(patch), "unknown coverage says nothing"

        def kinds(*lines: int, failures: tuple[Failure, ...] = ()) -> set[str]:
            covered = {"t.py::t": {M: frozenset(lines)}}
            return {c.kind.value for c in contradictions(patch, PatchContext(covered=covered, failures=failures))}

        assert "no-failing-behaviour" in kinds(1, 5, 6)
        assert "no-failing-behaviour" not in kinds(1, 2)
        frame = Failure(exception="E", message="", frames=(Frame(path=M, line=2, function="f"),))
        assert "no-failing-behaviour" not in kinds(6, failures=(frame,))


class TestWhatSaysNothing:
    def test_expressions_that_say_nothing_and_names_that_nobody_binds(self) -> None:
        before = "def f(a, b):\n    return a > b\n"
        assert "degenerate" in against(swapped(before, "a > b", "a > a"))
        assert "degenerate" not in against(swapped(before, "a > b", "b > a"))
        assert "undefined-name" in against(swapped(before, "a > b", "a > c"))
        assert "`a > a`" in reasons(swapped(before, "a > b", "a > a"))
        assert "`c`" in reasons(swapped(before, "a > b", "a > c"))
        half = "def f(a):\n    return c(a) > c(0)\n"
        assert "leaves another" in reasons(one_file(half, half.replace("c(a)", "len(a)")))

    def test_an_attribute_that_nothing_sets(self) -> None:
        before = "class A:\n    def __init__(self):\n        self.x = 1\n    def f(self):\n        return self.x\n"
        patch = swapped(before, "return self.x", "return self.y")
        assert "undefined-name" in against(patch)
        assert "attribute of `self`" in reasons(patch)
        based = before.replace("class A:", "class A(B):")
        assert "undefined-name" not in against(swapped(based, "return self.x", "return self.y"))

    def test_a_name_that_was_undefined_before_and_goes(self) -> None:
        assert "undefined-name" not in against(
            one_file("def f(a):\n    return a > c\n", "def f(a):\n    return a > 0\n")
        )


def test_an_error_that_names_what_is_put_in() -> None:
    patch = swapped("def f(a):\n    return a.colour\n", "a.colour", "a.color")
    failure = Failure(
        exception="AttributeError", message="'A' object has no attribute 'colour'. Did you mean: 'color'?"
    )
    assert "error-names-it" in speaking_for(patch, failure)
    assert "error-names-it" not in speaking_for(patch, Failure(exception="AttributeError", message="no 'colors'"))
    assert "error-names-it" not in speaking_for(patch, Failure(exception="AttributeError", message="no 'my_color'"))


def test_files_that_do_not_parse_and_other_files_say_nothing() -> None:
    assert against(one_file("def f(:\n", "def f():\n    pass\n")) == set()
    assert against(one_file("a", "b", "README.md")) == set()
    assert contradictions(Patch(changes=()), PatchContext()) == ()
    assert supports(Patch(changes=()), PatchContext()) == ()


def test_a_reason_from_a_hostile_file_is_bounded_and_harmless() -> None:
    name = "x" * 5000
    patch = one_file(f"def f({name}):\n    return {name}\n", f"def f({name}):\n    return 1 # \x1b[2J\n")
    assert "option-lost" in against(patch)
    assert all(len(c.why) <= 400 for c in contradictions(patch, PatchContext()))
    doc = 'def f(a):\n    """Returns \u202e\x1b[2J -1 without a."""\n    return -1\n'
    found = reasons(swapped(doc, "    return -1\n", "    return 0\n"))
    assert "docstring says" in found
    assert not any(c in found for c in "\x1b\u202e")


class TestRegularity:
    SPAN = "def touch(a, b):\n    return a.start < b.end and b.start < a.end\n"

    def test_one_side_of_what_treats_two_alike(self) -> None:
        one = swapped(self.SPAN, "b.start < a.end", "b.start <= a.end")
        assert "symmetry-lost" in against(one)
        assert "treats `a` and `b` alike" in reasons(one)
        both = self.SPAN.replace("a.start < b.end and b.start < a.end", "a.end >= b.start and b.end >= a.start")
        assert "symmetry-lost" not in against(one_file(self.SPAN, both))
        uneven = self.SPAN.replace("b.start < a.end", "b.start < a.start")
        assert "symmetry-lost" not in against(one_file(uneven, self.SPAN))

    def test_a_sum_of_which_the_last_round_counts(self) -> None:
        before = "def f(xs):\n    bits = 0\n    for x in xs:\n        bits |= x.bits\n    return bits\n"
        assert "value-unused" in against(swapped(before, "|=", "="))
        assert "only the last one counts" in reasons(swapped(before, "|=", "="))
        read = before.replace("        bits |=", "        g(bits)\n        bits |=")
        assert "value-unused" not in against(swapped(read, "|=", "="))
        assert "value-unused" not in against(swapped(before, "|=", "^="))

    def test_one_more_does_not_round_up(self) -> None:
        before = "def pages(n, size):\n    return n // size\n"
        assert "rounding" in against(swapped(before, "n //", "(n + 1) //"))
        assert "rounding" not in against(swapped(before, "n //", "(n + size - 1) //"))
        assert "rounding" not in against(swapped(before.replace("// size", "// 2"), "n //", "(n + 1) //"))

    def test_a_key_whose_value_may_be_none(self) -> None:
        before = (
            "def has(box, key):\n    return key in box\n\n\ndef f(box, key):\n    if box.get(key):\n        return 1\n"
        )
        edited = swapped(before, "if box.get(key):", "if box.get(key) is not None:")
        assert "siblings" in against(edited)
        assert "elsewhere the file asks `key in box`" in reasons(edited)
        alone = before.replace("return key in box", "return bool(box)")
        assert "siblings" not in against(swapped(alone, "if box.get(key):", "if box.get(key) is not None:"))


class TestLikeThings:
    QUEUE = """
    @dataclass
    class Job:
        name: str
        urgency: int

    class Queue:
        def order(self):
            return sorted(self.jobs, key=lambda job: job.urgency)

        def first(self):
            return self.order()[0].name
    """

    def test_a_field_that_is_set_and_that_nothing_reads_any_more(self) -> None:
        patch = swapped(self.QUEUE, "job: job.urgency", "job: job.name")
        assert "option-lost" in against(patch)
        assert "`urgency` is still set" in reasons(patch)
        assert "option-lost" not in against(swapped(self.QUEUE, "job: job.urgency", "job: -job.urgency"))
        other = self.QUEUE.replace("order()[0].name", "order()[0]")  # one of two fields was read for the other
        assert "option-lost" not in against(swapped(other, "job: job.urgency", "job: job.name"))
        by_text = self.QUEUE + "\n    print(asdict(Job('a', 1)))\n"
        assert "option-lost" not in against(swapped(by_text, "job: job.urgency", "job: job.name"))

    @pytest.mark.parametrize(
        ("name", "answer", "fires"),
        [
            ("overlap", "a[0] < b[0] < a[1]", True),
            ("overlap", "a[0] < b[1] and b[0] < a[1]", False),
            ("overlap", "not (a[1] <= b[0] or b[1] <= a[0])", False),
            ("overlap", "max(a[0], b[0]) < min(a[1], b[1])", False),
            ("contains", "a[0] < b[0] < a[1]", False),
            ("same", "a.name == b", False),
        ],
    )
    def test_a_relation_without_a_direction(self, name: str, answer: str, fires: bool) -> None:
        patch = swapped(f"def {name}(a, b):\n    return a[0] < b[1]\n", "a[0] < b[1]", answer)
        assert ("symmetry-lost" in against(patch)) == fires

    @pytest.mark.parametrize("asked", ["self.begun is not None", "self.begun"])
    def test_what_a_branch_is_there_for_and_that_nothing_in_it_reads_any_more(self, asked: str) -> None:
        stop = f"""
        def stop(self):
            if {asked}:
                self.passed = self.now() - self.begun
                self.begun = None
            return self.passed
        """
        assert "value-unused" in against(swapped(stop, "() - self.begun", "() - self.passed"))
        assert "value-unused" not in against(swapped(stop, "passed = self.now", "passed += self.now"))
        assert "value-unused" not in against(swapped(stop, f"if {asked}", "if self.passed"))

    def test_one_of_several_like_comparisons(self) -> None:
        grade = "def f(n):\n    if n > 9:\n        return 'A'\n    if n > 8:\n        return 'B'\n    return n > 7\n"
        assert "symmetry-lost" in against(swapped(grade, "n > 9", "n >= 9"))
        assert "symmetry-lost" in against(swapped(grade, "n > 9", "n + 1 > 9"))
        assert "symmetry-lost" not in against(swapped(grade, "n > 9", "n > 10"))
        assert "symmetry-lost" not in against(one_file(grade, grade.replace(">", ">=")))
        assert "symmetry-lost" not in against(swapped(grade.replace("n > 8", "n >= 8"), "n > 9", "n >= 9"))

    def test_case_that_is_folded_in_more_than_the_key(self) -> None:
        bot = """
        def add(self, name, function):
            self.known[name.lower()] = function

        def handle(self, text):
            name, *words = text.split()
            return self.known.get(name)(*words)
        """
        assert "siblings" in against(swapped(bot, "text.split()", "text.lower().split()"))
        assert "siblings" not in against(swapped(bot, "get(name)", "get(name.lower())"))
        plain = bot.replace("name.lower()", "name")
        assert "siblings" not in against(swapped(plain, "text.split()", "text.lower().split()"))


class TestKindsOfValues:
    def test_a_key_that_becomes_a_text(self) -> None:
        before = "def f(rows):\n    return sorted(rows, key=lambda r: r.rank)\n"
        assert "value-kind" in against(swapped(before, "r.rank", "str(r.rank)"))
        assert "value-kind" not in against(swapped(before, "r.rank", "abs(r.rank)"))
        assert "value-kind" not in against(swapped(before.replace("r.rank", "str(r.rank)"), "r.rank", "r.name"))

    @pytest.mark.parametrize(
        ("expected", "new", "fires"),
        [
            ({"1250"}, "float(text) * 100", True),
            ({"12.5"}, "float(text) * 100", False),
            ({"'a'"}, "float(text) * 100", False),
            ({"1250"}, "round(float(text) * 100)", False),
            ({"1250"}, "int(text, 10) * 100", False),
        ],
    )
    def test_fractions_where_whole_numbers_are_expected(self, expected: set[str], new: str, fires: bool) -> None:
        patch = swapped("def f(text):\n    return int(text) * 100\n", "int(text) * 100", new)
        found = contradictions(patch, PatchContext(expected=frozenset(expected)))
        assert ("value-kind" in {c.kind.value for c in found}) == fires

    @pytest.mark.parametrize(
        ("old", "new", "fires"),
        [("a > b", "a != b", True), ("a > b", "a == b", True), ("a > 0", "a != 0", False), ("a > b", "a >= b", False)],
    )
    def test_an_order_that_becomes_an_inequality(self, old: str, new: str, fires: bool) -> None:
        patch = swapped(f"def newer(a, b):\n    return {old}\n", old, new)
        assert ("order-lost" in against(patch)) == fires

    def test_a_function_that_the_failure_names_has_to_do_with_it(self) -> None:
        before = "class Box:\n    def area(self):\n        return 1\n\n    def other(self):\n        return 2\n"
        patch = swapped(before, "    def area", "    @property\n    def area")
        bound = Failure(exception="AssertionError", message="", left="<bound method Box.area of <m.Box object>>")
        for failures, fires in (((bound,), False), ((), True)):
            context = PatchContext(failures=failures, covered={"t": {M: frozenset({6})}})
            found = {c.kind.value for c in contradictions(patch, context)}
            assert ("no-failing-behaviour" in found) == fires


class TestWhatAFunctionHas:
    BAND = "def f(x, a, b):\n    low = a - b\n    high = a + b\n    if x > low:\n        return low\n    return x\n"

    def test_a_local_that_nothing_reads_still(self) -> None:
        assert "value-unused" in against(swapped(self.BAND, "x > low", "x > a"))
        assert "`high` is computed and nothing reads it" in reasons(swapped(self.BAND, "x > low", "x > a"))
        assert "value-unused" not in against(swapped(self.BAND, "x > low", "x > high"))
        unset = self.BAND.replace("high = a + b", "_high = a + b")
        assert "value-unused" not in against(swapped(unset, "x > low", "x > a"))

    def test_a_number_where_a_parameter_has_it_by_default(self) -> None:
        before = "def f(lines, first=1):\n    return first, list(enumerate(lines))\n"
        assert "option-lost" in against(swapped(before, "(lines)", "(lines, 1)"))
        assert "option-lost" not in against(swapped(before, "(lines)", "(lines, first)"))
        assert "option-lost" not in against(swapped(before, "(lines)", "(lines, 2)"))


class TestContainers:
    def test_a_new_one_that_nothing_fills(self) -> None:
        before = "def second(nums):\n    if len(numbers) <= 2:\n        return -1\n    return sorted(numbers)[-2]\n"
        after = before.replace("    if", "    numbers = {}\n    if")
        assert "`numbers` is new and stays empty" in reasons(one_file(before, after))
        filled = after.replace("    return -1\n", "    return -1\n    numbers.update(nums)\n")
        assert "constant-condition" not in against(one_file(before, filled))
        assert "constant-condition" not in against(one_file(after, after.replace("2", "3")))  # it stood there before

    def test_an_argument_that_is_changed_in_place(self) -> None:
        before = "def cost(cuts, n):\n    cuts = sorted([*cuts, 0, n])\n    return cuts\n"
        patch = swapped(before, "cuts = sorted", "cuts += sorted")
        assert "value-kind" in against(patch)
        assert "the caller's own `cuts`" in reasons(patch)
        local = before.replace("def cost(cuts, n):", "def cost(given, n):\n    cuts = list(given)")
        assert "value-kind" not in against(swapped(local, "cuts = sorted", "cuts += sorted"))
        number = "def add(total, n):\n    total = total + n\n    return total\n"
        assert "value-kind" not in against(swapped(number, "total = total + n", "total += n"))
