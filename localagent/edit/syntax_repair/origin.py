"""A file that does not parse, decoded, and the edits that lead from it to other texts."""

import codecs
import io
import tokenize
from dataclasses import dataclass

from localagent.domain.edit import Edit, EditEffect, Splice
from localagent.domain.paths import RepoPath
from localagent.edit.syntax_repair.lexer import SyntaxFix, newlines_before
from localagent.edit.syntax_repair.pieces import Pieces, splices_from

# By operator, beside those of all of them.
_EFFECTS = {
    "tokens.delete-token": {EditEffect.DELETES},
    "tokens.delete-bracket": {EditEffect.DELETES},
    "tokens.delete-pair": {EditEffect.DELETES},
    "tokens.delete-line": {EditEffect.DELETES, EditEffect.DELETES_LINE},
    "tokens.comment-statement": {EditEffect.COMMENTS_OUT},
    "tokens.replace-token": {EditEffect.REPLACES_LEXEME},
    "tokens.wrap-call": {EditEffect.WRAPS},
}


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """The file an edit is for, decoded."""

    path: RepoPath
    source: bytes
    text: str
    encoding: str
    mark: bytes

    def edit(self, region: Pieces, pieces: Pieces, cost: float, steps: tuple[SyntaxFix, ...]) -> Edit | None:
        """The edit that leads from the file to the pieces; None where the encoding has no room for the new text."""
        splices = splices_from(pieces, region, len(self.text))
        if not splices:
            return None
        out = []
        at, bytes_at = 0, len(self.mark)
        try:
            for start, end, new in splices:
                bytes_at += len(self.text[at:start].encode(self.encoding))
                stop = bytes_at + len(self.text[start:end].encode(self.encoding))
                out.append(Splice(start=bytes_at, end=stop, text=new.encode(self.encoding)))
                at, bytes_at = end, stop
        except UnicodeEncodeError:
            return None
        operators = list(dict.fromkeys(x.operator.removeprefix("tokens.") for x in steps))
        return Edit(
            path=self.path,
            splices=tuple(out),
            operator="tokens." + "+".join(operators),
            line=newlines_before(self.text, splices[0][0]) + 1,
            end_line=newlines_before(self.text, splices[-1][1]) + 1,
            prior=-cost,
            note="; ".join(x.note for x in steps),
            effects=_effects(steps),
        )


def _effects(steps: tuple[SyntaxFix, ...]) -> frozenset[EditEffect]:
    operators = {x.operator for x in steps}
    found = {EditEffect.MENDS_SYNTAX}.union(*(_EFFECTS.get(name, set()) for name in operators))
    found |= {EditEffect.SEVERAL_FIXES} if len(operators) > 1 else set()
    return frozenset(found.union(steps[0].effects if len(steps) == 1 else ()))


def decode(source: bytes) -> tuple[str, str, bytes] | None:
    """Text, encoding and byte-order mark; None when the bytes are not what they declare or would not encode back."""
    mark = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = source[len(mark) :].decode(encoding)
        if text.encode(encoding) != source[len(mark) :]:
            return None
    except (SyntaxError, ValueError, LookupError):
        return None
    return text, encoding, mark
