"""Functions and types of JavaScript, TypeScript, Go, Rust and C, as chunks; by tree-sitter, the extra [languages].

Meant for the confined child: grammars are native code that reads hostile sources. `grammar_folders` says what such a
child must be able to import. Without the extra, or for a file that is minified, `language_chunks` is None, and the file
is searched as text. Not promised: references, calls, and names that macros or assignments to computed keys make.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from localagent.code.index.chunks import Chunk, ChunkKind, ChunkText, fill, in_order

if TYPE_CHECKING:  # not installed everywhere
    from tree_sitter import Node, Parser, Query

_ABOVE = frozenset(("comment", "line_comment", "block_comment", "attribute_item", "decorator"))
# Nodes that begin where a definition does, and have what stands above it as their sibling.
_WRAPS_TEXT = """
export_statement ambient_declaration lexical_declaration variable_declaration type_declaration expression_statement
type_definition declaration
"""
_WRAPS = frozenset(_WRAPS_TEXT.split())
_MINIFIED = 400  # bytes a line, on average
_MOST_HEAD = 2_000  # bytes of a definition that are looked at for its head
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`?)"
    r"|(?P<code>[^\W\d]\w*)",
    re.DOTALL,
)
_SCRIPT_FUNCTIONS = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(method_definition name: (_) @name) @function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: [(identifier) @name (member_expression property: (_) @name)]
  right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(class_declaration name: (_) @name) @class
"""
_TYPESCRIPT = f"""{_SCRIPT_FUNCTIONS}
(function_signature name: (_) @name) @function
(method_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @function
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @function
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(type_alias_declaration name: (_) @name) @class
(internal_module name: (_) @name) @scope
"""
_GO = """
(function_declaration name: (_) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (type_identifier) @owner (pointer_type (type_identifier) @owner)
  (generic_type type: (_) @owner) (pointer_type (generic_type type: (_) @owner))])) name: (_) @name) @function
(type_spec name: (_) @name) @class
(type_alias name: (_) @name) @class
"""
_RUST = """
(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(macro_definition name: (_) @name) @function
(struct_item name: (_) @name) @class
(enum_item name: (_) @name) @class
(union_item name: (_) @name) @class
(trait_item name: (_) @name) @class
(type_item name: (_) @name) @class
(mod_item name: (_) @name) @scope
(impl_item type: [(type_identifier) @name (generic_type type: (_) @name)
  (scoped_type_identifier name: (_) @name)]) @scope
"""
_C_HEAD = "(function_declarator declarator: (identifier) @name)"
_C = f"""
(function_definition declarator: [{_C_HEAD} (pointer_declarator {_C_HEAD})
  (pointer_declarator (pointer_declarator {_C_HEAD}))]) @function
(declaration declarator: [{_C_HEAD} (pointer_declarator {_C_HEAD})
  (pointer_declarator (pointer_declarator {_C_HEAD}))]) @function
(preproc_function_def name: (_) @name) @function
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(type_definition declarator: (type_identifier) @name) @class
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLanguage:
    """A language with its grammar: `module` and the function in it that gives it, and what in a tree defines something.

    A definition is captured as `function`, `class` or `scope` (gives those inside a part of their names, and is none
    itself); with its `name`, and its `owner` where that stands beside it.
    """

    name: str
    module: str
    definitions: str
    grammar: str = "language"


_JAVASCRIPT = SourceLanguage(name="JavaScript", module="tree_sitter_javascript", definitions=_SCRIPT_FUNCTIONS)
_TS = SourceLanguage(
    name="TypeScript", module="tree_sitter_typescript", definitions=_TYPESCRIPT, grammar="language_typescript"
)
_TSX = SourceLanguage(
    name="TypeScript", module="tree_sitter_typescript", definitions=_TYPESCRIPT, grammar="language_tsx"
)
_GOLANG = SourceLanguage(name="Go", module="tree_sitter_go", definitions=_GO)
_RUSTLANG = SourceLanguage(name="Rust", module="tree_sitter_rust", definitions=_RUST)
_CLANG = SourceLanguage(name="C", module="tree_sitter_c", definitions=_C)
LANGUAGES: Mapping[str, SourceLanguage] = {
    ".js": _JAVASCRIPT, ".jsx": _JAVASCRIPT, ".mjs": _JAVASCRIPT, ".cjs": _JAVASCRIPT,
    ".ts": _TS, ".mts": _TS, ".cts": _TS, ".tsx": _TSX,
    ".go": _GOLANG, ".rs": _RUSTLANG, ".c": _CLANG, ".h": _CLANG,
}  # fmt: skip
_KINDS = {"function": ChunkKind.FUNCTION, "class": ChunkKind.CLASS, "scope": None}


def language_of(path: str) -> SourceLanguage | None:
    """The language of a file by its suffix, whether its grammar is installed or not."""
    return LANGUAGES.get(PurePosixPath(path).suffix.lower())


@lru_cache(maxsize=16)
def is_installed(language: SourceLanguage) -> bool:
    """Whether tree-sitter and the grammar can be imported here."""
    return all(importlib.util.find_spec(name) is not None for name in ("tree_sitter", language.module))


def installed_languages() -> tuple[str, ...]:
    """The names of the languages whose symbols are found here, sorted."""
    return tuple(sorted({language.name for language in LANGUAGES.values() if is_installed(language)}))


def grammar_folders() -> dict[str, Path]:
    """The modules of tree-sitter and the installed grammars, each with the folder of the import path that holds it."""
    names = {language.module for language in LANGUAGES.values() if is_installed(language)}
    specs = {name: importlib.util.find_spec(name) for name in ("tree_sitter", *sorted(names)) if names}
    return {name: Path(spec.origin).parents[1] for name, spec in specs.items() if spec is not None and spec.origin}


def language_chunks(path: str, raw: bytes) -> list[Chunk] | None:
    """The functions and types of a file, each without what is nested in it, and the rest; None: search it as text."""
    language = language_of(path)
    if language is None or not is_installed(language) or len(raw) > _MINIFIED * (raw.count(b"\n") + 1):
        return None
    text = raw.decode("utf-8", "replace")
    source = text.encode("utf-8")
    lines = text.split("\n")
    owner = [0] * (len(lines) + 2)
    made = [Chunk(kind=ChunkKind.MODULE, first_line=1, last_line=max(1, len(lines)))]
    for one in _definitions(language, source):
        owner[one.above : one.last + 1] = [len(made)] * (one.last + 1 - one.above)
        made.append(
            Chunk(
                kind=one.kind, first_line=one.first, last_line=one.last, name=one.name, signature=one.signature,
                summary=_summary(lines[one.above - 1 : one.first - 1]), text=ChunkText(name=one.name),
            )
        )  # fmt: skip
    fill(made, owner, text, _TOKEN)
    return in_order(made)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Definition:
    """Lines from 1, both ends included; `above` is where the comments and attributes before it begin."""

    kind: ChunkKind
    name: str
    signature: str
    above: int
    first: int
    last: int


@lru_cache(maxsize=16)
def _parser(language: SourceLanguage) -> tuple[Parser, Query]:
    """The parser, and the query for definitions."""
    sitter = importlib.import_module("tree_sitter")
    grammar = sitter.Language(getattr(importlib.import_module(language.module), language.grammar)())
    return sitter.Parser(grammar), sitter.Query(grammar, language.definitions)


def _definitions(language: SourceLanguage, source: bytes) -> Iterator[_Definition]:
    """What a source defines, outer ones before those inside, named by what they stand in."""
    sitter = importlib.import_module("tree_sitter")
    parser, query = _parser(language)
    matches = (captured for _, captured in sitter.QueryCursor(query).matches(parser.parse(source).root_node))
    found = [(next((c, *m[c]) for c in _KINDS if c in m), m) for m in matches]
    found.sort(key=lambda one: (one[0][1].start_byte, -one[0][1].end_byte))
    around: list[tuple[int, str]] = []
    seen: set[int] = set()
    for (capture, node, *_), captured in found:
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        own = [_text(n) for key in ("owner", "name") for n in captured.get(key, ())[:1]]
        name = ".".join([*(part for _, part in around[-1:]), *own])
        if node.type != "type_definition":  # C: `typedef struct a {...} b`, which defines both
            around.append((node.end_byte, name))
        kind = _KINDS[capture]
        if kind is None or node.start_byte in seen:
            continue
        seen.add(node.start_byte)
        whole = _whole(node)
        text = source[whole.start_byte : min(node.end_byte, whole.start_byte + _MOST_HEAD)]
        yield _Definition(
            kind=kind, name=name, signature=_signature(text.decode("utf-8", "replace")), above=_above(whole),
            first=whole.start_point[0] + 1, last=_last_line(node),
        )  # fmt: skip


def _text(node: Node) -> str:
    return str(node.text.decode("utf-8", "replace")).strip("\"'#[]") if node.text else ""


def _last_line(node: Node) -> int:
    row, column = node.end_point
    return int(row) + (1 if column or row == node.start_point[0] else 0)


def _whole(node: Node) -> Node:
    """A definition with the words before it on its line, as `export` or `const`."""
    while node.parent is not None and node.parent.type in _WRAPS and node.parent.start_point[0] == node.start_point[0]:
        node = node.parent
    return node


def _above(node: Node) -> int:
    """The line on which the comments and attributes right above a definition begin; its own where there are none."""
    first = int(node.start_point[0])
    while (before := node.prev_sibling) is not None and before.type in _ABOVE:
        end = _last_line(before) - 1
        if not first - 1 <= end <= first or before.start_point[0] >= first:
            break
        node, first = before, int(before.start_point[0])
    return first + 1


def _signature(text: str) -> str:
    """What stands before the body, on one line."""
    return " ".join(re.split(r"\{|=>", text, maxsplit=1)[0].split()).rstrip(" =;")[:500]


def _summary(lines: list[str]) -> str:
    """The first words of a comment."""
    rows = (row.strip().strip("/*!# ") for row in lines)
    return next((row for row in rows if row and not row.startswith(("[", "@"))), "")[:300]
