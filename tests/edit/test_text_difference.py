"""Where two texts part."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.edit.text_difference import parted


def test_no_word_is_cut() -> None:
    assert parted("a.max_old", "a.min_old") == (2, 0)
    assert parted("x[10]", "x[20]") == (2, 1)
    assert parted("i + 1", "i - 1") == (2, 2)
    assert parted("a[0]", "a") == (1, 0)


@given(st.text("ab_1 [](.=", max_size=12), st.text("ab_1 [](.=", max_size=12))
def test_two_texts_are_alike_in_front_and_behind_by_whole_words(old: str, new: str) -> None:
    front, back = parted(old, new)
    assert front + back <= min(len(old), len(new))
    assert old[:front] == new[:front]
    assert old[len(old) - back :] == new[len(new) - back :]
    for text in (old, new):
        middle = text[front : len(text) - back]
        if middle:
            assert not (text[front - 1 : front].isalnum() and middle[0].isalnum()) or front == 0
            assert not (middle[-1].isalnum() and text[len(text) - back :][:1].isalnum())
