"""One typed effect of an edit, and where in the program it lies.

Limitations: an effect names a difference of two syntax trees; it says nothing about what the program then does.
"""

import ast
from dataclasses import dataclass
from enum import StrEnum

from localagent.text.escaping import escaped
from localagent.text.visible_text import shortened

LONGEST_TEXT = 160  # characters of `Effect.old` and `Effect.new`


class EffectKind(StrEnum):
    """What an edit does to one place of a program."""

    NEGATES_CONDITION = "negates-condition"
    WIDENS_CONDITION = "widens-condition"  # an `and` part dropped, an `or` part added
    NARROWS_CONDITION = "narrows-condition"
    CHANGES_COMPARISON = "changes-comparison"
    CHANGES_OPERATOR = "changes-operator"
    SWAPS_OPERANDS = "swaps-operands"
    CHANGES_NUMBER = "changes-number"
    CHANGES_CONSTANT = "changes-constant"  # True, False, None, or a constant of another type
    CHANGES_TEXT = "changes-text"
    CHANGES_MESSAGE = "changes-message"  # text that only people read
    CHANGES_DOCUMENTATION = "changes-documentation"  # a docstring
    CHANGES_NAME = "changes-name"
    CHANGES_ATTRIBUTE = "changes-attribute"
    CHANGES_CALLEE = "changes-callee"
    CHANGES_EXCEPTION = "changes-exception"  # the exception that is raised
    ADDS_ARGUMENT = "adds-argument"
    DROPS_ARGUMENT = "drops-argument"
    CHANGES_ARGUMENT = "changes-argument"
    SWAPS_ARGUMENTS = "swaps-arguments"
    ADDS_ELEMENT = "adds-element"  # of a list, tuple, dict, pattern and so on
    DROPS_ELEMENT = "drops-element"
    WRAPS = "wraps"
    UNWRAPS = "unwraps"
    ADDS_GUARD = "adds-guard"  # an `if` that leaves: return, raise, continue, break
    DROPS_GUARD = "drops-guard"
    WRAPS_IN_IF = "wraps-in-if"
    UNWRAPS_IF = "unwraps-if"
    WRAPS_IN_BLOCK = "wraps-in-block"  # a loop, `try` or `with` around statements
    UNWRAPS_BLOCK = "unwraps-block"
    ADDS_STATEMENT = "adds-statement"
    DROPS_STATEMENT = "drops-statement"
    MOVES_STATEMENT = "moves-statement"
    CHANGES_INDENT = "changes-indent"  # a statement moved into or out of a block
    CHANGES_RETURN = "changes-return"
    CHANGES_VALUE = "changes-value"  # the assigned value, by one of another form
    CHANGES_DEFAULT = "changes-default"
    CHANGES_SIGNATURE = "changes-signature"
    CHANGES_ANNOTATION = "changes-annotation"
    CHANGES_EXCEPT = "changes-except"
    CHANGES_IMPORT = "changes-import"
    CHANGES_DECORATOR = "changes-decorator"
    CHANGES_TARGET = "changes-target"
    SWAPS_ASSIGNMENT = "swaps-assignment"
    CONSTANT_FOR_EXPRESSION = "constant-for-expression"
    EXPRESSION_FOR_CONSTANT = "expression-for-constant"
    OTHER = "other"


class MessageKind(StrEnum):
    """Which text for people a place belongs to."""

    NONE = "none"
    RAISE = "raise"
    LOG = "log"
    WARNING = "warning"
    PRINT = "print"
    ASSERT = "assert"
    REPR = "repr"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchEffect:
    """One difference. `line` is 1-based, in the file before; `old` and `new` are bounded source text, "" for nothing.

    `form_old` and `form_new` are the same place with what stands around it, enough to look for it elsewhere.
    `whole`: a condition changed as a whole, not in a part. `keyword`: the keyword argument whose value changed, or "".
    `message_text`: the literal text around the place, where it lies in a message.
    """

    kind: EffectKind
    line: int
    function: str = ""
    class_name: str = ""
    old: str = ""
    new: str = ""
    path: str = ""
    form_old: str = ""
    form_new: str = ""
    keyword: str = ""
    message: MessageKind = MessageKind.NONE
    message_text: str = ""
    in_condition: bool = False
    in_argument: bool = False
    in_return: bool = False
    whole: bool = False

    @property
    def in_message(self) -> bool:
        """Whether it lies in text that only people read."""
        return self.message is not MessageKind.NONE


@dataclass(frozen=True, kw_only=True, slots=True)
class TreePosition:
    """Where the comparison of two trees stands. `fallback` is the kind of a difference without a better name."""

    line: int = 1
    function: str = ""
    class_name: str = ""
    form_old: str = ""
    form_new: str = ""
    keyword: str = ""
    message: MessageKind = MessageKind.NONE
    message_text: str = ""
    in_condition: bool = False
    in_argument: bool = False
    in_return: bool = False
    whole: bool = False
    fallback: EffectKind = EffectKind.OTHER
    message_names: frozenset[str] = frozenset()

    def effect(self, kind: EffectKind, old: ast.AST | str, new: ast.AST | str) -> PatchEffect:
        """An effect of this kind here."""
        return PatchEffect(
            kind=kind,
            line=self.line,
            function=self.function,
            class_name=self.class_name,
            old=text_of(old),
            new=text_of(new),
            form_old=self.form_old,
            form_new=self.form_new,
            keyword=self.keyword,
            message=self.message,
            message_text=self.message_text,
            in_condition=self.in_condition,
            in_argument=self.in_argument,
            in_return=self.in_return,
            whole=self.whole,
        )


def text_of(node: ast.AST | str) -> str:
    """One line of source text for a node, bounded and safe to show; compound statements by their first line."""
    text = node if isinstance(node, str) else ast.unparse(node)
    first = text.strip().split("\n", 1)[0]
    shown, _ = escaped(first)
    return shortened(shown, LONGEST_TEXT)
