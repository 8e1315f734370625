"""Wheels made to harm: each is refused with its own reason before anything is unpacked; no bytes break the reader."""

import contextlib
import io
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.wheel_builder import encoded, record_of, wheel_files, write_wheel, zipped

from localagent.deps import archive as archives
from localagent.deps.archive import WheelRefused
from localagent.deps.wheel import read_wheel

INFO = "frob-1.0.dist-info"
Members = dict[str, bytes]


def why(folder: Path, data: bytes, name: str = "frob-1.0-py3-none-any.whl") -> str:
    path = folder / name
    path.write_bytes(data)
    with pytest.raises(WheelRefused) as caught:
        read_wheel(path)
    return str(caught.value)


def with_member(name: str, data: bytes = b"x", *, mode: int = 0) -> bytes:
    """A wheel with one more member, recorded as it should be."""
    members = wheel_files()
    members[name] = data
    members[f"{INFO}/RECORD"] = record_of({n: d for n, d in members.items() if n != f"{INFO}/RECORD"}, INFO)
    out: list[tuple[str | zipfile.ZipInfo, bytes]] = []
    for held, content in members.items():
        info = zipfile.ZipInfo(held)
        info.filename = held  # as it is, whatever ZipInfo would make of it
        info.external_attr = (mode if held == name else 0o100644) << 16
        out.append((info, content))
    return zipped(out)


def test_a_sound_wheel_is_read(tmp_path: Path) -> None:
    wheel = read_wheel(write_wheel(tmp_path))
    assert (wheel.name, wheel.version, len(wheel.files)) == ("frob", "1.0", 3)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.py", "leads out of its folder"),
        ("a/../../evil.py", "leads out of its folder"),
        ("/etc/evil", "an absolute path"),
        ("c:/evil", "an absolute path"),
        ("a\\..\\evil.py", "backslashes or control characters"),
        ("a//b.py", "is not plain"),
        ("./a.py", "is not plain"),
        ("a\nb.py", "control characters"),
        ("a\u202eyp.txt", "control characters"),
        ("a/" * 40 + "x.py", "too long or too deep"),
        ("x" * 300 + ".py", "too long or too deep"),
        ("frob-1.0.data/evil/x", "not a place that a wheel may name"),
        ("other-1.0.data/purelib/x.py", "not a place that a wheel may name"),
        ("frob-1.0.data/data/lib/python3/site-packages/x.py", "data may lie below share or etc only"),
        ("frob-1.0.data/purelib/os.py", "would shadow 'os' of the standard library"),
        ("json/__init__.py", "would shadow 'json' of the standard library"),
        ("_ssl.cpython-311-x86_64-linux-gnu.so", "would shadow '_ssl'"),
        ("sitecustomize.py", "would run at each start of Python"),
        ("usercustomize/__init__.py", "would run at each start of Python"),
        ("frob/__pycache__/x.cpython-311.pyc", "compiled code beside its source"),
        ("frob-1.0.data/purelib/other-2.0.dist-info/METADATA", "metadata of another distribution"),
        ("other.egg-info/PKG-INFO", "metadata of another distribution"),
        ("frob-1.0.data/platlib/frob/__init__.py", "would be written over"),
        ("frob/__init__.py/x", "a file and a folder"),
        ("zork-1.0.dist-info/METADATA", "2 folders .dist-info"),
    ],
)
def test_places_that_no_wheel_may_name(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in why(tmp_path, with_member(name))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (stat.S_IFLNK | 0o777, "a link"),
        (stat.S_IFIFO | 0o644, "neither a regular file nor a folder"),
        (stat.S_IFCHR | 0o644, "neither a regular file nor a folder"),
        (stat.S_IFDIR | 0o755, "neither a regular file nor a folder"),
    ],
)
def test_members_that_are_no_files(tmp_path: Path, mode: int, reason: str) -> None:
    assert reason in why(tmp_path, with_member("frob/x", b"/etc/passwd", mode=mode))


def changed(change: Callable[[Members], None]) -> bytes:
    members = wheel_files()
    change(members)
    return zipped(members.items())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.update({"frob/__init__.py": b"evil"}), "frob/__init__.py: is not what RECORD says"),
        (lambda m: m.update({"frob/more.py": b""}), "frob/more.py is not in RECORD"),
        (lambda m: m.pop("frob/__init__.py"), "frob/__init__.py is in RECORD but not there"),
        (lambda m: m.pop(f"{INFO}/RECORD"), f"{INFO}/RECORD is missing"),
        (lambda m: m.update({f"{INFO}/RECORD": b"\xff"}), "RECORD cannot be read"),
        (lambda m: m.update({f"{INFO}/RECORD": b"a,b\n"}), "'a,b' is no entry"),
        (lambda m: m.update({f"{INFO}/RECORD": m[f"{INFO}/RECORD"] * 2}), "stands twice"),
        (lambda m: m.update({f"{INFO}/RECORD": b"../x,,\n" + m[f"{INFO}/RECORD"]}), "'../x,,' is no entry"),
        (
            lambda m: m.update({f"{INFO}/RECORD": m[f"{INFO}/RECORD"].replace(b"sha256=", b"md5=")}),
            "no digest that is good enough ('md5')",
        ),
        (
            lambda m: m.update({f"{INFO}/RECORD": m[f"{INFO}/RECORD"].replace(encoded(b"x = 1\n").encode(), b"")}),
            "no digest that is good enough ('none')",
        ),
        (
            lambda m: m.update({f"{INFO}/RECORD": m[f"{INFO}/RECORD"].replace(b",6\n", b",7\n")}),
            "has not the size that RECORD says",
        ),
        (lambda m: m.pop(f"{INFO}/METADATA"), f"{INFO}/METADATA is missing"),
        (lambda m: m.pop(f"{INFO}/WHEEL"), f"{INFO}/WHEEL is missing"),
        (lambda m: m.update({f"{INFO}/WHEEL": b"Wheel-Version: 2.0\n"}), "a wheel of version '2.0'"),
        (
            lambda m: m.update({f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: requests\nVersion: 1.0\n"}),
            "its METADATA says 'requests' '1.0'",
        ),
        (
            lambda m: m.update({f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: frob\nVersion: 2.0\n"}),
            "its METADATA says 'frob' '2.0'",
        ),
    ],
)
def test_metadata_that_does_not_agree(tmp_path: Path, change: Callable[[Members], None], reason: str) -> None:
    assert reason in why(tmp_path, changed(change))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("zork-1.0-py3-none-any.whl", "which is another name or version"),
        ("frob-2.0-py3-none-any.whl", "which is another name or version"),
        ("frob.whl", "not the name of a wheel"),
        ("frob-1.0-1x-2-py3-none-any.whl", "not the name of a wheel"),
    ],
)
def test_a_file_name_that_lies(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in why(tmp_path, zipped(wheel_files().items()), name)


def test_entry_points_that_cannot_be_read(tmp_path: Path) -> None:
    members = wheel_files(entry_points="no section")
    assert "entry_points.txt cannot be read" in why(tmp_path, zipped(members.items()))


def test_a_bomb_is_seen_in_its_directory(tmp_path: Path) -> None:
    bomb = zipped([*wheel_files().items(), ("frob/zeros", bytes(40 << 20))])
    assert len(bomb) < 100_000
    assert "as only a bomb does" in why(tmp_path, bomb)


def test_members_that_lie_over_each_other(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, data in wheel_files().items():
            made.writestr(name, data)
        first, *_, last = made.filelist
        last.header_offset = first.header_offset
    assert "lies over another member" in why(tmp_path, stream.getvalue())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice(tmp_path: Path) -> None:
    members = [*wheel_files().items(), ("frob/__init__.py", b"other")]
    assert "'frob/__init__.py': stands twice" in why(tmp_path, zipped(members))


def test_too_many_members_or_too_large_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = zipped([*wheel_files().items(), *((f"frob/{n}.py", b"") for n in range(200))])
    monkeypatch.setattr(archives, "MOST_DIRECTORY_BYTES", 1000)
    assert "a directory of" in why(tmp_path, crowd)
    monkeypatch.setattr(archives, "MOST_MEMBERS", 100)
    assert "204 members, more than 100" in why(tmp_path, crowd)
    monkeypatch.undo()
    count = crowd.rindex(b"PK\x05\x06") + 8
    assert "60,000 members" in why(tmp_path, crowd[:count] + struct.pack("<2H", 60_000, 60_000) + crowd[count + 4 :])
    assert "ZIP64" in why(tmp_path, crowd[:count] + b"\xff" * 4 + crowd[count + 4 :])


def test_sizes_that_lie(tmp_path: Path) -> None:
    data = bytearray(zipped(wheel_files().items()))
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<L", 3)
    assert "frob/__init__.py is damaged: Bad CRC-32" in why(tmp_path, bytes(data))
    data[entry + 24 : entry + 28] = struct.pack("<L", 100)
    assert "does not hold the 100 bytes that its directory says" in why(tmp_path, bytes(data))
    data[entry + 24 : entry + 28] = struct.pack("<L", 3 << 30)
    assert "more than" in why(tmp_path, bytes(data))


def test_a_name_that_readers_understand_differently(tmp_path: Path) -> None:
    data = with_member("frob/x.py@.txt").replace(b"frob/x.py@.txt", b"frob/x.py\0.txt")
    assert "a name that readers understand differently" in why(tmp_path, data)


def test_a_second_end_record_is_refused(tmp_path: Path) -> None:
    data = zipped(wheel_files().items())
    at = data.rindex(b"PK\x05\x06")
    assert "ZIP64" in why(tmp_path, data[:at] + b"PK\x06\x07" + bytes(16) + data[at:])


def test_encryption_and_strange_compression(tmp_path: Path) -> None:
    data = bytearray(zipped(wheel_files().items()))
    entry = data.index(b"PK\x01\x02")
    flagged = data.copy()
    flagged[entry + 8] |= 1
    assert "encrypted" in why(tmp_path, bytes(flagged))
    data[entry + 10 : entry + 12] = struct.pack("<H", zipfile.ZIP_LZMA)
    assert "compressed by method 14" in why(tmp_path, bytes(data))


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06", b"\x00" * 100, b"PK\x05\x06" + b"\x01" * 10 + b"\0" * 8])
def test_what_is_no_zip(tmp_path: Path, data: bytes) -> None:
    assert "not a ZIP file" in why(tmp_path, data)


@pytest.mark.long
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.sampled_from(["METADATA", "WHEEL", "entry_points.txt"]),
    data=st.binary(max_size=60) | st.text(alphabet="[]=:%\n\r Nname-Versio1.0wheel", max_size=60).map(str.encode),
    keep=st.booleans(),
)
def test_no_metadata_breaks_the_reader(tmp_path: Path, name: str, data: bytes, keep: bool) -> None:
    members = wheel_files()
    before = members.get(f"{INFO}/{name}", b"[console_scripts]\n") if keep else b""
    members[f"{INFO}/{name}"] = before + data
    del members[f"{INFO}/RECORD"]
    members[f"{INFO}/RECORD"] = record_of(members, INFO)
    path = tmp_path / "frob-1.0-py3-none-any.whl"
    path.write_bytes(zipped(members.items()))
    with contextlib.suppress(WheelRefused):
        assert read_wheel(path).name == "frob"


SOUND = zipped(wheel_files(entry_points="[console_scripts]\nx = frob:x\n").items())


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.integers(0, len(SOUND) - 1), bits=st.integers(1, 255), cut=st.integers(0, 40))
def test_no_damage_breaks_the_reader(tmp_path: Path, at: int, bits: int, cut: int) -> None:
    data = bytearray(SOUND)
    data[at] ^= bits
    path = tmp_path / "frob-1.0-py3-none-any.whl"
    path.write_bytes(bytes(data[: len(data) - cut]))
    with contextlib.suppress(WheelRefused):
        wheel = read_wheel(path)
        assert {file.path: file.sha256 for file in wheel.files}  # what is still read agrees with RECORD
