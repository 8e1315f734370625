"""`model bench`: the built-in set holds what it says, ranks count as they should, records are kept and not trusted."""

import ast
import io
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.gguf_builder import TinyGguf

from localagent.app.fix.learned_order import open_order
from localagent.app.fix.prior import load_prior
from localagent.app.models.bench import Extent, _Order, _rank, bench_model, load_bugs, right_edits, settle
from localagent.app.models.measurements import ModelMeasurement, WayYield, as_json, last_bench, record_path, share
from localagent.app.models.repairs import Repairs, holds, repair_all
from localagent.app.settings import Settings
from localagent.cli import main as entry
from localagent.cli.model import table
from localagent.cli.render import Render
from localagent.domain.edit import Reading
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.errors import InternalFault
from localagent.llm.model.quantized_store import machine
from localagent.llm.model.registry import Registry
from localagent.repair.ordering.ranker_features import File
from localagent.repair.search.expansion import crowds_of

BENCH = ModelMeasurement(
    name="m<odel",
    sha256="0" * 64,
    machine=machine(),
    threads=1,
    ranks=(1, 7, 60),
    plain=(3, 90, 400),
    edits=1000,
    tokens_per_second=50.0,
    tokens_per_cpu_second=60.0,
    load_seconds=0.5,
    resident_bytes=300 << 20,
    ways={"span": WayYield(bugs=4, replies=9, valid=9, exact=1, tokens=500, seconds=3.0)},
    repairs=Repairs(bugs=8, answered=4, correct=3, seconds=9.0),
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environ({"HOME": str(tmp_path)})


@pytest.mark.long
def test_the_built_in_set_is_of_programs_with_a_repair_of_each_kind(settings: Settings) -> None:
    bugs = load_bugs(settings.models_dir)
    space = open_edit_space(load_prior(settings.models_dir / "prior.json"))
    assert len({bug.id for bug in bugs}) == len(bugs)
    for bug in bugs:
        assert ast.dump(ast.parse(bug.before)) != ast.dump(ast.parse(bug.after))
        ast.parse(bug.tests)
    for kind, wanted in (("order", True), ("write", False)):
        bug = [bug for bug in bugs if bug.kind == kind][-1]  # of the first to write the space holds a repair by now
        path = RepoPath(bug.path)
        edits = space.edits(path, {path: bug.before.encode()}, lines=frozenset([bug.line]), failures=())
        assert bool(right_edits(bug, edits)) is wanted


def test_ranks_are_counted_from_one_and_shares_of_them() -> None:
    edits = list(
        open_edit_space({}).edits(RepoPath("m.py"), {RepoPath("m.py"): b"a = b + 1\n"}, lines=None, failures=())
    )
    assert _rank(edits, [float(k) for k in range(len(edits))], {id(edits[2]), id(edits[4])}) == 3
    assert _rank(edits, [-float(k) for k in range(len(edits))], {id(edits[-1])}) == 1
    assert [share(BENCH.ranks, most) for most in (1, 10, 100)] == [1 / 3, 2 / 3, 1.0]


def test_edits_cost_what_they_cost_in_a_task(settings: Settings) -> None:
    """By hand, with what was learned, and with what the model reads and mends on top."""
    path, source = RepoPath("m.py"), b"def f(a, b):\n    return a + b\n"
    edits = list(open_edit_space({}).edits(path, {path: source}, lines=None, failures=()))
    weights, ranker = open_order(settings)
    assert ranker is not None
    hand = _Order(weights, None).costs(source, edits, None, ())
    crowds = crowds_of(edits)
    expected = [weights.crowd * math.log1p(n) - e.prior for e, n in zip(edits, crowds, strict=True)]
    assert hand == pytest.approx(expected)
    gains = ranker.corrections(File(source), edits, crowds, None, weights)
    assert _Order(weights, ranker).costs(source, edits, None, ()) == pytest.approx(np.subtract(hand, gains))
    reading = [Reading(ratio=-1.0, stood=0.0), *[None] * (len(edits) - 1)]
    mended = [-2.0, *[None] * (len(edits) - 1)]
    told = np.subtract(_Order(weights, None).costs(source, edits, reading, mended), hand)
    rest = -weights.model * weights.unscored - weights.mended * weights.unmended
    assert told == pytest.approx([weights.model + 2 * weights.mended, *[rest] * (len(edits) - 1)])


def test_another_way_is_best_only_where_it_repairs_more() -> None:
    way = WayYield(bugs=4, replies=9, valid=9, exact=1, tokens=500, seconds=3.0)
    assert replace(BENCH, ways={**BENCH.ways, "search": way}).best == "span"
    assert replace(BENCH, ways={**BENCH.ways, "search": replace(way, exact=2)}).best == "search"
    assert replace(BENCH, ways={}).best == "span"


def test_a_record_is_read_back_on_its_machine_and_nothing_else_is(settings: Settings) -> None:
    path = record_path(settings, BENCH.sha256)
    assert last_bench(settings, BENCH.sha256) is None
    path.parent.mkdir(parents=True)
    table = json.loads(json.dumps(as_json(BENCH)))
    path.write_text(json.dumps(table))
    assert last_bench(settings, BENCH.sha256) == BENCH
    wrong = [
        {**table, "machine": "other"}, {**table, "sha256": "1" * 64}, {**table, "ranks": []}, {**table, "ranks": "12"},
        {**table, "ways": {"x": 1}}, {**table, "load_seconds": "x"},
        {**table, "more": 1}, {**table, "schema": 1}, [], 1, {**table, "repairs": {"bugs": 1}}, {**table, "repairs": 1},
    ]  # fmt: skip
    for broken in wrong:
        path.write_text(json.dumps(broken))
        assert last_bench(settings, BENCH.sha256) is None, broken
    path.write_text(json.dumps({**table, "repairs": None}))
    assert last_bench(settings, BENCH.sha256) == replace(BENCH, repairs=None)
    path.write_bytes(b"\xff" * 100)
    assert last_bench(settings, BENCH.sha256) is None


def test_only_the_whole_set_decides_how_a_model_is_asked_to_write(tmp_path: Path, settings: Settings) -> None:
    source = tmp_path / "mine.gguf"
    source.write_bytes(TinyGguf().bytes)
    registry = Registry(settings.models_dir, settings.data_dir)
    model = registry.add(source)
    way = WayYield(bugs=4, replies=9, valid=9, exact=3, tokens=500, seconds=3.0)
    found = replace(BENCH, name=model.name, ways={**BENCH.ways, "search": way})
    said: list[str] = []
    for extent in (Extent(most=1), Extent(only=("search",))):
        settle(registry, found, extent, said.append)
        assert registry.verify(model.name).writing == ("span",)
    assert len(said) == 2
    settle(registry, found, Extent(repairs=False), said.append)
    assert registry.verify(model.name).writing == ("search",)
    assert len(said) == 2


def test_a_set_that_is_damaged_is_our_fault(tmp_path: Path) -> None:
    (tmp_path / "reference-bugs.json").write_text('{"bugs": [{}]}')
    with pytest.raises(InternalFault, match="cannot be read"):
        load_bugs(tmp_path)


def test_the_plot_was_removed_and_says_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["model", "bench", "--svg", "plot.svg"]) == 2
    assert "--svg was removed: use --json" in capsys.readouterr().err


def test_the_table_says_what_is_asked_of_a_model() -> None:
    unanswered = replace(BENCH, name="other", repairs=Repairs(bugs=8, answered=0, correct=0, seconds=9.0))
    heads, *rows = (row.split("  ") for row in table([BENCH, unanswered, replace(BENCH, repairs=None)]))
    told = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [cell.strip() for cell in heads if cell.strip()][-2:] == ["correct", "precision"]
    assert told[0] == ["m<odel", "7 of 3", "67%", "67%", "100%", "50", "300", "0.5", "3/8", "75%"]
    assert told[1][-2:] == ["0/8", "-"]
    assert told[2][-2:] == ["-", "-"]
    assert told[3] == ["without a model", "90 of 3", "33%", "33%", "67%"]


@pytest.mark.long
def test_a_repair_is_judged_by_tests_that_it_never_saw(settings: Settings) -> None:
    """In the jail, without the model: the file repaired holds; one that suits only the visible tests does not."""
    bug = next(bug for bug in load_bugs(settings.models_dir) if bug.id == "basket-rows")
    assert holds(bug, bug.after, settings)
    assert not holds(replace(bug, hidden="def test_more():\n    assert False\n"), bug.after, settings)


@pytest.mark.model
@pytest.mark.slow
def test_whole_repairs_are_counted(settings: Settings) -> None:
    bugs = [bug for bug in load_bugs(settings.models_dir) if bug.id in ("basket-rows", "first-overdue")]
    said: list[str] = []
    wrong = [replace(bug, hidden="def test_more():\n    assert False\n") for bug in bugs]
    told, dropped = repair_all("", [*bugs, *wrong], settings, said.append)
    assert (told.bugs, dropped, len(said)) == (4, "", 4)
    assert told.answered == 2 * told.correct > 0
    assert told.precision == 0.5


@pytest.mark.slow
def test_every_repaired_file_passes_what_is_held_back(settings: Settings) -> None:
    for bug in load_bugs(settings.models_dir):
        assert holds(bug, bug.after, settings), bug.id


@pytest.mark.model
@pytest.mark.slow
def test_the_bundled_model_is_measured_and_listed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Settings.from_environ()
    weights = Registry(ours.models_dir, ours.data_dir).verify("").path
    assert weights is not None
    (settings.data_dir / "models").mkdir(parents=True)
    shutil.copy(weights, settings.data_dir / "models")
    said: list[str] = []
    extent = Extent(only=("search",), most=2, repairs=False)
    found = bench_model("", settings, said.append, extent)
    assert len(found.ranks) == len(found.plain) == 2
    assert set(found.ways) == {"search"}
    assert found.tokens_per_second > 0
    assert last_bench(settings, found.sha256) == found
    monkeypatch.setenv("XDG_DATA_HOME", str(settings.data_dir.parent))
    out = io.StringIO()
    monkeypatch.setattr(entry, "Render", lambda: Render(out=out, err=io.StringIO()))
    assert entry.main(["model", "list"]) == 0
    assert f"98 MB  peak {found.resident_bytes / 1e6:.0f} MB" in out.getvalue()
    assert f"measured: median rank {found.median:g} of 2" in out.getvalue()
