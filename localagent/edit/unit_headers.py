"""Where the header of a compound statement ends: its colon, outside brackets, strings and comments."""


def after_colon(text: bytes, at: int) -> int:
    """Offset right after the first colon from `at` on, behind whatever expression ended there. ValueError: none."""
    while True:
        char = text[at : at + 1]
        if char == b"#":
            at = line_break(text, at)
        elif char == b":":
            return at + 1
        elif not char:
            raise ValueError("no colon ends this header")
        else:
            at += 1


def after_definition_colon(text: bytes, at: int) -> int:
    """Offset after the colon that ends a `def`/`class` header, scanning brackets, strings and comments."""
    depth = 0
    while at < len(text):
        char = text[at : at + 1]
        if char == b"#":
            at = line_break(text, at)
            continue
        if char in (b'"', b"'"):
            at = _string_end(text, at)
            continue
        if char in (b"(", b"[", b"{"):
            depth += 1
        elif char in (b")", b"]", b"}"):
            depth -= 1
        elif char == b":" and depth == 0:
            return at + 1
        at += 1
    raise ValueError("no colon ends this definition")


def line_break(text: bytes, at: int) -> int:
    """Offset of the line break at or behind `at`, or the text's end."""
    ends = [i for i in (text.find(b"\n", at), text.find(b"\r", at)) if i >= 0]
    return min(ends, default=len(text))


def _string_end(text: bytes, at: int) -> int:
    quote = text[at : at + 3] if text[at : at + 3] in (b'"""', b"'''") else text[at : at + 1]
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        at += 2 if text[at : at + 1] == b"\\" else 1
    return at + len(quote)
