"""What can be left out of a data file: members of JSON, columns and rows of CSV, lines, characters, bytes.

Not promised: that a document keeps its layout; JSON is written anew once a member of it goes.
"""

import csv
import io
import json
from collections.abc import Collection, Iterator
from typing import Any

from localagent.reproduce.source_units import UnitGroup, UnitKind

LARGEST_BYTES = 1 << 20
_BLOCK_BYTES = 256
_FINE_LINES = 40  # in a file of more, characters are not tried one by one


def data_groups(name: str, data: bytes) -> list[UnitGroup]:
    """All groups of a file's parts, large ones first."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return list(_byte_groups(data))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict | list):
        return list(_json_groups(document))
    delimiter = {"csv": ",", "tsv": "\t"}.get(name.rsplit(".", 1)[-1].lower())
    columns = _column_group(text, delimiter) if delimiter is not None else None
    return [*_line_groups(text), *([columns] if columns is not None else [])]


def _group(parts: list[Any], render: Any, kind: UnitKind = UnitKind.ELEMENT) -> UnitGroup:
    return UnitGroup(kind=kind, count=len(parts), render=lambda kept: render([parts[i] for i in sorted(kept)]))


def _json_groups(document: Any) -> Iterator[UnitGroup]:
    """A group for each object, array and text, outer ones first."""
    waiting: list[tuple[Any, ...]] = [()]
    while waiting:
        path = waiting.pop(0)
        node = _at(document, path)
        if isinstance(node, dict):
            yield _group(list(node), lambda keys, p=path, n=node: _json(document, p, {k: n[k] for k in keys}))
            waiting += [(*path, key) for key in node]
        elif isinstance(node, list):
            yield _group(list(node), lambda members, p=path: _json(document, p, members))
            waiting += [(*path, index) for index in range(len(node))]
        elif isinstance(node, str) and node:
            yield _group(list(node), lambda chars, p=path: _json(document, p, "".join(chars)), UnitKind.LITERAL)
        elif isinstance(node, int | float) and node and not isinstance(node, bool):
            yield _group([node], lambda left, p=path: _json(document, p, left[0] if left else 0), UnitKind.LITERAL)


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def _json(document: Any, path: tuple[Any, ...], value: Any) -> bytes:
    return json.dumps(_replaced(document, path, value)).encode()


def _replaced(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    if isinstance(node, dict):
        return {key: _replaced(v, path[1:], value) if key == path[0] else v for key, v in node.items()}
    return [_replaced(v, path[1:], value) if index == path[0] else v for index, v in enumerate(node)]


def _column_group(text: str, delimiter: str) -> UnitGroup | None:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        return None
    width = max((len(row) for row in rows), default=0)

    def render(kept: Collection[int]) -> bytes:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        writer.writerows([[cell for index, cell in enumerate(row) if index in kept] for row in rows])
        return out.getvalue().encode()

    return UnitGroup(kind=UnitKind.ELEMENT, count=width, render=render) if width > 1 else None


def _line_groups(text: str) -> Iterator[UnitGroup]:
    lines = text.splitlines(keepends=True)
    yield _group(lines, lambda left: "".join(left).encode())
    if len(lines) <= _FINE_LINES:
        for index, line in enumerate(lines):
            before, after = "".join(lines[:index]), "".join(lines[index + 1 :])
            yield _group(list(line), lambda left, b=before, a=after: (b + "".join(left) + a).encode(), UnitKind.LITERAL)


def _byte_groups(data: bytes) -> Iterator[UnitGroup]:
    blocks = [data[at : at + _BLOCK_BYTES] for at in range(0, len(data), _BLOCK_BYTES)]
    if len(blocks) > 1:
        yield _group(blocks, b"".join)
    if len(data) <= 16 * _BLOCK_BYTES:
        yield _group(list(data), bytes, UnitKind.LITERAL)
