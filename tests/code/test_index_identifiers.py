"""Splitting and stemming: laws of terms."""

from hypothesis import given
from hypothesis import strategies as st

from localagent.code.index.identifiers import split_identifier, stem, terms, terms_of


def test_an_identifier_is_found_whole_and_in_parts() -> None:
    assert terms_of("parse_http_date") == ("parse_http_date", "pars", "http", "date")
    assert split_identifier("HTTPServer2") == ["HTTP", "Server", "2"]
    assert terms("parsed parsing parses parse") == ["pars"] * 4
    assert {stem(w) for w in ("check", "checks", "checked", "checking")} == {"check"}


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_terms_are_lower_case_without_blanks(text: str) -> None:
    for term in terms(text):
        assert term
        assert term == term.lower()
        assert not any(c.isspace() for c in term)


@given(st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=4))
def test_snake_and_camel_have_the_same_parts(parts: list[str]) -> None:
    snake, camel = "_".join(parts), "".join(part.capitalize() for part in parts)
    assert set(terms_of(snake)[1:]) <= set(terms_of(camel)) | set(terms_of(snake)[:1])
