"""Two runs of an analysis script are told apart by what they print and leave, and by nothing else."""

import pytest

from localagent.agent.observation import Observation, differences, likely_causes, parse_observation

SEEN = Observation.of(b"a\nb\n", "a\nb\n", {"t.csv": "sha256:1", "p.png": "sha256:2"})


def test_an_observation_survives_the_log_and_knows_its_continuation() -> None:
    assert parse_observation(SEEN.json()) == SEEN
    assert SEEN.begins(b"a\nb\nc\n")
    assert not SEEN.begins(b"a\nx\nc\n")
    assert not SEEN.begins(b"a\n")
    assert differences(SEEN, SEEN) == ()


@pytest.mark.parametrize(
    ("stdout", "files", "says"),
    [
        ("a\nb\n", {"t.csv": "sha256:1"}, ("p.png not there any more",)),
        ("a\nb\n", {**SEEN.files, "n.csv": "sha256:3"}, ("n.csv was not there before",)),
        ("a\nb\n", {**SEEN.files, "t.csv": "sha256:9"}, ("t.csv has other bytes",)),
        ("a\nc\n", SEEN.files, ("it prints in line 2 'c', and printed 'b'",)),
        ("a\nb", SEEN.files, ("it prints another text",)),
        ("", {}, ("t.csv not there any more", "p.png not there any more", "it prints in line 1 '', and printed 'a'")),
    ],
)
def test_what_differs_is_named(stdout: str, files: dict[str, str], says: tuple[str, ...]) -> None:
    assert set(differences(SEEN, Observation.of(stdout.encode(), stdout, files))) == set(says)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"printed": "x", "length": "y", "text": "", "files": {}}', "nonsense"]
)
def test_a_damaged_observation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an observation"):
        parse_observation(text)


@pytest.mark.parametrize(
    ("script", "differing", "says"),
    [
        ("import random\nprint(random.random())", (), "random.seed"),
        ("import numpy as np\nprint(np.random.rand())", (), "default_rng(0)"),
        ("df.sample(3)", (), "random_state=0"),
        ("from datetime import datetime\nprint(datetime.now())", (), "the time of day"),
        ("print(list(set('abc')))", (), "sort"),
        ("x = 1", ("p.svg has other bytes",), "write PNG or CSV"),
        ("x = 1", ("t.csv has other bytes",), ""),
        ("not python (", (), ""),
    ],
)
def test_likely_causes_are_named(script: str, differing: tuple[str, ...], says: str) -> None:
    found = likely_causes(script, differing)
    assert says in " ".join(found)
    assert bool(found) == bool(says)
