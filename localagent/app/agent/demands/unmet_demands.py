"""All demands of an instruction that nothing in a change answers."""

from collections.abc import Callable, Iterator

from localagent.app.agent.demands import code_demands, document_demands, exception_demands, named_demands
from localagent.app.agent.demands.changed_tree import ChangedTree

_RULES: tuple[Callable[[str, ChangedTree], Iterator[str]], ...] = (
    exception_demands.exceptions,
    named_demands.options,
    named_demands.names,
    named_demands.keys,
    named_demands.messages,
    named_demands.logs,
    code_demands.parameters,
    code_demands.gone,
    code_demands.each_function,
    code_demands.subjects,
    document_demands.documents,
    document_demands.files,
    document_demands.tests,
)


def unanswered_demands(instruction: str, change: ChangedTree) -> tuple[str, ...]:
    """What is asked for and is nowhere in the change, each as the end of "the instruction asks for ...".

    Plain rules over the words: what is named, and how an instruction of the field says that something is to be raised,
    printed, logged, documented or moved. Not seen: a demand without such a word, and one that is answered wrongly.
    """
    return tuple(dict.fromkeys(text for rule in _RULES for text in rule(instruction, change)))
