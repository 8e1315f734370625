"""Repair cases as text that a person can read and edit: `cases/NAME.case`.

A case is a head (`case:`, `kind:`) and sections, each begun by a line `--- file PATH`, `--- visible PATH`,
`--- hidden PATH` or `--- fix PATH`. A fix holds one or more replacements, `<<<<` wrong `====` right `>>>>`; the wrong
text stands exactly once in the file. The corrected files are the oracle. Nothing here runs a case.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

CASES = Path(__file__).resolve().parent / "cases"
BUILT = CASES / "own.jsonl"
PYPROJECT = '[project]\nname = "case"\nversion = "0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
_SECTION = re.compile(r"^--- (file|visible|hidden|fix) (\S+)\n", re.MULTILINE)
_REPLACE = re.compile(r"<<<<\n(.*?\n)====\n(.*?\n)>>>>\n", re.DOTALL)


class CaseError(ValueError):
    """A case file that cannot be used; says which and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One small broken project, the tests it comes with, and those that only the judge has.

    `expect` says how many tests the oracle passes with the visible, and with all tests; empty until counted.
    """

    id: str
    kind: str
    files: dict[str, str]
    visible: dict[str, str]
    hidden: dict[str, str]
    oracle: dict[str, str]
    expect: dict[str, int] = field(default_factory=dict)

    @property
    def project(self) -> dict[str, str]:
        """Everything the repository under repair holds."""
        return {"pyproject.toml": PYPROJECT, **self.files, **self.visible}

    def as_json(self) -> str:
        """One line of the built file."""
        names = ("id", "kind", "files", "visible", "hidden", "oracle", "expect")
        return json.dumps({name: getattr(self, name) for name in names}, ensure_ascii=True)


def parse(text: str, origin: str) -> Case:
    """Reads a case file. CaseError for anything unexpected."""
    head, *pieces = _SECTION.split(text)
    fields = dict(line.split(": ", 1) for line in head.splitlines() if line.strip())
    parts: dict[str, dict[str, str]] = {"file": {}, "visible": {}, "hidden": {}, "fix": {}}
    for section, path, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        if path in parts[section] or PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise CaseError(f"{origin}: {section} {path}: named twice, or outside the project")
        parts[section][path] = body
    if set(fields) != {"case", "kind"} or not all(parts.values()):
        raise CaseError(f"{origin}: needs `case:`, `kind:`, and at least one file, visible, hidden and fix section")
    oracle = {
        path: _fixed(parts["file"].get(path, ""), body, f"{origin}: {path}") for path, body in parts["fix"].items()
    }
    return Case(
        id=fields["case"],
        kind=fields["kind"],
        files=parts["file"],
        visible=parts["visible"],
        hidden=parts["hidden"],
        oracle=oracle,
    )


def _fixed(source: str, fix: str, where: str) -> str:
    if _REPLACE.sub("", fix).strip():
        raise CaseError(f"{where}: text outside of <<<< ==== >>>>")
    for wrong, right in _REPLACE.findall(fix):
        # A fragment may be a part of a line: its own last line end does not count.
        if source.count(wrong[:-1]) != 1:
            raise CaseError(f"{where}: stands {source.count(wrong[:-1])} times, not once: {wrong!r}")
        source = source.replace(wrong[:-1], right[:-1])
    return source


def read_all(folder: Path = CASES) -> list[Case]:
    """All case files, by name. CaseError if a file's name is not its case's."""
    found = []
    for path in sorted(folder.glob("*.case")):
        case = parse(path.read_text(encoding="utf-8"), path.name)
        if case.id != path.stem:
            raise CaseError(f"{path.name}: calls itself {case.id}")
        found.append(case)
    return found


def read_built(path: Path) -> list[Case]:
    """The cases of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [Case(**json.loads(line)) for line in lines if line.strip()]
