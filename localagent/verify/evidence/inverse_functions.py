"""Names that undo one another: `encode` and `decode`, `to_x` and `from_x`. A guess, tried before it is believed."""

_PAIRS = (
    ("encode", "decode"), ("dumps", "loads"), ("dump", "load"), ("serialize", "deserialize"), ("pack", "unpack"),
    ("compress", "decompress"), ("escape", "unescape"), ("quote", "unquote"), ("encrypt", "decrypt"),
    ("flatten", "unflatten"), ("format", "parse"), ("render", "parse"), ("to", "from"), ("parse", "format"),
)  # fmt: skip


def inverse_name(name: str) -> str:
    """The name of the function that, by its name, takes back what this one does; "" if none is known."""
    parts = name.split("_")
    for one, other in _PAIRS:
        for word, opposite in ((one, other), (other, one)):
            if word in parts:
                return "_".join(opposite if part == word else part for part in parts)
    return ""
