"""Renamed twins: the same programs under neutral names, nothing else changed, and none kept that is not sound."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.casefile import BUILT, Case, CaseError, read_built
from bench.neutral import Renaming
from bench.twins import LEVELS, main, sound_twin, twin

CASES = read_built(BUILT)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def case(source: str, *tests: str, oracle: str = "", path: str = "shop.py") -> Case:
    visible = {f"tests/test_shop_{k}.py": text for k, text in enumerate(tests)}
    return Case(
        id="one", kind="k", files={path: source}, visible=visible, hidden={}, oracle={path: oracle or source}, expect={}
    )


def one(source: str, *tests: str) -> str:
    made, _ = twin(case(source, *tests))
    return "\n".join([*made.files.values(), *made.visible.values()])


@pytest.mark.long
@pytest.mark.parametrize("original", CASES, ids=lambda c: c.id)
def test_the_names_put_back_give_the_case_back_byte_for_byte(original: Case) -> None:
    made, names = twin(original)
    back = {new: old for old, new in names.table.items()}
    assert len(back) == len(names.table) > 3

    def old(text: str) -> str:
        return _WORD.sub(lambda word: back.get(word.group(), word.group()), text)

    for part in ("files", "visible", "hidden", "oracle"):
        assert {old(path): old(text) for path, text in getattr(made, part).items()} == getattr(original, part)
    assert (made.id, made.kind, made.expect) == (original.id, original.kind, original.expect)


def test_what_other_types_are_asked_for_keeps_its_name() -> None:
    made = one(
        "import json\nfrom collections import Counter\n\n\ndef items(rows, key):\n    found = Counter(rows)\n"
        "    found.update(rows)\n    return sorted(found.items(), key=key), json.dumps(rows, indent=2)\n"
    )
    for kept in ("import json", "import Counter", "Counter(", ".update(", ".items()", "key=", "json.dumps(", "indent="):
        assert kept in made
    for gone in ("def items", "rows", "found ="):
        assert gone not in made
    shelf = one(
        "class Shelf:\n    def items(self):\n        return {}.items()\n\n    def rows(self):\n        return 1\n"
    )
    assert shelf.count("items") == 2
    assert "rows" not in shelf


def test_fields_parameters_and_keywords_are_one_name() -> None:
    made = one(
        "from dataclasses import dataclass, replace\n\n\n@dataclass(frozen=True)\nclass Sale:\n    town: str\n"
        "    amount: int = 0\n\n    def doubled(self):\n        return replace(self, amount=2 * self.amount)\n",
        "from shop import Sale\n\n\ndef test_sale():\n    assert Sale(town='x', amount=2).doubled().amount == 4\n",
    )
    assert "frozen=True" in made
    for gone in ("town", "amount", "doubled", "Sale", "shop", "test_sale"):
        assert not re.search(rf"\b{gone}\b", made), gone
    assert len(set(re.findall(r"(\w+)=2 \* self\.(\w+)", made)[0])) == 1


def test_names_in_texts_follow_where_a_program_reads_them_as_names() -> None:
    made = one(
        "__all__ = ['price']\n\n\ndef price(amount):\n    return 'amount'\n",
        "import pytest\nfrom shop import price\n\n\n@pytest.mark.parametrize('amount, wanted', [(1, 'amount')])\n"
        "def test_price(amount, wanted, tmp_path):\n    assert price(amount) == wanted\n",
    )
    assert "return 'amount'" in made
    assert "(1, 'amount')" in made
    assert "tmp_path" in made
    assert re.search(r"parametrize\('(\w+), (\w+)'.*\n.*\(\1, \2, tmp_path\)", made)
    assert re.search(r"__all__ = \['(\w+)'\]\n+def \1\(", made)


def test_a_name_that_a_bug_gets_wrong_and_a_line_that_does_not_parse() -> None:
    whole = "def price(amount):\n    total = amount * 2\n    return total\n"
    made, names = twin(case(whole.replace("return total", "return totl"), oracle=whole))
    assert names.table["totl"] != names.table["total"]
    broken, names = twin(case(whole.replace("amount):", "amount:"), oracle=whole))
    first, *rest = broken.files[names.path("shop.py")].split("\n")
    assert first == f"def {names.table['price']}({names.table['amount']}:"
    assert rest == made.oracle[names.path("shop.py")].split("\n")[1:]
    with pytest.raises(CaseError, match="no version of shop"):
        twin(case("def price(amount:\n"))


def test_a_twin_that_is_not_sound_is_made_anew_with_less_and_refused_where_nothing_helps() -> None:
    original = next(c for c in CASES if c.id == "address-labels")
    asked: list[Case] = []

    def third(made: Case) -> str:
        asked.append(made)
        return "" if len(asked) == 3 else "it fails"

    made, remark = sound_twin(original, third)
    assert made is asked[2]
    assert ", ".join(LEVELS[2]) in remark
    assert "class Address" in next(iter(made.files.values()))
    with pytest.raises(CaseError, match="no sound twin: it fails"):
        sound_twin(original, lambda _: "it fails")


@pytest.mark.long
def test_it_writes_a_case_file_that_the_judge_finds_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the judge itself, in its jail, from a file given by path."""
    cases, out = tmp_path / "cases.jsonl", tmp_path / "twins.jsonl"
    sound = next(c for c in CASES if c.id == "basket-rows")
    cases.write_text(sound.as_json() + "\n" + case("def price(amount:\n").as_json() + "\n")
    assert main([str(cases), "--out", str(out)]) == 0
    (made,) = read_built(out)
    assert made.id == sound.id
    assert made.expect == sound.expect
    assert made.files != sound.files
    assert "1 twins" in capsys.readouterr().out
    cases.write_text(json.dumps({"id": 1}) + "\n")
    assert main([str(cases), "--out", str(out)]) == 2


NAMES = st.sampled_from(["alpha", "beta", "_gamma", "DELTA", "count", "items", "value_1", "test_it", "Sum", "len"])


@pytest.mark.long
@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4))
def test_law_a_renamed_program_is_the_same_tree_under_other_names(rows: list[tuple[str, str, str]]) -> None:
    source = "".join(
        f"def {f}({a}, *, k{b}=0):\n    self.{b} = {a}.{b}\n    return len({b}, key={a})\n" for f, a, b in rows
    )
    names = Renaming({"m.py": [source]})
    made = names.source("m.py", source)
    back = {new: old for old, new in names.table.items()}
    assert ast.dump(ast.parse(_WORD.sub(lambda w: back.get(w.group(), w.group()), made))) == ast.dump(ast.parse(source))
    assert not set(names.table) & set(_WORD.findall(made)) - {a for f, a, b in rows for a in (b,)}
