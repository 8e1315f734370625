"""Made-up inputs are literals, fit their hints, differ from one another and depend on the key alone."""

import ast
from pathlib import Path

import pytest

from localagent.verify.evidence.differential import EXAMPLES
from localagent.verify.evidence.hypothesis_inputs import _hashable, made_inputs
from localagent.verify.evidence.parameters import signature_of


def made(text: str, *, seen: tuple[tuple[object, ...], ...] = (), key: str = "k", home: Path) -> list[tuple[str, str]]:
    signature = signature_of(text.encode())
    assert signature is not None
    return made_inputs(signature, [(args, {}) for args in seen], ["q"], [77], key=key, home=home, examples=EXAMPLES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("hint", "kinds"),
    [
        ("int", {int}), ("str", {str}), ("float", {float}),
        ("bool", {bool}), ("bytes", {bytes}), ("None", {type(None)}),
        ("list[int]", {list}), ("List[str]", {list}), ("Sequence[int]", {list}), ("tuple[int, str]", {tuple}),
        ("tuple[int, ...]", {tuple}), ("dict[str, int]", {dict}), ("set[int]", {set}),
        ("Optional[int]", {int, type(None)}),
        ("int | None", {int, type(None)}), ("Union[int, str]", {int, str}), ("typing.Literal[3]", {int}),
        ("'int'", {int}), ("list['str']", {list}),
    ],
)  # fmt: skip
def test_values_fit_their_hints(hint: str, kinds: set[type], tmp_path: Path) -> None:
    found = made(f"def f(x: {hint}):\n    pass\n", home=tmp_path)
    values = [ast.literal_eval(args)[0] for args, _ in found]
    assert values
    assert {type(v) for v in values} <= kinds


@pytest.mark.parametrize(
    "hint",
    [
        "dict[Any, Any]", "set[Node]", "Set['Node']", "Optional[set[Node]]", "dict[K, list[int]]", "Set[set]",
        "Mapping[Tuple[Node, int], int]", "Dict[object, str]", "set[Union[int, list]]", "frozenset[dict[str, int]]",
    ],
)  # fmt: skip
def test_keys_and_elements_of_any_hint_can_be_ones(hint: str, tmp_path: Path) -> None:
    found = made(f"def f(x: {hint}):\n    pass\n", home=tmp_path)
    assert len(found) == len({args for args, _ in found}) > 2


def test_the_order_of_what_stands_for_a_set_is_its_own() -> None:
    some = ["it", "was", "so", "many", "words", "ago"]
    assert _hashable([set(some)]) == (tuple(sorted(some, key=repr)),)


@pytest.mark.long
def test_they_depend_on_the_key_alone(tmp_path: Path) -> None:
    text = "def f(x: int, y: list[str], *, z: str = 'a'):\n    pass\n"
    first, again, other = (made(text, key=key, home=tmp_path) for key in ("a", "a", "b"))
    assert first == again
    assert first != other
    assert len(set(first)) == len(first)
    assert all(set(ast.literal_eval(kwargs)) == {"z"} for _, kwargs in first)


def test_without_hints_what_was_seen_and_defaults_tell(tmp_path: Path) -> None:
    found = made("def f(x, y=3):\n    pass\n", seen=(("abc", 3),), home=tmp_path)
    values = [ast.literal_eval(args) for args, _ in found]
    assert {type(x) for x, _ in values} == {str}
    assert {type(y) for _, y in values} == {int}
    assert "abc" in [x for x, _ in values]


@pytest.mark.long
def test_numbers_come_close_to_one_another(tmp_path: Path) -> None:
    pairs = [ast.literal_eval(args) for args, _ in made("def f(x: int, y: int):\n    pass\n", home=tmp_path)]
    assert sum(abs(x - y) <= 2 for x, y in pairs) > len(pairs) / 8


@pytest.mark.parametrize("text", ["x = 1", "def f(:", "class C: pass"])
def test_what_is_no_plain_function_has_no_signature(text: str) -> None:
    assert signature_of(text.encode()) is None


def test_nothing_is_written_but_into_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    made("def f(x: str):\n    pass\n", home=tmp_path / "home")
    assert list((tmp_path / "here").iterdir()) == []
