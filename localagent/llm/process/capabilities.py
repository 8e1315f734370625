"""How a model wants to be asked, read from its own file: by its chat template, or with a text that goes on.

A prompt becomes tokens here, and only what the template says can become a special token: texts
that are handed in (repository code, a task's words, test output) are tokenized as plain text and inserted between, so
that no text in them can close a message or open another. Runs in the confined child only.
"""

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from localagent.llm.process.chat_template import CHATML, ChatTemplate, TemplateFault
from localagent.llm.process.llama_engine import Engine


class Dialect:
    """One loaded model's ways of being asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._llama, self._vocab = engine.llama, engine.vocab
        self._shapes: dict[tuple[str, ...], list[str | int]] = {}

    @cached_property
    def template(self) -> str:
        """The chat template: the model's own, ChatML where only its tokens are there, "" where there is none."""
        raw = self._llama.llama_model_chat_template(self._engine.model, None)
        if raw:
            return bytes(raw).decode("utf-8", "replace")
        known = self._special("<|im_start|>") is not None and self._special("<|im_end|>") is not None
        return CHATML if known else ""

    def text(self, text: bytes) -> list[int]:
        """A document that goes on."""
        return [self._engine.front_token, *self._engine.tokenize(text)]

    def chat(self, messages: Sequence[tuple[str, bytes]], answer: bytes) -> list[int]:
        """A conversation, then the beginning of the answer. TemplateFault where no template carries it."""
        roles = tuple(role for role, _ in messages)
        texts = [text for _, text in messages]
        try:
            pieces = self._shape(roles)
        except TemplateFault:
            if roles[:1] != ("system",) or len(roles) < 2:
                raise
            roles, texts = roles[1:], [texts[0] + b"\n\n" + texts[1], *texts[2:]]  # some know no system message
            pieces = self._shape(roles)
        tokens: list[int] = []
        for piece in pieces:
            if isinstance(piece, int):
                tokens += self._engine.tokenize(texts[piece])
            else:
                tokens += self._engine.tokenize(piece.encode("utf-8", "replace"), special=True)
        return [*self._with_front(tokens), *self._engine.tokenize(answer)]

    def rendered(self, text: bytes) -> list[int]:
        """A prompt that was rendered elsewhere, of texts whose control texts were escaped: all of it is parsed."""
        return self._with_front(self._engine.tokenize(text, special=True))

    def ends(self) -> dict[str, str]:
        """How the first and the last token of a text are spelled."""
        llama, vocab = self._llama, self._vocab
        tokens = {"front": int(llama.llama_vocab_bos(vocab)), "end": int(llama.llama_vocab_eos(vocab))}
        return {name: self._spelled(token) if token >= 0 else "" for name, token in tokens.items()}

    def _shape(self, roles: tuple[str, ...]) -> list[str | int]:
        if not self.template:
            raise TemplateFault("the model has no chat template")
        if roles not in self._shapes:
            front, end = (self._spelled(t) for t in (self._engine.front_token, self._engine.end_token))
            self._shapes[roles] = ChatTemplate(self.template, front=front, end=end).pieces(roles)
        return self._shapes[roles]

    def _with_front(self, tokens: list[int]) -> list[int]:
        wanted = bool(self._llama.llama_vocab_get_add_bos(self._vocab))
        front = self._engine.front_token
        return [front, *tokens] if wanted and tokens[:1] != [front] else tokens

    def _special(self, text: str) -> int | None:
        """The one control token that is spelled so."""
        found = self._engine.tokenize(text.encode(), special=True)
        controls = [token for token in found if self._llama.llama_vocab_is_control(self._vocab, token)]
        return controls[0] if len(found) == len(controls) == 1 else None

    def _spelled(self, token: int) -> str:
        room: Any = ctypes.create_string_buffer(512)
        size = max(0, int(self._llama.llama_token_to_piece(self._vocab, token, room, 512, 0, True)))
        return bytes(room.raw[:size]).decode("utf-8", "replace")
