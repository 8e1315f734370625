"""The sanitizer's laws: idempotent, no control comes out, no planted secret comes out, chunks do not matter."""

import base64
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.text.escaping import escaped, escaped_name
from localagent.text.secret_redaction import Sanitizer, SecretKind

CANARY = "correct-horse-9battery"
SECRETS = {
    SecretKind.GITHUB_TOKEN: "ghp_" + "a1B2" * 9,
    SecretKind.AWS_KEY: "AKIA" + "Q7" * 8,
    SecretKind.GITLAB_TOKEN: "glpat-" + "x9_-" * 5,
    SecretKind.SLACK_TOKEN: "xoxb-1234567890-abcdef",
    SecretKind.GOOGLE_KEY: "AIza" + "Sy9-_" * 7,
    SecretKind.STRIPE_KEY: "sk_live_" + "4eC39HqL" * 3,
    SecretKind.API_KEY: "hf_" + "abcdefghij" * 3,
    SecretKind.PACKAGE_INDEX_TOKEN: "pypi-" + "AgEIcHlwaS5vcmc" * 4,
    SecretKind.JSON_WEB_TOKEN: "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK",
    SecretKind.PRIVATE_KEY: "-----BEGIN EC PRIVATE KEY-----\nb3BlbnNz\naC1rZXk=\n-----END EC PRIVATE KEY-----",
}
PIECES = [*SECRETS.values(), CANARY, "\x1b[31m", "\x1b]0;t\x07", "\x1b", "\x9b", "\u202e", "\u200b", "\ufe0f", "\x08",
          "\r", "[redacted:aws-key]", "[redacted:", "x1b", "AKIA", "Bearer ",
          "https://u:pass9word@h/", "\udcff", "é", "%", "\n"]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=12).map("".join)
sanitizer = Sanitizer([(CANARY, SecretKind.ENVIRONMENT)])
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufe0f]")


@given(texts)
def test_twice_is_once_and_nothing_drives_a_terminal(text: str) -> None:
    once = sanitizer.clean_text(text)
    again = sanitizer.clean_text(once.text)
    assert again.text == once.text
    assert (again.redacted, again.escaped) == ({}, 0)
    assert not CONTROL.search(once.text)
    once.text.encode("utf-8")  # no lone surrogates either


@pytest.mark.long
@given(texts, st.sampled_from([*SECRETS.values(), CANARY]), texts)
def test_a_planted_secret_never_survives(before: str, secret: str, after: str) -> None:
    shown = sanitizer.clean_text(before + secret + after)
    assert secret not in shown.text
    assert sum(shown.redacted.values()) >= 1


@given(texts, st.lists(st.integers(min_value=0, max_value=400), max_size=5))
def test_chunks_do_not_matter(text: str, cuts: list[int]) -> None:
    data = (text + CANARY + text).encode("utf-8", "replace")
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[one:two] for one, two in pairwise(at)]
    assert sanitizer.clean(chunks) == sanitizer.clean([data])
    assert CANARY not in sanitizer.clean(chunks).text


@pytest.mark.long
@given(st.text(min_size=8), texts, texts)
def test_any_value_of_one_plain_run_is_a_canary(value: str, before: str, after: str) -> None:
    if not value.isascii() or not value.isalnum() or any(value in f"[redacted:{kind}]" for kind in SecretKind):
        value = "v4lue" + value.encode("utf-8", "surrogatepass").hex()
    shown = Sanitizer([(value, SecretKind.CREDENTIAL_FILE)]).clean_text(before + value + after)
    assert value not in shown.text


@pytest.mark.parametrize("kind", list(SECRETS))
def test_each_format_is_named_and_counted(kind: SecretKind) -> None:
    shown = sanitizer.clean([b"see ", SECRETS[kind].encode(), b" end\n"])
    assert shown.text == f"see [redacted:{kind}] end\n"
    assert shown.redacted == {kind: 1}


@pytest.mark.parametrize("between", ["\x1b", "\x1b[0m", "\u200b", "\x00", "\x1b]8;;x\x07", "\u00ad"])
def test_controls_between_the_characters_do_not_hide_a_secret(between: str) -> None:
    for secret in (SECRETS[SecretKind.GITHUB_TOKEN], CANARY):
        shown = sanitizer.clean_text("a " + between.join(secret) + " b")
        assert shown.text.startswith("a [redacted:")
        assert shown.text.endswith("] b")


@pytest.mark.parametrize("code", ["\x1b", "\x1b[", "\x9b", "\x1b[3"])
def test_a_control_in_front_does_not_hide_a_secret(code: str) -> None:
    shown = sanitizer.clean_text(code + SECRETS[SecretKind.AWS_KEY])
    assert SECRETS[SecretKind.AWS_KEY][4:] not in shown.text


@pytest.mark.parametrize("shift", ["", "a", "ab"])
def test_usual_encodings_of_a_canary_are_canaries(shift: str) -> None:
    text = base64.b64encode((shift + CANARY + "zz").encode()).decode() + " " + CANARY.encode().hex()
    assert sanitizer.clean_text(text).redacted == {SecretKind.ENVIRONMENT: 2}


def test_an_unfinished_private_key_is_cut_to_the_end() -> None:
    shown = sanitizer.clean([b"x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow"])
    assert shown.text == "x\n[redacted:private-key]"


def test_passwords_in_addresses_and_bearer_tokens() -> None:
    shown = sanitizer.clean_text(
        "git clone https://me:hunter2x@example.org/r.git\nAuthorization: Bearer abc123def456ghi789jkl012\n"
    )
    assert shown.text == (
        "git clone https://[redacted:url-password]@example.org/r.git\nAuthorization: Bearer [redacted:bearer-token]\n"
    )


@pytest.mark.parametrize(
    "text", ["def f(x):\n\treturn x  # ok\n", "sha256:" + "ab" * 32, "naïve 日本語 😀", "a\\x1b[0m"]
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert sanitizer.clean_text(text).text == text


def test_short_values_are_no_canaries() -> None:
    assert (
        Sanitizer([("yes", SecretKind.ENVIRONMENT), ("redacted", SecretKind.ENVIRONMENT)])
        .clean_text("yes redacted")
        .redacted
        == {}
    )


def test_bytes_that_are_no_text_are_shown() -> None:
    assert sanitizer.clean([b"\xff\x9b31m\x00"]).text == "\\xff\\x9b31m\\x00"


@given(st.text(), st.text())
def test_escaping_is_idempotent_and_names_stay_apart(one: str, two: str) -> None:
    shown, _ = escaped(one)
    assert escaped(shown) == (shown, 0)
    names = escaped_name(one), escaped_name(two)
    assert (names[0] == names[1]) == (one == two) or max(one + two, default="") >= "\ud800"
    assert not set(names[0]) & set("/\\\n\t\x1b")
    assert not names[0].startswith("-")


def test_a_flood_of_beginnings_is_one_finding() -> None:
    """Text made to be slow: every key that begins would end where the next one was cut out."""
    assert sanitizer.clean_text("-----BEGIN RSA PRIVATE KEY-----" * 3000).text == "[redacted:private-key]"
    assert sanitizer.clean_text("sk-" * 30_000).redacted == {SecretKind.API_KEY: 1}
    assert sanitizer.clean_text("eyJ" * 30_000).redacted == {}
