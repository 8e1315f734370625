"""The edit space is asked whether it holds people's fix."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.real import layout, reach  # noqa: E402

BEFORE = b"def clamp(x, low, high):\n    if x > high:\n        return low\n    return max(x, low)\n"


def _ranked(tmp_path: Path, after: bytes, lines: set[int]) -> int | None:
    (tmp_path / "clamp.py").write_bytes(BEFORE)
    return reach.rank_in_space(
        tmp_path, layout.TrueFix(lines={"clamp.py": frozenset(lines)}, after={"clamp.py": after})
    )


def test_a_fix_of_one_edit_has_a_place(tmp_path: Path) -> None:
    rank = _ranked(tmp_path, BEFORE.replace(b"return low", b"# the upper end\n        return high"), {3})
    assert rank is not None
    assert rank >= 1


def test_a_fix_inside_a_class_is_found(tmp_path: Path) -> None:
    inside = b"class A:\n    @staticmethod\n    " + BEFORE.replace(b"\n    ", b"\n        ").replace(
        b"return low\n", b"return low\n"
    )
    (tmp_path / "clamp.py").write_bytes(inside)
    after = inside.replace(b"return low\n", b"return high\n")
    fix = layout.TrueFix(lines={"clamp.py": frozenset({5})}, after={"clamp.py": after})
    assert reach.is_one_edit(tmp_path, fix)


def test_a_fix_of_many_new_parts_has_none(tmp_path: Path) -> None:
    assert _ranked(tmp_path, BEFORE.replace(b"return low", b"return q(high)(1)[z].w"), {3}) is None


def test_a_fix_in_two_files_is_not_one_edit(tmp_path: Path) -> None:
    fix = layout.TrueFix(lines={"a.py": frozenset({1}), "b.py": frozenset({1})}, after={"a.py": b"", "b.py": b""})
    assert reach.rank_in_space(tmp_path, fix) is None
