"""Where two texts part and meet again, no word cut."""


def parted(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts begin and end with alike; no word is cut."""
    front = _same(old, new)
    back = _same(old[front:][::-1], new[front:][::-1])
    while (
        front
        and _is_identifier_character(old[front - 1])
        and any(_is_identifier_character(t[front]) for t in (old, new) if t[front:])
    ):
        front -= 1
    while (
        back
        and _is_identifier_character(old[-back])
        and any(_is_identifier_character(t[-back - 1]) for t in (old, new) if len(t) > back)
    ):
        back -= 1
    return front, back


def _same(old: str, new: str) -> int:
    count = 0
    while count < min(len(old), len(new)) and old[count] == new[count]:
        count += 1
    return count


def _is_identifier_character(character: str) -> bool:
    return character == "_" or character.isalnum()
