#!/usr/bin/env python3
"""Count lines, words and letters of texts, and say which words are the most frequent."""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass
class Count:
    """What was counted in one text, or in several together."""

    lines: int = 0
    words: int = 0
    letters: int = 0
    frequencies: Dict[str, int] = field(default_factory=dict)

    def mean_length(self) -> float:
        """Letters a word, 0.0 for a text without words."""
        return self.letters / self.words if self.words else 0.0

    def top(self, number: int) -> List[Tuple[str, int]]:
        """The most frequent words, ties in alphabetical order."""
        ranked = sorted(self.frequencies.items(), key=lambda item: (-item[1], item[0]))
        return ranked[:number]

    def merge(self, other: "Count") -> "Count":
        """Both texts as if they were one."""
        merged = Count(self.lines + other.lines, self.words + other.words, self.letters + other.letters)
        for part in (self, other):
            for word, times in part.frequencies.items():
                merged.frequencies[word] = merged.frequencies.get(word, 0) + times
        return merged


def words_of(line: str) -> List[str]:
    """The words of a line; an apostrophe or hyphen inside a word belongs to it."""
    return WORD.findall(line)


def count(lines: Iterable[str], ignored: FrozenSet[str] = frozenset()) -> Count:
    """Count a text. Words in `ignored` (lower case) are words like others but do not enter the frequencies."""
    result = Count()
    for line in lines:
        result.lines += 1
        for word in words_of(line):
            result.words += 1
            result.letters += sum(character.isalpha() for character in word)
            if word.lower() not in ignored:
                result.frequencies[word.lower()] = result.frequencies.get(word, 0) + 1
    return result


def read_ignored(path: Path) -> FrozenSet[str]:
    """One word a line; `#` begins a remark."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        word = line.split("#", 1)[0].strip().lower()
        if word:
            found.add(word)
    return frozenset(found)


def report(name: str, counted: Count, number: int) -> str:
    """A paragraph about one text."""
    lines = [f"{name}: {counted.lines} lines, {counted.words} words, {counted.mean_length():.1f} letters a word"]
    width = max((len(word) for word, _ in counted.top(number)), default=0)
    lines += [f"  {word:<{width}}  {times}" for word, times in counted.top(number)]
    return "\n".join(lines)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Entry point; 1 if a file could not be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="how many frequent words to print")
    parser.add_argument("--ignore", type=Path, metavar="FILE", help="words that are left out of the frequencies")
    args = parser.parse_args(argv)
    ignored = read_ignored(args.ignore) if args.ignore else frozenset()
    total, status = Count(), 0
    for path in args.files:
        try:
            with path.open(encoding="utf-8") as text:
                counted = count(text, ignored)
        except (OSError, UnicodeDecodeError) as error:
            print(f"wordcount: {path}: {error}", file=sys.stderr)
            status = 1
            continue
        print(report(path.name, counted, args.top))
        total = total.merge(counted)
    if len(args.files) > 1:
        print(report("all together", total, args.top))
    return status


if __name__ == "__main__":
    sys.exit(main())
