"""What the index stores of one file: computed in a confined child from path and bytes alone, handed over as JSON."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from localagent.code.graph.collect_facts import collect_facts
from localagent.code.graph.facts import FORMAT as FACTS_FORMAT
from localagent.code.graph.facts import DefinitionHead, Unreadable, encoded, encoded_heads, head_of
from localagent.code.index.chunks import PYTHON, Chunk, ChunkKind, chunks_of
from localagent.code.index.identifiers import terms
from localagent.code.index.languages import installed_languages, language_chunks
from localagent.code.source_text import parse_or_reason

# Raised whenever what is extracted changes: an index of another format is built anew.
FORMAT = ".".join(("3", str(FACTS_FORMAT), *installed_languages()))
_NOISE_TEXT = """
and as assert async await break case class continue def del elif else except false finally for from global if
import in is lambda none nonlocal not or pass raise return self cls true try while with yield
"""
_NOISE = frozenset(_NOISE_TEXT.split())
_BINARY_PREFIX = 8192
FIELDS = ("name", "path", "docs", "strings", "code")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredChunk:
    """A chunk as it is stored: `fields` are its terms, joined by blanks, in the order of FIELDS.

    `in_facts`: signature and summary are those of the definition of this name and these lines in the file's facts, and
    empty here.
    """

    kind: ChunkKind
    first_line: int
    last_line: int
    name: str
    signature: str
    summary: str
    fields: tuple[str, ...]
    in_facts: bool = False


def extract(path: str, raw: bytes) -> dict[str, object]:
    """The chunks of a file and, of Python, its facts (`code.graph.facts`), as JSON; `note` says what it has not."""
    if b"\0" in raw[:_BINARY_PREFIX]:  # as git decides it
        return {"chunks": []}
    tree = parse_or_reason(raw) if path.endswith(PYTHON) else None
    chunks = language_chunks(path, raw) or chunks_of(path, raw, None if isinstance(tree, str) else tree)
    if tree is None:
        return {"chunks": _rows(path, chunks)}
    facts = collect_facts(raw, tree)
    if isinstance(facts, Unreadable):
        return {"chunks": _rows(path, chunks), "note": f"{facts.reason}: searched as text"}
    heads = {head[:3]: head for head in map(head_of, facts.definitions)}
    return {
        "chunks": _rows(path, chunks, heads),
        "facts": base64.b64encode(encoded(facts)).decode("ascii"),
    }


def extract_text(path: str, raw: bytes) -> dict[str, object]:
    """The same of a file at which a parser fails: windows of its text."""
    return {"chunks": _rows(path, chunks_of(path, raw))}


def stored_chunks(value: object, facts: bytes) -> list[StoredChunk]:
    """What `extract` returned, read back; `facts` are those of the file. ValueError for anything else."""
    if not isinstance(value, dict) or not isinstance(rows := value.get("chunks"), list):
        raise ValueError("no chunks")
    chunks = [_stored(row) for row in rows]
    known = {head[:3] for head in encoded_heads(facts)} if facts else set()
    if any(chunk.in_facts and location_of(chunk) not in known for chunk in chunks):
        raise ValueError("a head that the facts do not have")
    return chunks


def stored_facts(value: object) -> bytes:
    """The facts of a Python file as they are stored; empty for other files. ValueError for what is none."""
    facts = value.get("facts", "") if isinstance(value, dict) else ""
    if not isinstance(facts, str):
        raise ValueError("no facts")
    return base64.b64decode(facts, validate=True)


def stored_note(value: object) -> str:
    """Why a file is searched as text alone; empty where it is not. ValueError for what is no text."""
    note = value.get("note", "") if isinstance(value, dict) else ""
    if not isinstance(note, str):
        raise ValueError("no note")
    return note


def _stored(row: object) -> StoredChunk:
    match row:
        case [str(kind), int(first), int(last), str(name), str(signature), str(summary), [*fields], bool(known)] if all(
            isinstance(field, str) for field in fields
        ) and len(fields) == len(FIELDS):
            return StoredChunk(
                kind=ChunkKind(kind), first_line=first, last_line=last, name=name, signature=signature,
                summary=summary, fields=tuple(map(str, fields)), in_facts=known,
            )  # fmt: skip
    raise ValueError("not a chunk")


def _rows(
    path: str, chunks: Iterable[Chunk], heads: Mapping[tuple[str, int, int], DefinitionHead] = MappingProxyType({})
) -> list[list[object]]:
    where = " ".join(terms(path))
    return [_row(chunk, where, heads.get(location_of(chunk))) for chunk in chunks]


def location_of(chunk: Chunk | StoredChunk) -> tuple[str, int, int]:
    """Name and lines, by which the facts know a definition."""
    return chunk.name.rpartition(".")[2], chunk.first_line, chunk.last_line


def _row(chunk: Chunk, where: str, head: DefinitionHead | None) -> list[object]:
    text = chunk.text
    code = [term for term in terms(" ".join(text.code)) if term not in _NOISE]
    fields = [
        " ".join(terms(text.name)),
        where,
        " ".join(terms("\n".join(text.docs))),
        " ".join(terms("\n".join(text.strings))),
        " ".join(code),
    ]
    told = (chunk.signature[:500], chunk.summary)
    in_facts = head is not None and told == (head.signature, head.doc)
    kept = (chunk.name[:300], *(("", "") if in_facts else told))
    return [chunk.kind.value, chunk.first_line, chunk.last_line, *map(_utf8, kept), fields, in_facts]


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
