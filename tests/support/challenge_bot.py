"""A scripted model that can do the built-in challenges, as well as it is told to: for measuring what is known.

It reads what it is asked (instruction, results, schemas) from the request, as a model would; the challenges themselves
it knows by their instruction.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from localagent.app.agent.challenges import Challenge, Skill
from support.false_model_server import completion, status

Write = Callable[[bytes], object]
Call = tuple[str, dict[str, Any]]
_WORDS = (
    (r"are even", "x % 2 == 0"),
    (r"are greater than (\d+)", "x > {0}"),
    (r"are at least (\d+)", "x >= {0}"),
    (r"are smaller than (\d+)", "x < {0}"),
    (r"are not negative", "x >= 0"),
    (r"are divisible by (\d+)", "x % {0} == 0"),
    (r"doubles each", "x * 2"),
    (r"squares each", "x * x"),
    (r"adds (\d+) to each", "x + {0}"),
    (r"subtracts each from (\d+)", "{0} - x"),
    (r"their sum", "sum(found)"),
    (r"the list of the results, last one first", "found[::-1]"),
    (r"the largest result", "max(found, default=None)"),
    (r"how many different results", "len(set(found))"),
)


def function_in(words: str) -> str:
    """The source of a function that some words describe."""
    name = re.search(r"`(\w+)\(numbers\)`", words)
    assert name is not None
    parts = [code.format(*found.groups()) for text, code in _WORDS if (found := re.search(text, words))]
    choice, change, gather = parts
    return f"def {name[1]}(numbers):\n    found = [{change} for x in numbers if {choice}]\n    return {gather}\n"


def solution(challenge: Challenge) -> list[Call]:
    """Calls that do a challenge."""
    done: Call = ("finish", {"summary": "done"})
    [path, *_] = (p for p in challenge.files if p.is_python and p.name != "__init__.py" and "test" not in p)
    match challenge.skill:
        case Skill.READ | Skill.DATA:
            assert challenge.wanted is not None
            [(answer, text)] = challenge.wanted.items()
            return [("read", {"path": path}), ("create", {"path": answer, "content": text}), done]
        case Skill.EDIT:
            assert challenge.wanted is not None
            old, new = challenge.files[path].split("\n\n"), challenge.wanted[path].split("\n\n")
            [(a, b)] = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
            return [("edit", {"path": path, "old": a, "new": b}), done]
        case Skill.FOLLOW:
            text = challenge.files[path].partition("\n\n\n")[0].replace(", n)", ", n + 1)")
            name = re.match(r"def (\w+)", text)
            assert name is not None
            return [("replace_function", {"path": path, "name": name[1], "source": text}), done]
        case Skill.WRITE:
            text = challenge.files[path]
            made = text + "\n\n" + function_in(challenge.instruction)
            return [("edit", {"path": path, "old": text, "new": made}), ("run_tests", {}), done]
        case Skill.MEND:
            source = function_in(challenge.instruction)
            name = re.match(r"def (\w+)", source)
            assert name is not None
            return [("replace_function", {"path": path, "name": name[1], "source": source}), done]
        case Skill.ASK:
            return [("ask", {"question": "There is no such function: which one is meant?"})]
    raise AssertionError(challenge)


def challenge_bot(
    bodies: Callable[[], list[Any]],
    challenges: Sequence[Challenge],
    *,
    fails: Callable[[Challenge], bool] = lambda _: False,
    talks: float = 0.0,
) -> Callable[[Write], None]:
    """A server's answers. Where it `fails` it writes something else; `talks`: how often it talks instead of calling."""
    known = {challenge.instruction: challenge for challenge in challenges}
    rng = random.Random(1)

    def call_of(body: Any) -> Call | str:
        asked = str(next(m["content"] for m in body["messages"] if m["role"] == "user"))
        if found := re.search(r"lines (\d+) to (\d+) of (\S+)\.", asked):
            return "read", {"path": found[3], "start": int(found[1]), "end": int(found[2])}
        if found := re.search(r"Which value has (\w+)\?", asked):
            value = re.search(rf"^{found[1]} = (\d+)$", asked, re.MULTILINE)
            return str(value[1]) if value else "?"
        if body["metadata"]["role"] == "reviewer":
            right = all(f"+{line}" in asked for line in function_in(asked).splitlines())
            return ("approve", {"reason": "as asked"}) if right else ("object", {"reason": "it is not what was asked"})
        if "tools" not in body:
            return "one\ntwo"
        challenge = known[asked.partition("\n\nThese tests")[0]]
        done = sum(1 for m in body["messages"] if m["role"] == "tool")
        if fails(challenge):
            calls: list[Call] = [("create", {"path": "other.txt", "content": "?"}), ("finish", {"summary": "done"})]
        else:
            calls = solution(challenge)
        return calls[min(done, len(calls) - 1)]

    def write(out: Write) -> None:
        body = bodies()[-1]
        said = "I would read the file first." if rng.random() < talks else call_of(body)
        usage = {"prompt_tokens": len(json.dumps(body["messages"])) // 4, "completion_tokens": 40}
        if isinstance(said, str):
            status(200, completion(said, usage=usage))(out)
        else:
            status(200, completion(None, (said[0], json.dumps(said[1])), finish="tool_calls", usage=usage))(out)

    return write
