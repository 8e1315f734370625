from hypothesis import given
from hypothesis import strategies as st

from localagent.policy.toml_key_lines import key_lines


def test_lines_of_keys() -> None:
    text = (
        'a = """\nb = 1\n"""\nc = [ # [x]\n "]", \'[\',\n]\n[t . u]\n"d" = {x = 1}\n'
        "[[r]]\ne = 1\n[[r]]\ne = '''\n[q]'''\nf = 2\n"
    )
    assert key_lines(text) == {
        "a": 1, "c": 4, "c[0]": 5, "c[1]": 5, "t.u": 7, "t.u.d": 8, "t.u.d[0]": 8,
        "r": 9, "r[0]": 9, "r[0].e": 10, "r[1]": 11, "r[1].e": 12, "r[1].f": 14,
    }  # fmt: skip


@given(st.text(alphabet="[]=\"'\\#\na {}.", max_size=40))
def test_any_text_has_lines_within(text: str) -> None:
    assert all(1 <= n <= text.count("\n") + 1 for n in key_lines(text).values())
