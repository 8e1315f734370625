"""Repositories and patches for `verify`, in real jails: a patch is made of texts before and after."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fix_builder import Home

CALC = (
    "def clamp(value: int, low: int, high: int) -> int:\n"
    "    if value < low:\n        return low\n    if value > high:\n        return low\n    return value\n"
)
FIXED = CALC.replace("value > high:\n        return low", "value > high:\n        return high")
TESTS = (
    "from calc import clamp\n\n\ndef test_in():\n    assert clamp(5, 0, 10) == 5\n\n\n"
    "def test_low():\n    assert clamp(-5, 0, 10) == 0\n\n\ndef test_high():\n    assert clamp(50, 0, 10) == 10\n"
)
REPO: Mapping[str, str] = {"calc.py": CALC, "test_calc.py": TESTS}


def patch(before: Mapping[str, str], after: Mapping[str, str | None]) -> str:
    """A unified diff from some files to others; None deletes."""
    out = ""
    for name in sorted(after):
        old, new = before.get(name), after[name]
        lines = difflib.unified_diff(
            (old or "").splitlines(keepends=True),
            (new or "").splitlines(keepends=True),
            f"a/{name}" if old is not None else "/dev/null",
            f"b/{name}" if new is not None else "/dev/null",
        )
        mode = "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
        text = "".join(lines)
        if text:
            out += f"diff --git a/{name} b/{name}\n{mode}{text}"
    return out


@dataclass(frozen=True, kw_only=True)
class Said:
    """What `verify` answered."""

    code: int
    out: str
    err: str
    told: dict[str, Any]

    @property
    def verdict(self) -> str:
        return str(self.told["verdict"])

    @property
    def reason(self) -> str:
        return str(self.told["reason"])


def verify(home: Home, text: str, *args: str) -> Said:
    """Run the verb on a patch; the report is what `--report` wrote, {} without one."""
    path, report = home.root / "p.patch", home.root / "verify.json"
    path.write_text(text)
    report.unlink(missing_ok=True)
    with home.start("verify", str(path), "--repo", str(home.repo), "--report", str(report), *args) as process:
        out, err = process.communicate(timeout=240)
    told = json.loads(report.read_bytes()) if report.exists() else {}
    return Said(code=process.returncode, out=out.decode(), err=err.decode(), told=told)
