"""A long text on one line keeps its beginning and its end."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.text.visible_text import ends


def test_the_arguments_of_a_call_on_a_long_receiver_are_told() -> None:
    call = f"Journal.between(Journal({'x, ' * 200}), 7, 9)"
    assert ends(call, 60).startswith("Journal.between(Jou")
    assert ends(call, 60).endswith("x, ), 7, 9)")


@given(st.text(), st.integers(min_value=8, max_value=80))
def test_it_is_never_longer_and_short_texts_stay(text: str, most: int) -> None:
    shown = ends(text, most)
    assert len(shown) <= most
    assert shown.isprintable()
    if text.isprintable() and len(text) <= most:
        assert shown == text
