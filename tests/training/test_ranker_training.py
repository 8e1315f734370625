"""Learning the order: what is mined, what is kept of it, and that only what is better on unseen fixes is registered."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.git_builder import Repo

from localagent.app.fix.learned_order import REGISTERED
from localagent.app.settings import Settings as House
from localagent.domain.edit import Edit, Reading
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.errors import UsageFault
from localagent.repair.ordering.ranker import Ranker, knows_nothing, load_ranker
from localagent.repair.ordering.ranker_features import FEATURES
from localagent.repair.ordering.weights import Weights
from localagent.repo.git import Git
from localagent.training.ranker_corpus import Corpus, opened
from localagent.training.ranker_history import HistoryFix, commits_of, fixes, small_fix
from localagent.training.ranker_in_force import InForce, in_force, outgrown
from localagent.training.ranker_injection import injected
from localagent.training.ranker_judging import FOLDS, LEAST, OrderInUse, Paired, judged
from localagent.training.ranker_learning import Listed, RankerSettings, learn
from localagent.training.ranker_run import conclude, sample_digests
from localagent.training.ranker_samples import Read, load, mending, open_lines, sample_of, save

BROKEN = """\
def total(items, limit):
    found = 0
    for item in items:
        if item < limit:
            found += item
    return found
"""
FIXED = BROKEN.replace("<", "<=")
PATH = RepoPath("shop.py")


def unread(_source: bytes, _path: str, edits: object) -> list[None]:
    return [None] * len(edits)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """Three commits worth learning from, and what is not."""
    repo = Repo(tmp_path_factory.mktemp("learn") / "shop")
    key = (
        'API_TOKEN = "ghp_'
        + "".join(random.Random(1).choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789", k=36))
        + '"\n'
    )

    def commit(message: str, **files: str) -> None:
        for name, text in files.items():
            repo.stage(name.replace("__", "/") + ".py", text)
        repo.git("commit", "-q", "-m", message)

    commit("Begin", shop=BROKEN, secret=key + BROKEN, tests__test_shop=BROKEN, two=BROKEN, wide=BROKEN)
    commit("Fix the limit", shop=FIXED)
    commit("Fix the limit where a secret is", secret=key + FIXED)
    commit("Fix a test", tests__test_shop=FIXED)
    commit("Another limit", two=FIXED)
    commit("Fix two files", two=BROKEN, shop=BROKEN)
    commit("Fix words", wide=BROKEN.replace("found", "kept_as_it_never_was"))
    commit("Fix the bound, too", two=BROKEN.replace("= 0", "= 1"))
    return repo


def test_only_small_fixes_of_one_file_of_code_are_mined(history: Repo) -> None:
    git = Git(history.folder, {})
    commits = commits_of(git, 100)
    assert len(commits) == 6
    found = list(fixes(git, "shop", commits))
    assert [(f.path, f.first, f.last) for f in found] == [("two.py", 2, 2), ("secret.py", 5, 5), ("shop.py", 4, 4)]
    assert (found[-1].before, found[-1].after) == (BROKEN.encode(), FIXED.encode())


@pytest.mark.long
def test_a_fix_becomes_a_sample_that_holds_what_mends(history: Repo, tmp_path: Path) -> None:
    fix = small_fix("x@1", "shop.py", BROKEN.encode(), FIXED.encode())
    assert fix is not None
    read = [Reading(ratio=-1.5, stood=-0.25), None]
    sample = sample_of(fix, "real", open_edit_space({}), lambda _s, _p, edits: (read * len(edits))[: len(edits)])
    assert sample is not None
    assert [sample.edits[k].apply(fix.before) for k in sample.truth] == [fix.after]
    again = load(save(sample, tmp_path))
    assert (again.truth, again.source, again.readings) == (sample.truth, sample.source, sample.readings)
    assert [e.apply(fix.before) for e in again.edits] == [e.apply(fix.before) for e in sample.edits]
    assert not list(tmp_path.glob("*.part"))
    far = small_fix("x@2", "shop.py", BROKEN.encode(), BROKEN.replace("= 0", "= 77").encode())
    assert far is not None
    assert sample_of(far, "real", open_edit_space({}), unread) is None


@pytest.mark.long
def test_a_corpus_goes_on_where_it_stopped_and_keeps_no_secret(history: Repo, tmp_path: Path) -> None:
    def corpus() -> Corpus:
        return Corpus(repo=history.folder, folder=tmp_path / "shop-3")  # what is drawn follows from the name

    first = corpus()
    first.collect(lambda: open_edit_space({}), unread, lambda: False)
    assert not first.counts
    first.collect(lambda: open_edit_space({}), unread, lambda: True)
    assert (first.counts["real"], first.counts["secret"], first.counts["injected"]) == (2, 1, 1)
    kept = list(first.samples())
    assert {s.kind for _, s in kept} == {"real", "injected"}
    assert not any(b"ghp_" in s.source for _, s in kept)
    second = corpus()
    second.collect(lambda: open_edit_space({}), unread, lambda: True)
    assert not second.counts
    assert [digest for digest, _ in second.samples()] == [digest for digest, _ in kept]
    file = sorted(second.folder.glob("*.json.gz"))[0]
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert len(list(second.samples())) == len(kept) - 1
    assert second.counts["damaged"] == 1


@pytest.mark.long
def test_clones_are_told_apart_and_bring_their_fixes_once(history: Repo, tmp_path: Path) -> None:
    clone = tmp_path / "b" / "shop"
    clone.parent.mkdir()
    history.git("clone", "-q", str(history.folder), str(clone))
    both = opened([history.folder, clone], tmp_path / "samples")
    for corpus in both:
        corpus.collect(lambda: open_edit_space({}), unread, lambda: True)
    assert both[0].name != both[1].name
    alone, together = (sample_digests(some, Weights(), reader="m/1") for some in (both[:1], both))
    real = [[s for s in plain if s.kind == "real"] for _, _, plain in (alone, together)]
    assert len(real[0]) == len(real[1]) >= 1  # an injected bug may be the same as a real one
    assert together[1] == []  # nobody read them


def test_folders_that_are_no_repositories_are_all_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(UsageFault) as refused:
        opened([tmp_path / "a", tmp_path / "b", tmp_path / "gone"], tmp_path)
    assert len(refused.value.faults) == 3


@given(st.integers(0, 10_000))
def test_an_injected_bug_is_undone_by_its_fix(seed: int) -> None:
    source = (Path(__file__).resolve().parents[2] / "localagent" / "localize" / "spectrum.py").read_bytes()
    fix = injected("us", "spectrum.py", source, random.Random(seed))
    assert fix is not None
    assert fix.after == source
    assert fix.before != source
    compile(fix.before, "x", "exec")
    old, new = fix.before.split(b"\n"), source.split(b"\n")
    assert old[: fix.first - 1] == new[: fix.first - 1]
    assert fix.last <= len(old)
    assert set(range(fix.first, fix.last + 1)) <= open_lines(fix)


def test_mending_is_formatting_blind_and_nothing_else() -> None:
    fix = HistoryFix(origin="x", path=PATH, before=b"a = f(1)\nb = 2\n", after=b"a = f( 2 )\nb = 2\n", first=1, last=1)
    edits = list(open_edit_space({}).edits(PATH, {PATH: fix.before}, lines=frozenset({1}), failures=()))
    assert {edits[k].apply(fix.before) for k in mending(fix, edits)} == {b"a = f(2)\nb = 2\n"}


def samples(*, telling: bool, projects: int = 6, each: int = 10) -> list[Listed]:
    """Lists of 60 edits in which one feature tells the edit that mends, or nothing does."""
    draw = np.random.default_rng(3)
    out = []
    for number in range(projects * each):
        told = draw.normal(size=(60, len(FEATURES))).astype(np.float32)
        truth = int(draw.integers(60))
        if telling:
            told[truth, FEATURES.index("names-in-file")] += 4.0
        out.append(
            Listed(
                origin=f"p{number // each}@{number}",
                group=f"p{number // each}",
                kind="real",
                told=told,
                hand=draw.normal(size=60),
                operators=("x",) * 60,
                truth=(truth,),
            )
        )
    return out


@pytest.mark.long
def test_an_order_that_is_better_on_unseen_projects_is_registered(tmp_path: Path) -> None:
    target = tmp_path / "ranker" / "ranker.json"
    good = samples(telling=True)
    named: dict[str, dict[str, int]] = {f"p{k}": {} for k in range(6)}
    done = conclude(["a"], [], good, named, target, lambda _text: None)
    assert done.registered == target
    ranker = load_ranker(target)
    assert ranker is not None
    assert not ranker.with_model.linear.any()  # nobody judged it: it stays the hand's
    weights = dict(zip(ranker.without_model.features, ranker.without_model.linear, strict=True))
    assert max(weights, key=lambda name: weights[name]) == "names-in-file"
    again = conclude(["a"], [], good, named, tmp_path / "again.json", lambda _text: None)
    assert again.registered is not None
    assert again.registered.read_bytes() == target.read_bytes()
    card = json.loads(target.read_text("utf-8"))["about"]
    assert card["found"] == {f"p{k}": {"real": 10} for k in range(6)}  # also of what an earlier run had found
    assert card["samples"] == 60


def test_an_order_that_is_no_better_is_not(tmp_path: Path) -> None:
    target = tmp_path / "ranker.json"
    for poor in (samples(telling=False), samples(telling=True)[: LEAST - 1], []):
        done = conclude(["a"], [], poor, {}, target, lambda _text: None)
        assert done.registered is None
        assert not target.exists()


def house(tmp_path: Path) -> House:
    return replace(House.from_environ({}), data_dir=tmp_path)


def said(_text: str) -> None:
    """Nobody listens."""


def test_a_new_order_must_be_better_than_the_one_in_use(tmp_path: Path) -> None:
    """The same fixes again: as good as before is not better. Where nothing is in use, they are enough."""
    target, good = tmp_path / REGISTERED, samples(telling=True)
    found = {f"p{k}": {"real": 4} for k in range(5)}
    assert conclude(["a"], [], good, found, target, said).registered == target
    first = target.read_bytes()
    standing = in_force(house(tmp_path), Weights())
    assert standing is not None
    assert standing.repositories == frozenset(found)
    again = conclude(["a"], [], good, found, target, said, standing=standing)
    assert again.registered is None
    assert target.read_bytes() == first
    told = again.figures["without-model"]["in-use"]
    assert isinstance(told, dict)
    assert told["kept"] is False


def test_an_order_in_use_that_is_poor_gives_way_and_the_other_part_stays(tmp_path: Path) -> None:
    target, good = tmp_path / REGISTERED, samples(telling=True)
    poor = replace(knows_nothing(with_model=False), linear=-np.ones(len(knows_nothing(with_model=False).features)))
    other = replace(knows_nothing(with_model=True), linear=np.full(len(FEATURES), 0.25))
    standing = InForce(
        ranker=Ranker(name="old", with_model=other, without_model=poor), counts=2.0, repositories=frozenset({"old"})
    )
    done = conclude(["a"], [], good, {"p0": {}}, target, said, standing=standing)
    assert done.registered == target
    ranker = load_ranker(target)
    assert ranker is not None
    assert set(ranker.with_model.linear) == {0.5}  # nobody judged it: what is in use stays, as far as it counted
    new = in_force(house(tmp_path), Weights())
    assert new is not None
    assert new.repositories == frozenset({"p0", "old"})


@pytest.mark.long
def test_the_order_in_use_is_compared_by_what_it_never_saw() -> None:
    """It knows the fixes that it learned from by heart; those of other projects judge, where they are enough."""
    many = samples(telling=True, projects=8, each=LEAST // 2)
    knows = {id(s): s.truth[0] for s in many if s.group in ("p0", "p1", "p2", "p3")}
    by_heart = OrderInUse(
        scores=lambda s: np.array([1.0 if k == knows.get(id(s)) else 0.0 for k in range(len(s.hand))]),
        learned_from=frozenset({"p0", "p1", "p2", "p3"}),
    )
    found = judged(many, RankerSettings(), with_model=False, standing=by_heart)
    assert found.standing is not None
    assert len(found.standing.hand) == 4 * (LEAST // 2)
    assert found.is_better
    seen_all = replace(by_heart, learned_from=frozenset({s.group for s in many}))
    found = judged(many, RankerSettings(), with_model=False, standing=seen_all)
    assert found.standing is not None
    assert len(found.standing.hand) == len(many)


@pytest.mark.long
def test_what_a_repository_gave_goes_with_it(tmp_path: Path) -> None:
    target, good = tmp_path / REGISTERED, samples(telling=True)
    heard: list[str] = []
    conclude(["a"], [], good, {"one": {}, "two": {}}, target, said)
    outgrown(house(tmp_path), ["two", "one", "three"], heard.append)
    assert target.is_file()
    assert heard == []
    outgrown(house(tmp_path), ["two"], heard.append)
    assert not target.exists()
    assert "learned from one too" in heard[0]
    assert in_force(house(tmp_path), Weights(learned=0.0)) is None
    bundled = in_force(house(tmp_path), Weights())
    assert bundled is not None
    assert (bundled.counts, bundled.repositories) == (Weights().learned, frozenset())
    conclude(["a"], [], good, {"one": {}}, target, said)
    table = json.loads(target.read_text("utf-8"))
    del table["about"]
    target.write_text(json.dumps(table), encoding="utf-8")
    outgrown(house(tmp_path), ["one"], heard.append)
    assert not target.exists()
    target.write_text("{", encoding="utf-8")
    outgrown(house(tmp_path), ["one"], heard.append)
    assert not target.exists()


@pytest.mark.long
def test_readings_are_of_the_model_that_reads_now(history: Repo, tmp_path: Path) -> None:
    def reads(value: float) -> Read:
        return lambda _s, _p, edits: [Reading(ratio=value, stood=-1.0)] * len(edits)

    corpus = Corpus(repo=history.folder, folder=tmp_path / "shop-3")
    corpus.collect(lambda: open_edit_space({}), unread, lambda: True)  # a run without a model
    count = len(list(corpus.samples()))
    assert {s.reader for _, s in corpus.samples()} == {""}
    corpus.reread(reads(-1.0), "", lambda: True)
    corpus.reread(unread, "one/1", lambda: True)  # a model that does not answer leaves things as they are
    assert corpus.counts["read anew"] == 0
    corpus.reread(reads(-1.0), "one/1", lambda: False)
    assert corpus.counts["read anew"] == 0
    corpus.reread(reads(-1.0), "one/1", lambda: True)
    assert corpus.counts["read anew"] == len(list(corpus.samples())) == count
    corpus.reread(reads(-9.0), "one/1", lambda: True)
    assert {r.ratio for _, s in corpus.samples() for r in s.readings if r is not None} == {-1.0}
    _, read, plain = sample_digests([corpus], Weights(), reader="two/1")
    assert (len(read), len(plain) > 0) == (0, True)  # what another model read does not count
    corpus.reread(reads(-2.0), "two/1", lambda: True)
    assert {r.ratio for _, s in corpus.samples() for r in s.readings if r is not None} == {-2.0}
    assert len(sample_digests([corpus], Weights(), reader="two/1")[1]) == len(plain)
    assert len(list(corpus.folder.glob("*.json.gz"))) == count


def test_what_pairs_say() -> None:
    up = Paired(hand=(50,) * LEAST, learned=(5,) * LEAST)
    assert (up.better, up.worse, up.is_better) == (LEAST, 0, True)
    assert up.chance == pytest.approx(2.0**-LEAST)
    assert not Paired(hand=up.learned, learned=up.hand).is_better
    assert not Paired(hand=up.hand[1:], learned=up.learned[1:]).is_better
    assert Paired(hand=(1, 2), learned=(1, 2)).chance == 1.0
    assert FOLDS > 1


def test_what_is_learned_depends_on_samples_and_seed_alone() -> None:
    some = samples(telling=True)
    one, two = (learn(some, RankerSettings(steps=20), with_model=True) for _ in range(2))
    assert np.array_equal(one.linear, two.linear)
    assert np.array_equal(one.hidden, two.hidden)


def test_edits_of_a_sample_are_the_searchs(history: Repo) -> None:
    fix = small_fix("x@1", "shop.py", BROKEN.encode(), FIXED.encode())
    assert fix is not None
    sample = sample_of(fix, "real", open_edit_space({}), unread)
    assert sample is not None
    whole: list[Edit] = list(open_edit_space({}).edits(PATH, {PATH: fix.before}, lines=open_lines(fix), failures=()))
    assert list(sample.edits) == whole[: len(sample.edits)]
