"""What becomes of a reviewer's replies: an approval, objections with their places, or no review at all."""

import threading
from collections.abc import Sequence

import pytest
from support.agent_builder import Said, ScriptedModel, calls, text

from localagent.agent.events import Objection, ReviewAnswer, Reviewed, event_json, event_of
from localagent.agent.reviewer import Reviewer
from localagent.domain.chat import ChatFailure, ChatFault, Sampling

DIFF = "--- a/pkg/mod.py\n+++ b/pkg/mod.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
YES = calls(("approve", {"reason": "x is 2, as asked"}))
NO = calls(("object", {"reason": "y is missing", "path": "pkg/mod.py", "line": 3}))


def review(script: Sequence[Said], diff: str = DIFF, context: int | None = None) -> tuple[Reviewed, ScriptedModel]:
    model = ScriptedModel(script, context)
    reviewer = Reviewer(model=model, sampling=Sampling(), cancelled=threading.Event())
    return reviewer.review("set x to 2", diff, ["3 passed"], {"pkg/mod.py"}), model


def test_an_approval_and_objections_are_read_and_kept() -> None:
    said, model = review([YES])
    assert (said.answer, said.reason, said.model) == (ReviewAnswer.APPROVE, "x is 2, as asked", "scripted")
    [asked] = model.asked
    assert asked.must_call
    assert asked.metadata == {"role": "reviewer"}
    assert all(part in asked.messages[1].text for part in ("set x to 2", DIFF, "3 passed"))
    both = calls(
        ("approve", {"reason": "fine"}),
        ("object", {"reason": "y is missing", "path": "pkg/mod.py", "line": 3}),
        ("object", {"reason": "and z"}),
    )
    said, _ = review([both])
    assert said.objections == (
        Objection(path="pkg/mod.py", line=3, reason="y is missing"),
        Objection(path="", line=0, reason="and z"),
    )
    assert (said.answer, said.reason) == (ReviewAnswer.OBJECT, "")  # who does both objects
    assert event_of(*event_json(said)) == said


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (text("I approve of this change."), "holds no call"),
        (calls(("approve", {})), "'reason' is missing"),
        (calls(("approve", {"reason": " "})), "say in approve why"),
        (calls(("edit", {"path": "x"})), "there is no tool 'edit'"),
        (calls(("object", {"reason": ["x"]})), "must be of type string"),
    ],
)
def test_what_cannot_be_read_is_told_and_is_no_review(reply: Said, why: str) -> None:
    said, model = review([reply])
    assert said.answer is ReviewAnswer.NONE
    assert why in said.reason
    assert len(model.asked) == 3
    assert why in model.asked[1].messages[-1].text
    assert review([reply, YES])[0].answer is ReviewAnswer.APPROVE


def test_a_server_that_fails_is_no_review_and_one_that_cannot_force_calls_may_be() -> None:
    refused = ChatFailure(fault=ChatFault.REFUSED, reason="tool_choice is not known")
    said, model = review([refused, NO])
    assert (said.answer, model.asked[1].must_call) == (ReviewAnswer.OBJECT, False)
    said, model = review([refused])
    assert (said.answer, len(model.asked)) == (ReviewAnswer.NONE, 2)
    assert "tool_choice is not known" in said.reason


def test_a_change_that_does_not_fit_is_not_shown_in_part() -> None:
    said, model = review([YES], diff=DIFF * 400, context=4096)
    assert (said.answer, model.asked) == (ReviewAnswer.NONE, [])
    assert "does not fit" in said.reason
