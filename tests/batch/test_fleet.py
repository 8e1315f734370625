"""FLEET.toml: what is read, and every fault at once with its line."""

from datetime import datetime, time
from pathlib import Path

import pytest

from localagent.batch.fleet import DiskPriority, Fleet, FleetMember, TimeWindow, TreeSource, WorkKind
from localagent.batch.parse_fleet import parse_fleet
from localagent.batch.repair_tasks import guard_within
from localagent.errors import UsageFault

RULES = ("none-comparison", "mutable-default")
HEAD = 'schema = "localagent/fleet/1"\nname = "night"\n'


def read(text: str, folder: Path, *, look: bool = True) -> Fleet:
    return parse_fleet(text.encode(), "fleet.toml", folder, RULES, look=look)


def faults(text: str, folder: Path) -> list[str]:
    with pytest.raises(UsageFault) as caught:
        read(text, folder)
    return list(caught.value.faults)


def test_what_is_said_once_holds_for_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    fleet = read(
        HEAD + "[total]\nmax_seconds = 100\njobs = 3\n[polite]\nnice = 5\ndisk = 'normal'\n"
        "[window]\nfrom = '22:00'\nuntil = '06:30'\n"
        "[each]\nwork = ['codemods']\nmax_seconds = 20.5\nmodel = false\nmemory_mib = 1024\n"
        "rules = ['mutable-default']\n"
        "[[repository]]\npath = 'one'\n[[repository]]\nname = 'zwei'\npath = 'two'\n"
        "work = ['codemods', 'failing-tests']\nmax_candidates = 7\ntests = ['tests']\nguard = ['none']\n"
        "checks = ['make']\nseed = 4\n",
        tmp_path,
    )
    one, two = fleet.members
    assert (fleet.jobs, fleet.max_seconds, fleet.nice, fleet.disk) == (3, 100.0, 5, DiskPriority.NORMAL)
    assert (one.name, one.work, one.max_seconds, one.use_model) == ("one", (WorkKind.CODEMODS,), 20.5, False)
    assert (one.memory_bytes, one.rules, one.source.folder) == (1 << 30, ("mutable-default",), tmp_path / "one")
    assert (two.name, two.work) == ("zwei", (WorkKind.FAILING_TESTS, WorkKind.CODEMODS))
    assert (two.max_candidates, two.tests, two.checks, two.seed) == (7, ("tests",), ("make",), 4)
    assert (one.guard, two.guard) == ((), ("none",))


def test_faults_of_a_guard(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(UsageFault) as fault:
        read(HEAD + "[[repository]]\npath = 'one'\nguard = ['none', '']\n", tmp_path)
    said = str(fault.value)
    assert "guard: none stands alone" in said
    assert "guard: is empty" in said


@pytest.mark.parametrize("seconds", [4.0, 600.0, 100_000.0])
def test_the_guard_of_a_repository_takes_a_share_of_its_time(tmp_path: Path, seconds: float) -> None:
    source = TreeSource(folder=tmp_path)
    guard = guard_within(FleetMember(name="m", source=source, work=(WorkKind.FAILING_TESTS,)), seconds)
    assert 0 < guard.task_seconds <= 0.25 * seconds
    assert guard.seconds <= 120
    named = guard_within(FleetMember(name="m", source=source, work=(WorkKind.FAILING_TESTS,), guard=("none",)), seconds)
    assert named.task_seconds == 0


def test_every_fault_at_once_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    text = (
        'schema = "localagent/fleet/2"\nname = "a night"\nbogus = 1\n'  # 1-3
        "[total]\njobs = 0\nmax_seconds = 'long'\n"  # 4-6
        "[window]\nfrom = '25:00'\nuntil = 6\n"  # 7-9
        "[each]\nwork = [\n  'sarif',\n  'dance',\n]\n"  # 10-14
        "[[repository]]\npath = 'one'\nmirror = 'one'\n"  # 15-17
        "[[repository]]\npath = 'gone'\nrules = ['no-such']\n"  # 18-20
        "[[repository]]\nmirror = 'one'\nrevision = '-x'\n"  # 21-23
        "[[repository]]\npath = 'one'\npython = 'nope'\nmemory_mib = true\nchecks = ['a \"b']\n"  # 24-28
    )
    found = faults(text, tmp_path)
    for line, said in (
        (1, "schema: must be"),
        (2, "name: 'a night' is no name"),
        (3, "bogus: unknown key"),
        (5, "total.jobs: must be an integer from 1 to 256"),
        (6, "total.max_seconds: must be seconds"),
        (8, "window.from: '25:00' is no time"),
        (9, "window.until: must be a text"),
        (15, "repository[0].sarif: is missing: the logs"),
        (13, "each.work[1]: 'dance' is no work"),
        (16, "repository[0].path: either `path`"),
        (19, f"repository[1].path: {tmp_path}/gone is not a directory"),
        (20, "repository[1].rules[0]: there is no rule 'no-such'"),
        (22, f"repository[2].mirror: {tmp_path}/one is no bare repository"),
        (23, "repository[2].revision: '-x' is no revision"),
        (26, "repository[3].python:"),
        (27, "repository[3].memory_mib: must be an integer"),
        (28, "repository[3].checks[0]: 'a \"b': No closing quotation"),
    ):
        assert [f for f in found if f.startswith((f"fleet.toml:{line}: {said}",))], (line, said, found)


def test_nothing_stands_twice(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    found = faults(HEAD + "[[repository]]\npath = 'one'\n[[repository]]\npath = 'one'\n", tmp_path)
    assert [f.split(": ", 1)[1] for f in found] == [
        "repository[1].name: 'one' is the name of repository[0] as well: give one a `name`",
        f"repository[1].path: {tmp_path / 'one'} stands at repository[0] as well",
    ]


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "", "a\nb", "-x", "x" * 101])
def test_a_name_is_fit_for_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    text = HEAD + f'[[repository]]\npath = "one"\nname = {name!r}\n'.replace("'", '"')
    assert any("repository[0].name" in f for f in faults(text, tmp_path))


@pytest.mark.parametrize("revision", ["main..x", "a@{1}", "a b", "^x", ":x", "a~1", "refs//x", "x.lock"])
def test_a_revision_is_a_name(revision: str, tmp_path: Path) -> None:
    text = HEAD + f'[[repository]]\nmirror = "one"\nrevision = "{revision}"\n'
    assert any("is no revision" in f for f in faults(text, tmp_path))


def test_a_run_that_goes_on_does_not_look(tmp_path: Path) -> None:
    assert read(HEAD + "[[repository]]\npath = 'gone'\n", tmp_path, look=False).members[0].name == "gone"


def test_no_repository(tmp_path: Path) -> None:
    assert any("at least one [[repository]]" in f for f in faults(HEAD, tmp_path))


@pytest.mark.parametrize("data", [b"\xff", b"[[[", b"x = 1\nx = 2", b"a=" + b"[" * 5000])
def test_not_toml(data: bytes) -> None:
    with pytest.raises(UsageFault, match="not TOML"):
        parse_fleet(data, "f", Path(), RULES)


@pytest.mark.parametrize(
    ("start", "end", "now", "closes"),
    [
        ("22:00", "06:00", "2026-01-02 23:00", "2026-01-03 06:00"),
        ("22:00", "06:00", "2026-01-02 05:59", "2026-01-02 06:00"),
        ("22:00", "06:00", "2026-01-02 06:00", None),
        ("22:00", "06:00", "2026-01-02 21:59", None),
        ("01:00", "05:00", "2026-01-02 01:00", "2026-01-02 05:00"),
        ("01:00", "05:00", "2026-01-02 00:59", None),
    ],
)
def test_the_window_may_pass_midnight(start: str, end: str, now: str, closes: str | None) -> None:
    window = TimeWindow(start=time.fromisoformat(start), end=time.fromisoformat(end))
    assert window.closes(datetime.fromisoformat(now)) == (closes and datetime.fromisoformat(closes))


def test_an_instruction_goes_alone_and_its_model_is_named_whole(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    each = "[each]\nwork = ['instruction']\ninstruction = 'rename a to b'\nchat_model = 'unix:/run/llm.sock'\n"
    two = "[[repository]]\npath = 'two'\ninstruction = 'rename c to d'\nassume = true\nmax_tokens = 9\n"
    fleet = read(HEAD + each + "[[repository]]\npath = 'one'\n" + two, tmp_path)
    told = [(m.instruction, m.chat_model, m.assume, m.max_tokens) for m in fleet.members]
    socket = "unix:/run/llm.sock"
    assert told == [("rename a to b", socket, False, 2_000_000), ("rename c to d", socket, True, 9)]
    wrong = "work = ['instruction', 'codemods']\ninstruction = \"x\\u001b[2J\"\nchat_model = 'unix:llm.sock'\n"
    found = faults(HEAD + "[[repository]]\npath = 'one'\n" + wrong + "guard = ['tests']\n", tmp_path)
    reasons = ("goes alone", "a character that is not shown", "neither unix:/SOCKET", "guard: is for repairs")
    assert all(any(reason in line for line in found) for reason in reasons), found
    asked = faults(HEAD + "[[repository]]\npath = 'one'\ninstruction = 'x'\n", tmp_path)
    assert "is for the work 'instruction', which is not asked for" in asked[0]
    lacking = faults(HEAD + "[[repository]]\npath = 'one'\nwork = ['instruction']\n", tmp_path)
    assert "instruction: is missing" in lacking[0]
    cluster = "[cluster]\nscheduler = 'tls://a:1'\ncertificates = 'c'\n"
    with pytest.raises(UsageFault, match="a model server's socket is of this machine"):
        read(HEAD + cluster + each + "[[repository]]\npath = 'one'\n", tmp_path, look=False)
