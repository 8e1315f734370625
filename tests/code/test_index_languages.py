"""What is found in JavaScript, TypeScript, Go, Rust and C: names, lines, heads, and whose words are whose."""

import pytest

from localagent.code.index.chunks import Chunk
from localagent.code.index.extract import extract
from localagent.code.index.languages import LANGUAGES, is_installed, language_chunks

if not all(is_installed(language) for language in LANGUAGES.values()):
    pytest.skip("the extra [languages] is not installed", allow_module_level=True)

SOURCES = {
    "a.js": """\
/**
 * Parses an HTTP date.
 */
export async function parseDate(text) {
  return text;
}
// keeps sessions
class SessionStore extends Map {
  evictExpired(now) { function inner() {} return this }
}
const retry = async (x) => { return x };
""",
    "b.tsx": """\
export interface Row { id: number; toText(): string }
export type Alias = string | number
export const Button = (props: P) => <b>{props.x}</b>
namespace Billing { export function charge(a: number): void {} }
abstract class Repo<T> { abstract find(id: string): T }
enum Color { Red }
""",
    "c.go": """\
package main
// Serve answers requests.
func Serve(a int) error { return nil }
type (
  // Handler handles.
  Handler interface { Do() }
)
func (s *Server) Close() {}
func (s List[T]) Push(x T) {}
""",
    "d.rs": """\
/// A pool of things.
#[derive(Debug)]
pub struct Pool<T> { a: T }
impl<T> Pool<T> {
    pub fn take<'a>(&'a self) -> u8 { 1 }
}
mod inner { pub fn deep() {} }
macro_rules! check { () => {} }
""",
    "e.h": """\
#define MAX(a,b) ((a)>(b)?(a):(b))
/* Opens a connection. */
static struct conn *open_conn(const char *host)
{
    return 0;
}
typedef struct point { int x; } point_t;
int prototype(void);
""",
}
FOUND = {
    "a.js": [
        ("function", 4, 6, "parseDate", "export async function parseDate(text)", "Parses an HTTP date."),
        ("class", 8, 10, "SessionStore", "class SessionStore extends Map", "keeps sessions"),
        ("function", 9, 9, "SessionStore.evictExpired", "evictExpired(now)", ""),
        ("function", 9, 9, "SessionStore.evictExpired.inner", "function inner()", ""),
        ("function", 11, 11, "retry", "const retry = async (x)", ""),
    ],
    "b.tsx": [
        ("class", 1, 1, "Row", "export interface Row", ""),
        ("function", 1, 1, "Row.toText", "toText(): string", ""),
        ("class", 2, 2, "Alias", "export type Alias = string | number", ""),
        ("function", 3, 3, "Button", "export const Button = (props: P)", ""),
        ("function", 4, 4, "Billing.charge", "export function charge(a: number): void", ""),
        ("class", 5, 5, "Repo", "abstract class Repo<T>", ""),
        ("function", 5, 5, "Repo.find", "abstract find(id: string): T", ""),
        ("class", 6, 6, "Color", "enum Color", ""),
    ],
    "c.go": [
        ("function", 3, 3, "Serve", "func Serve(a int) error", "Serve answers requests."),
        ("class", 6, 6, "Handler", "Handler interface", "Handler handles."),
        ("function", 8, 8, "Server.Close", "func (s *Server) Close()", ""),
        ("function", 9, 9, "List.Push", "func (s List[T]) Push(x T)", ""),
    ],
    "d.rs": [
        ("class", 3, 3, "Pool", "pub struct Pool<T>", "A pool of things."),
        ("function", 5, 5, "Pool.take", "pub fn take<'a>(&'a self) -> u8", ""),
        ("function", 7, 7, "inner.deep", "pub fn deep()", ""),
        ("function", 8, 8, "check", "macro_rules! check", ""),
    ],
    "e.h": [
        ("function", 1, 1, "MAX", "#define MAX(a,b) ((a)>(b)?(a):(b))", ""),
        ("function", 3, 6, "open_conn", "static struct conn *open_conn(const char *host)", "Opens a connection."),
        ("class", 7, 7, "point_t", "typedef struct point", ""),
        ("class", 7, 7, "point", "typedef struct point", ""),
        ("function", 8, 8, "prototype", "int prototype(void)", ""),
    ],
}


def chunks(path: str, text: str) -> list[Chunk]:
    found = language_chunks(path, text.encode())
    assert found is not None
    return found


@pytest.mark.parametrize("path", SOURCES)
def test_definitions_of_a_language(path: str) -> None:
    found = [c for c in chunks(path, SOURCES[path]) if c.name]
    assert [(c.kind, c.first_line, c.last_line, c.name, c.signature, c.summary) for c in found] == FOUND[path]


def test_a_comment_belongs_to_what_it_stands_above() -> None:
    text = "// of nothing\n\n// of the first\nfunction first() { say('hello') }\n"
    rest, first = chunks("a.js", text)
    assert (rest.kind, rest.text.docs) == ("module", ["// of nothing"])
    assert (first.text.docs, first.text.strings, first.text.code) == (
        ["// of the first"],
        ["'hello'"],
        ["function", "first", "say"],
    )


def test_what_is_minified_or_unknown_is_text() -> None:
    assert language_chunks("a.js", b"function f(){};" * 100) is None
    assert language_chunks("a.rb", b"def f\nend\n") is None
    rows = extract("a.js", b"function f(){};" * 100)["chunks"]
    assert isinstance(rows, list)
    assert [row[0] for row in rows] == ["text"]
