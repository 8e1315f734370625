"""OSV exports: matched by OSV's own algorithm; what cannot be understood counts; what is no export is refused."""

import contextlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.cli.main import main
from localagent.deps import advisories
from localagent.deps.advisories import Matched, match_export
from localagent.errors import UsageFault


def record(*events: dict[str, str], versions: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    package = {"ecosystem": "PyPI", "name": "Some_Thing"}
    return {"id": "X-1", "affected": [{"package": package, "ranges": ranges, "versions": list(versions)}], **more}


def matched(tmp_path: Path, data: bytes | object, version: str = "2.0") -> Matched:
    path = tmp_path / "export"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return match_export(path, {"some-thing": version})


FROM, UNTIL, LAST = ({"introduced": "1.5"}, {"fixed": "2.1"}, {"last_affected": "2.0"})


@pytest.mark.parametrize(
    ("events", "version", "hit"),
    [
        (({"introduced": "0"},), "2.0", True),
        ((FROM, UNTIL), "2.0", True),
        ((FROM, UNTIL), "1.5", True),
        ((FROM, UNTIL), "2.1", False),
        ((FROM, UNTIL), "2.1rc1", True),
        ((FROM, UNTIL), "1.4.9", False),
        ((FROM, LAST), "2.0", True),
        ((FROM, LAST), "2.0.1", False),
        ((UNTIL, FROM), "2.0", True),
        ((FROM, UNTIL, {"introduced": "3"}, {"fixed": "3.2"}), "3.1", True),
        ((FROM, UNTIL, {"introduced": "3"}, {"fixed": "3.2"}), "2.5", False),
    ],
)
def test_ranges(tmp_path: Path, events: tuple[dict[str, str], ...], version: str, hit: bool) -> None:
    found = matched(tmp_path, record(*events), version).findings
    assert [f.certain for f in found] == ([True] if hit else [])


def test_every_form_of_an_export(tmp_path: Path) -> None:
    one = record(FROM, UNTIL, modified="2026-01-02T00:00:00Z", summary="bad")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("X-1.json", json.dumps(one))
        archive.writestr("notes.txt", "no record")
    lines = (json.dumps(one) + "\n").encode() * 2
    for data, count in ((one, 1), ([one, one], 2), ({"vulns": [one]}, 1), (lines, 2), (packed.getvalue(), 1)):
        found = matched(tmp_path, data)
        assert (found.records, found.newest) == (count, "2026-01-02T00:00:00Z")
        assert {(f.id, f.package, f.version, f.fixed, f.summary) for f in found.findings} == {
            ("X-1", "some-thing", "2.0", ("2.1",), "bad")
        }


def test_what_does_not_concern_us(tmp_path: Path) -> None:
    other = record(FROM)
    other["affected"][0]["package"]["ecosystem"] = "npm"
    listed = record(versions=("1.0",))
    withdrawn = record(FROM, withdrawn="2026-01-01T00:00:00Z")
    assert matched(tmp_path, [other, listed, withdrawn]).findings == ()
    assert matched(tmp_path, record(versions=("2",))).findings[0].certain


@pytest.mark.parametrize(
    "entry",
    [
        {"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]},
        {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "not a version"}]}]},
        {"ranges": [{"type": "ECOSYSTEM"}]},
        {"ranges": ["words"]},
        {"ranges": {}},
        {},
    ],
)
def test_what_cannot_be_understood_counts(tmp_path: Path, entry: dict[str, Any]) -> None:
    broken = {"id": "X-2", "affected": [{"package": {"ecosystem": "PyPI", "name": "some-thing"}, **entry}]}
    found = matched(tmp_path, [broken]).findings
    assert [(f.id, f.certain) for f in found] == [("X-2", False)]


@pytest.mark.parametrize(
    "data", [b"", b"words", b"[1]", b"[]", b'{"a": 1}', b"[" * 100_000, b"PK\x03\x04 no zip", b'{"id": 4}', b"\xff\xfe"]
)
def test_no_export(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageFault):
        matched(tmp_path, data)


def _packed(method: int = zipfile.ZIP_STORED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("X-1.json", json.dumps(record(FROM)) * 3)
    return packed.getvalue()


def _with(data: bytes, place: int, new: bytes) -> bytes:
    return data[:place] + new + data[place + len(new) :]


def _hostile_zips() -> dict[str, bytes]:
    plain, pressed = _packed(), _packed(zipfile.ZIP_LZMA)
    listed = plain.index(b"PK\x01\x02")
    named = _with(_with(plain, listed + 8, b"\x00\x08"), listed + 46, b"\xff")  # the flag for UTF-8, and what is none
    body = pressed.index(b"X-1.json") + len(b"X-1.json")
    return {
        "a name that is no UTF-8": named,
        "a place before the file": _with(plain, listed + 42, b"\xf0\xff\xff\xff"),
        "a list before the file": _with(plain, plain.index(b"PK\x05\x06") + 16, b"\xff\xff\xff\x7f"),
        "LZMA of unknown filters": _with(pressed, body + 4, b"\xff"),
        "LZMA that is damaged": _with(pressed, body + 10, b"\xff" * 12),
        "a method nobody knows": _with(plain, listed + 10, b"\x63\x00"),
        "cut": plain[: len(plain) // 2],
    }


@pytest.mark.parametrize("name", _hostile_zips())
def test_a_hostile_zip_is_no_export_and_no_bug_of_ours(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageFault, match=r"not a \.zip that can be read"):
        matched(tmp_path, _hostile_zips()[name])


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), method=st.sampled_from([0, 8, 12, 14]))
def test_any_byte_of_a_zip_may_be_another(place: int, byte: int, method: int) -> None:
    data = _packed(method)
    altered = _with(data, place % len(data), bytes([byte]))
    with contextlib.suppress(UsageFault):
        list(advisories.records(altered, "export"))


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b" " * (advisories.MAX_RECORD_BYTES + 1))
    with pytest.raises(UsageFault, match="larger than"):
        matched(tmp_path, packed.getvalue())
    monkeypatch.setattr(advisories, "MAX_RECORDS", 1)
    with pytest.raises(UsageFault, match="more than 1 records"):
        matched(tmp_path, [record(FROM), record(FROM)])


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["package", "ranges", "events", "versions", "type", "introduced", "ecosystem", "name"]), x, max_size=4))  # fmt: skip # noqa: E501


@pytest.mark.long
@given(affected=JSON)
def test_any_shape_is_a_finding_or_none_and_never_a_crash(affected: Any) -> None:
    for found in advisories._findings({"id": "X", "affected": affected}, {"some-thing": "2.0"}):
        assert found.id == "X"


@pytest.mark.long
def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hit = record({"introduced": "0"}, summary="a \x1b[31mred\x1b[0m one")
    hit["affected"][0]["package"]["name"] = "libcst"
    path = tmp_path / "osv.json"
    path.write_text(json.dumps([hit]))
    assert main(["doctor", "--osv", str(path)]) == 1
    said = capsys.readouterr().out
    assert "X-1: libcst" in said
    assert "\x1b" not in said
    path.write_text(json.dumps([record({"introduced": "0"})]))
    assert main(["doctor", "--osv", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert main(["doctor", "--osv", str(path), "--attack"]) == 2
