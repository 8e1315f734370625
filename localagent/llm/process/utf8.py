"""Text from the pipe as bytes that llama.cpp takes."""


def utf8(text: str) -> bytes:
    """Bytes as they came, with `?` for each that is not UTF-8 (llama.cpp aborts on those): offsets stay as they are."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return b"".join(b"?" if "\ud800" <= c <= "\udfff" else c.encode("utf-8") for c in text)
