"""Evidence of the choice: agreement counts voices, faults count against the majority."""

from localagent.repair.choice import agreement, faults


def test_equal_programs_are_one_voice_and_the_unpatched_one_has_none() -> None:
    rows = {0: ("ok:z", "ok:z"), 1: ("ok:a", "ok:b"), 2: ("ok:a", "ok:b"), 3: ("ok:a", "ok:c")}
    assert agreement(rows) == {1: 0.5, 2: 0.5, 3: 0.5}


def test_an_outlier_agrees_least() -> None:
    found = agreement({1: ("ok:a", "ok:b"), 2: ("ok:a", "ok:c"), 3: ("ok:x", "ok:y")})
    assert found[1] == found[2] > found[3] == 0.0


def test_only_faults_where_most_answer_count() -> None:
    rows = {1: ("ok:a", "raised:r"), 2: ("ok:b", "raised:s"), 3: ("raised:q", "raised:r")}
    assert faults(rows) == {1: 0.0, 2: 0.0, 3: 0.5}
