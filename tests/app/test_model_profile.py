"""What is said of a model: only what was shown, and the same again from the file."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from localagent.app import Settings
from localagent.app.agent.challenges import Skill, built_in
from localagent.app.agent.model_profile import (
    Fitness,
    FormatCalls,
    ModelProfile,
    keep_profile,
    last_profile,
    profile_path,
)
from localagent.app.agent.request import ROLES
from localagent.domain.strength import Share
from localagent.errors import AnswerIsNo

ALL, HALF = Share(part=4, whole=4), Share(part=2, whole=4, missing=("a", "b"))
CALLS = FormatCalls(well_formed=ALL, right=ALL)
DIGEST = "sha256:" + "0f" * 32
GOOD = ModelProfile(
    name="m", digest=DIGEST, seed=1, dialect="d", dialects={"d": CALLS}, calls=ALL, stops=ALL, edits={"edit": HALF},
    skills={skill.value: ALL for skill in Skill if skill is not Skill.OWN}, cut=("context: no time was left",),
)  # fmt: skip


def but(**changed: Share) -> ModelProfile:
    """The good one with other shares: of a skill by its name, else of a field."""
    skills = {Skill[name].value: share for name, share in changed.items() if name.isupper()}
    other: dict[str, Any] = {name: share for name, share in changed.items() if not name.isupper()}
    return dataclasses.replace(GOOD, skills={**GOOD.skills, **skills}, **other)


@pytest.mark.parametrize(
    ("profile", "fitness", "says"),
    [
        (GOOD, Fitness.CHANGES, "larger ones were not tried"),
        (but(MEND=HALF), Fitness.EDITS, "it mends what a test shows in 2 of 4 tasks"),
        (but(WRITE=Share(part=1, whole=1)), Fitness.EDITS, "'writes functions' was not tried often enough"),
        (but(EDIT=HALF), Fitness.UNFIT, "it edits exactly in 2 of 4 tasks"),
        (but(calls=HALF), Fitness.UNFIT, "it called tools well in 2 of 4 replies"),
        (but(stops=HALF), Fitness.UNFIT, "it ended by itself in 2 of 4 tasks"),
        (ModelProfile(name="m", digest="", seed=1, dialect="d", dialects={"d": CALLS}), Fitness.UNFIT, "not fit"),
    ],
)
def test_a_verdict_says_what_was_shown_and_what_is_lacking(profile: ModelProfile, fitness: Fitness, says: str) -> None:
    assert profile.fitness is fitness
    assert says in profile.verdict
    assert bool(profile.warnings) == (fitness is not Fitness.CHANGES)


def test_who_obeys_files_or_does_not_ask_is_warned_of() -> None:
    [warning] = but(DATA=HALF).warnings
    assert "did what texts in files told it to" in warning
    assert "(2 of 4 tasks failed)" in warning
    [warning] = but(ASK=HALF).warnings
    assert "should have asked" in warning


@pytest.mark.parametrize(
    ("profile", "unfit"),
    [
        (GOOD, {}),
        (but(WRITE=HALF), {"tester": "it writes functions in 2 of 4 tasks"}),
        (but(WRITE=Share(part=0, whole=1)), {}),  # not tried often enough to say
        (but(reviews=HALF), {"reviewer": "it judged 2 of 4 changes rightly"}),
        (but(stops=HALF), dict.fromkeys(("planner", "tester", "implementer"), "it ended by itself in 2 of 4 tasks")),
    ],
)
def test_what_was_not_shown_speaks_against_the_roles_that_need_it(profile: ModelProfile, unfit: dict[str, str]) -> None:
    assert {role: why for role in ROLES if (why := profile.unfit_as(role))} == unfit


def test_a_model_that_calls_no_tools_is_fit_for_no_role_that_has_them() -> None:
    none = {"d": FormatCalls(well_formed=ALL, right=Share(part=1, whole=4))}
    talks = ModelProfile(name="m", digest="", seed=1, dialect="d", dialects=none)
    assert [bool(talks.unfit_as(role)) for role in ROLES] == [True, True, True, False]


def test_a_profile_is_read_back_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    settings = dataclasses.replace(Settings.from_environ(), data_dir=tmp_path)
    keep_profile(but(EDIT=HALF), settings)
    assert last_profile(settings, DIGEST) == but(EDIT=HALF)
    path = profile_path(settings, DIGEST)
    assert path is not None
    table: Any = json.loads(path.read_text())
    ones: list[Any] = [
        table | {"digest": "sha256:" + "1f" * 32},
        table | {"calls": {"part": 5, "whole": 4, "missing": []}},
        table | {"skills": [1]},
        {name: value for name, value in table.items() if name != "cut"},
        [],
    ]
    for damaged in ones:
        path.write_text(json.dumps(damaged))
        assert last_profile(settings, DIGEST) is None
    for digest in ("", "sha256:../../x", DIGEST.replace("0", "1")):
        assert last_profile(settings, digest) is None
    with pytest.raises(AnswerIsNo):
        keep_profile(dataclasses.replace(GOOD, digest=""), settings)


def test_tasks_are_new_with_every_seed_and_the_same_with_one() -> None:
    assert built_in(1, 2) == built_in(1, 2)
    one, two = ({c.instruction for c in built_in(seed, 3)} for seed in (1, 2))
    assert len(one) == 21
    assert not one & two
