"""The pytest file that a reduced program becomes: of a test its own source, of a script one that runs it.

Data files are written by the file itself into a temporary folder: the literal that names one gives way to a call.
Not promised: that a name made up of several literals is found.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from localagent.code.source_text import line_starts, parse_or_none
from localagent.code.spans import byte_span, last_line, lines_of
from localagent.domain.paths import RepoPath

_WRITER = """\
def _input_file(name, data):
    path = os.path.join(tempfile.mkdtemp(), os.path.basename(name))
    with open(path, "wb") as file:
        file.write(data)
    return path

"""
_SCRIPT_TEST = """\
{imports}

{inputs}PROGRAM = {program}


def {test}({fixtures}):
    {argv}exec(compile(PROGRAM, {name}, "exec"), {{"__name__": "__main__", "__file__": {name}}})
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What is reduced: a source, and the data files that it reads, by the name that it reads them by."""

    source: bytes
    inputs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of the source and of all data."""
        return len(self.source) + sum(map(len, self.inputs.values()))


def slug(name: str) -> str:
    """A name for a Python file out of any name."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()[:60] or "failure"


def test_file(program: Program) -> bytes:
    """A reduced test as a file; its inputs stand where their names stood."""
    if not program.inputs:
        return program.source
    tree = parse_or_none(program.source)
    if tree is None:
        return program.source
    starts = line_starts(program.source)
    text = program.source
    named = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value in program.inputs]
    for node in sorted(named, key=lambda n: byte_span(n, starts), reverse=True):
        begin, end = byte_span(node, starts)
        call = f"_input_file({node.value!r}, {program.inputs[str(node.value)]!r})".encode()
        text = text[:begin] + call + text[end:]
    future = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    at = starts[last_line(future[-1])] if future else 0
    return text[:at] + b"import os\nimport tempfile\n\n\n" + _WRITER.encode() + b"\n" + text[at:]


test_file.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A script of the repository; `arguments` come before the names of the inputs."""

    path: RepoPath
    arguments: tuple[str, ...] = ()

    @property
    def test_name(self) -> str:
        """Of the test that runs it."""
        return f"test_reproduce_{slug(self.path.name.removesuffix('.py'))}"

    def test_file(self, program: Program) -> bytes:
        """A test that runs the script's source with the inputs as arguments."""
        names = list(program.inputs)
        argv, inputs, imports, fixtures = "", "", "", ""
        for number, name in enumerate(names, 1):
            inputs += f"INPUT_{number} = {_shown(program.inputs[name])}\n"
            base = name.rsplit("/", 1)[-1]
            argv += f"input_{number} = tmp_path / {base!r}\n    input_{number}.write_bytes(INPUT_{number})\n    "
        if names or self.arguments:
            imports, fixtures = "import sys\n", "tmp_path, monkeypatch"
            given = ", ".join([repr(a) for a in self.arguments] + [f"str(input_{n})" for n in range(1, len(names) + 1)])
            argv += f'monkeypatch.setattr(sys, "argv", [{str(self.path)!r}, {given}])\n    '
        return (
            _SCRIPT_TEST.format(
                imports=imports,
                inputs=inputs,
                program=_shown_text(program.source),
                test=self.test_name,
                fixtures=fixtures,
                argv=argv,
                name=repr(str(self.path)),
            )
            .lstrip()
            .encode()
        )


def _shown(data: bytes) -> str:
    """A bytes literal, line by line where it has lines."""
    lines = data.splitlines(keepends=True)
    if len(lines) <= 1:
        return repr(data)
    return "(\n" + "".join(f"    {line!r}\n" for line in lines) + ")"


def _shown_text(source: bytes) -> str:
    """The source between triple quotes where it can be read so."""
    text = source.decode("utf-8", "replace")
    if "'''" in text or "\\" in text or (not text.isprintable() and not text.replace("\n", "").isprintable()):
        return _shown(source)
    return "'''\\\n" + text + ("" if text.endswith("\n") else "\n") + "'''"


def without_comments(source: bytes) -> bytes:
    """A source without lines that are comments, and without more than two blank lines in a row."""
    tree = parse_or_none(source)
    if tree is None:
        return source
    inside = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant | ast.JoinedStr) and last_line(node) > node.lineno
        for line in lines_of(node)
    }
    kept: list[bytes] = []
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        blank = not line.strip() and number not in inside
        comment = line.lstrip().startswith(b"#") and number not in inside
        if not comment and not (blank and all(not before.strip() for before in kept[-2:])):
            kept.append(line)
    return b"".join(kept).rstrip() + b"\n"
