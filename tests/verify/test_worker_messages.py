"""Messages of a worker that is not ours: everything unexpected is Malformed, never a result."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.verify.worker.worker_messages import Item, Malformed, clean, collected_of, command_of, path_of, ran_of

ITEM = Item(index=0, id="t.py::a", path=None, line=1)
GOOD = {"i": 0, "outcome": "passed", "seconds": 0.1, "failure": None, "lines": None}
FAILURE = {"type": "E", "message": "", "frames": [], "left": "", "right": ""}


def test_a_plain_answer_is_taken() -> None:
    assert ran_of({"kind": "ran", "results": [GOOD]}, [ITEM]).results[0].outcome.good


@pytest.mark.parametrize(
    "change",
    [
        {"i": 1},
        {"i": True},
        {"outcome": "great"},
        {"outcome": "failed"},
        {"failure": FAILURE},
        {"seconds": -1},
        {"seconds": float("nan")},
        {"lines": {"m.py": [True]}},
        {"lines": []},
    ],
)
def test_one_wrong_field_voids_the_run(change: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        ran_of({"kind": "ran", "results": [{**GOOD, **change}]}, [ITEM])


def test_a_result_that_comes_twice_voids_the_run() -> None:
    with pytest.raises(Malformed):
        ran_of({"kind": "ran", "results": [GOOD, GOOD]}, [ITEM])


def test_a_command_cannot_pass_with_a_bad_status() -> None:
    with pytest.raises(Malformed):
        command_of({"kind": "command", "outcome": "passed", "status": 1, "seconds": 0, "output": "", "lines": None})


def test_ids_that_come_twice_stay_apart_and_paths_stay_inside() -> None:
    answer = {"items": [["a", "../x", 1], ["a", "t.py", 2]], "errors": [], "import_lines": None, "rootdir": "/r"}
    items = collected_of(answer).items
    assert [i.id for i in items] == ["a", "a#2"]
    assert [i.path for i in items] == [None, "t.py"]


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_nothing_but_malformed_is_raised(value: object) -> None:
    for parse in (lambda: ran_of({"kind": "ran", "results": value}, [ITEM]), lambda: path_of(value)):
        try:
            parse()
        except Malformed:
            continue


@given(st.text())
def test_cleaned_text_can_be_printed(text: str) -> None:
    shown = clean(text)
    shown.encode("utf-8")
    assert "\x1b" not in shown
