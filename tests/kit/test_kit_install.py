"""A kit installs, upgrades, goes back and leaves nothing; a refused or failing one changes nothing. Real programs."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.kit_builder import MODEL, PUBLIC, Home, copied, make_kit, script


@pytest.fixture(scope="module")
def kits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("a maker's kits")
    return make_kit(folder / "one", "1.0"), make_kit(folder / "two", "2.0"), make_kit(folder / "bad", "3", broken=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "a home").mkdir()
    return Home(tmp_path / "a home")


@pytest.mark.long
def test_a_kit_upgrades_over_an_installation_of_0_1_0_and_goes_back(kits: tuple[Path, Path, Path], home: Home) -> None:
    """What that version noted of its kit and of the kit's maker; its programs are not among the fixtures."""
    name, noted = "0.1.0-04f73fe5bd363fb9", Path(__file__).parents[1] / "fixtures" / "0.1.0" / "kit"
    shutil.copytree(noted, home.prefix / "versions" / name)
    (home.prefix / "versions" / name / "maker.pub").rename(home.prefix / "maker.pub")
    (home.prefix / "current").symlink_to(Path("versions") / name)
    ended = home.kit(kits[0], "upgrade")  # the maker's key is known
    assert (ended.returncode, home.version()) == (0, "localagent 1.0"), ended.stderr
    assert f"rollback` goes back to {name}" in ended.stdout
    tool = home.path / ".local" / "bin" / "localagent-kit"
    assert f"before: {name}" in home.run(tool, "status").stdout
    assert home.run(tool, "rollback").returncode == 0
    assert (home.prefix / "current").readlink() == Path("versions") / name


@pytest.mark.long
def test_from_nothing_to_nothing(kits: tuple[Path, Path, Path], home: Home) -> None:
    one, two, bad = kits
    tool = home.path / ".local" / "bin" / "localagent-kit"

    ended = home.kit(one, "install", "--key", PUBLIC)
    assert (ended.returncode, home.version()) == (0, "localagent 1.0"), ended.stderr
    weights = list(home.prefix.glob("versions/1.0-*/lib/python*/site-packages/localagent/_data/models/m.gguf"))
    assert [path.read_bytes() for path in weights] == [MODEL]

    ended = home.run(tool, "upgrade", two)  # the maker's key is known by now
    assert (ended.returncode, home.version()) == (0, "localagent 2.0"), ended.stderr
    assert "rollback` goes back to 1.0-" in ended.stdout

    ended = home.kit(bad, "upgrade")
    assert (ended.returncode, home.version()) == (1, "localagent 2.0")
    assert "what stood before stands" in ended.stderr
    assert not list(home.prefix.glob("versions/3-*"))

    assert home.run(tool, "rollback").returncode == 0
    assert home.version() == "localagent 1.0"
    ended = home.run(tool, "rollback")
    assert (ended.returncode, home.version()) == (1, "localagent 1.0")
    assert "no earlier kit" in ended.stderr
    assert home.kit(two, "install").returncode == 0
    assert home.version() == "localagent 2.0"

    data = home.path / ".local" / "state" / "localagent" / "tasks"
    data.mkdir(parents=True)
    (data / "journal").write_text("kept")
    (home.path / "mine").write_text("not the kit's")
    assert home.run(tool, "uninstall").returncode == 0
    assert home.left() == [".local/state/localagent/tasks/journal", "mine"]
    assert home.kit(one, "uninstall", "--purge").returncode == 0
    assert home.left() == ["mine"]


@pytest.mark.slow
def test_state_goes_forward_with_a_kit_and_back_with_the_other(home: Home, tmp_path: Path) -> None:
    one, two = make_kit(tmp_path / "one", "1.0", schema=1), make_kit(tmp_path / "two", "2.0", schema=2)
    tool = home.path / ".local" / "bin" / "localagent-kit"
    state = home.path / ".local" / "state" / "localagent"
    state.mkdir(parents=True)
    (state / "words").write_text("quiet")
    assert home.kit(one, "install", "--key", PUBLIC).returncode == 0
    assert home.version() == "localagent 1.0 quiet"
    assert home.run(tool, "upgrade", two).returncode == 0
    assert home.version() == "localagent 2.0 QUIET"
    (state / "schema-2" / "words").write_text("WRITTEN SINCE")
    ended = home.run(tool, "rollback")
    assert ended.returncode == 0, ended.stderr
    assert "cannot read is kept in" in ended.stdout
    assert home.version() == "localagent 1.0 quiet"
    (aside,) = state.glob("set-aside-schema-2-*")
    assert (aside / "words").read_text() == "WRITTEN SINCE"
    (state / "words").write_text("went on")
    assert home.run(tool, "upgrade", two).returncode == 0
    assert home.version() == "localagent 2.0 WENT ON"


@pytest.mark.slow
@pytest.mark.parametrize("switched", [False, True])
def test_a_rollback_killed_before_or_after_its_switch_leaves_each_version_its_own_state(
    home: Home, tmp_path: Path, switched: bool
) -> None:
    one, two = make_kit(tmp_path / "one", "1.0", schema=1), make_kit(tmp_path / "two", "2.0", schema=2)
    tool = home.path / ".local" / "bin" / "localagent-kit"
    state = home.path / ".local" / "state" / "localagent"
    state.mkdir(parents=True)
    (state / "words").write_text("quiet")
    home.kit(one, "install", "--key", PUBLIC)
    home.run(tool, "upgrade", two)
    assert home.version() == "localagent 2.0 QUIET"
    (state / "schema-2" / "words").write_text("SINCE")
    names = {path.name.split("-")[0]: path.name for path in (home.prefix / "versions").iterdir()}
    (home.prefix / "going-back").write_text(names["1.0"])
    if switched:
        (home.prefix / "current").unlink()
        (home.prefix / "current").symlink_to(Path("versions") / names["1.0"])
    assert home.version() == ("localagent 1.0 quiet" if switched else "localagent 2.0 SINCE")
    ended = home.run(tool, "rollback")
    assert ended.returncode == 0, ended.stderr
    assert home.version() == "localagent 1.0 quiet"
    (state / "words").write_text("went on")
    assert home.run(tool, "upgrade", two).returncode == 0
    assert home.version() == "localagent 2.0 WENT ON"
    assert home.kit(one, "uninstall").returncode == 0
    assert not home.prefix.exists()


@pytest.mark.long
def test_without_a_key_or_with_anothers_nothing_is_used(
    kits: tuple[Path, Path, Path], home: Home, tmp_path: Path
) -> None:
    one = kits[0]
    ended = home.kit(one, "install")
    assert (ended.returncode, home.left()) == (1, [])
    assert "whose kit is it?" in ended.stderr
    ended = home.kit(one, "install", "--key", "0" * 64)
    assert (ended.returncode, home.left()) == (1, [])
    assert "nothing of it was unpacked or run" in ended.stderr
    stranger = Ed25519PrivateKey.generate()
    foreign = make_kit(tmp_path / "foreign", "9", key=stranger)
    assert home.kit(one, "install", "--key", PUBLIC).returncode == 0
    for args in ((), ("--key", stranger.public_key().public_bytes_raw().hex())):
        ended = home.kit(foreign, "install", *args)
        assert (ended.returncode, home.version()) == (1, "localagent 1.0")
    assert "uninstall first if the maker changed" in ended.stderr


@pytest.mark.parametrize(
    ("name", "find", "put"),
    [
        ("verify.py", "return encoded", "return True or encoded"),
        ("install.py", ".hexdigest() != expected", ".hexdigest() == None"),
        ("versions.py", "def install", "print('ran')\ndef install"),
        ("building.py", "def build", "print('ran')\ndef build"),
    ],
)
def test_the_programs_stand_surety_for_each_other(
    kits: tuple[Path, Path, Path], home: Home, tmp_path: Path, name: str, find: str, put: str
) -> None:
    spoiled = copied(kits[0], tmp_path / "kit")
    program = spoiled / "program" / name
    text = program.read_text()
    assert find in text
    program.write_text(text.replace(find, put, 1))
    ended = home.kit(spoiled, "install", "--key", PUBLIC)
    assert (ended.returncode, home.left()) == (1, [])
    assert f"program/{name}: altered" in ended.stderr
    assert "ran" not in ended.stdout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"python": "cp38"}, "the kit is for Python 3.8"),
        ({"machine": "vax"}, "the kit is for vax"),
        ({"glibc": "99.1"}, "the kit needs glibc 99.1 or newer"),
    ],
)
def test_a_kit_for_another_machine(home: Home, tmp_path: Path, change: dict[str, str], reason: str) -> None:
    from support.kit_builder import MAKER, payload

    kit = tmp_path / "kit"
    payload(kit, "1.0")
    about = json.loads((kit / "kit.json").read_text())
    (kit / "kit.json").write_text(json.dumps({**about, **change}))
    script("kit_seal").seal(kit, MAKER)
    ended = home.kit(kit, "install", "--key", PUBLIC)
    assert (ended.returncode, home.version()) == (1, "")
    assert reason in ended.stderr


@pytest.mark.long
def test_what_is_not_ours_in_the_way_stays(kits: tuple[Path, Path, Path], home: Home) -> None:
    tool = home.path / ".local" / "bin" / "localagent"
    tool.parent.mkdir(parents=True)
    tool.write_text("somebody's program")
    ended = home.kit(kits[0], "install", "--key", PUBLIC)
    assert ended.returncode == 1
    assert "is not ours" in ended.stderr
    assert tool.read_text() == "somebody's program"
    tool.unlink()
    elsewhere = home.path / "elsewhere"
    elsewhere.write_text("mine")
    assert home.kit(kits[0], "install", "--key", PUBLIC).returncode == 0
    tool.unlink()
    tool.symlink_to(elsewhere)
    assert home.kit(kits[0], "uninstall").returncode == 0
    assert tool.readlink() == elsewhere


@pytest.mark.long
def test_an_unfinished_version_is_never_used_and_is_built_anew(kits: tuple[Path, Path, Path], home: Home) -> None:
    one, two, _ = kits
    assert home.kit(one, "install", "--key", PUBLIC).returncode == 0
    assert home.kit(two, "install").returncode == 0
    (version,) = home.prefix.glob("versions/1.0-*")
    (version / "complete").unlink()
    assert home.kit(one, "rollback").returncode == 1
    assert home.version() == "localagent 2.0"
    (version / "bin" / "localagent").write_text("half")
    assert home.kit(one, "install").returncode == 0
    assert home.version() == "localagent 1.0"


@pytest.mark.long
def test_modes_are_ours_to_say_not_those_of_the_folder_or_the_umask(home: Home, tmp_path: Path) -> None:
    kit = make_kit(tmp_path / "stick", "1.0")
    for path in kit.rglob("*"):
        path.chmod(0o6777 if path.is_file() else 0o777)  # as a stick without rights of its own is shown
    before = os.umask(0)
    try:
        ended = home.kit(kit, "install", "--key", PUBLIC)
    finally:
        os.umask(before)
    assert ended.returncode == 0, ended.stderr
    found = {p: stat.S_IMODE(p.lstat().st_mode) for p in home.prefix.rglob("*") if not p.is_symlink()}
    assert {str(p): oct(m) for p, m in found.items() if m & 0o7022} == {}
    assert home.version() == "localagent 1.0"


def test_what_changes_after_it_was_verified_is_not_used(tmp_path: Path) -> None:
    kit, verify, taking = make_kit(tmp_path / "kit", "1.0"), script("verify"), script("taking")
    sound = verify.checked(kit, PUBLIC)
    assert taking.about_kit(sound)["version"] == "1.0"
    taking.taken(sound, "docs/kit.md", tmp_path / "kit.md")
    for name in ("docs/kit.md", "kit.json"):
        (kit / name).write_text("{}")
    with pytest.raises(script("places").Impossible, match="changed after it was verified"):
        taking.taken(sound, "docs/kit.md", tmp_path / "other.md")
    assert not (tmp_path / "other.md").exists()
    with pytest.raises(script("places").Impossible, match="changed after it was verified"):
        taking.about_kit(sound)


def test_a_link_put_in_after_the_verifying_is_neither_followed_nor_copied(tmp_path: Path) -> None:
    """Root installs from a share: a file that was exchanged for a link must not reach another file's mode or bytes."""
    kit, verify, taking = make_kit(tmp_path / "kit", "1.0"), script("verify"), script("taking")
    sound = verify.checked(kit, PUBLIC)
    secret = tmp_path / "shadow"
    secret.write_text("root's own")
    secret.chmod(0o600)
    (kit / "docs" / "kit.md").unlink()
    (kit / "docs" / "kit.md").symlink_to(secret)
    with pytest.raises(verify.NotSound):
        taking.taken(sound, "docs/kit.md", tmp_path / "taken.md")
    (kit / "policies").rename(kit / "elsewhere")
    (kit / "policies").symlink_to(tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "default.toml").write_text("root's own")
    with pytest.raises(script("places").Impossible, match="changed after it was verified"):
        taking.taken(sound, "policies/default.toml", tmp_path / "taken.toml")
    (tmp_path / "there.md").symlink_to(secret)
    with pytest.raises(FileExistsError):
        taking.taken(sound, "kit.json", tmp_path / "there.md")
    assert (stat.S_IMODE(secret.stat().st_mode), secret.read_text()) == (0o600, "root's own")
    assert not any((tmp_path / name).exists() for name in ("taken.md", "taken.toml"))


@pytest.mark.long
def test_a_build_from_a_kit_that_changes_leaves_no_version(tmp_path: Path) -> None:
    kit, verify, versions = make_kit(tmp_path / "kit", "1.0"), script("verify"), script("versions")
    sound = verify.checked(kit, PUBLIC)
    place = script("places").Place.of(system=False, prefix=tmp_path / "prefix", environ={"HOME": str(tmp_path)})
    (kit / "models" / "m.gguf").unlink()
    (kit / "models" / "m.gguf").symlink_to("/dev/null")
    with pytest.raises(verify.NotSound):
        versions.install(place, sound)
    assert not list(place.versions.iterdir())


@pytest.mark.long
def test_a_key_file_that_was_altered_is_named(kits: tuple[Path, Path, Path], home: Home) -> None:
    assert home.kit(kits[0], "install", "--key", PUBLIC).returncode == 0
    key = home.prefix / "maker.pub"
    for damage in ("", "ed25519 " + "0" * 63, key.read_text() * 2):
        key.write_text(damage)
        for command in (("status",), ("upgrade", str(kits[1]))):
            ended = home.run(home.path / ".local" / "bin" / "localagent-kit", *command)
            assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)
            assert "maker.pub" in ended.stderr
    assert home.version() == "localagent 1.0"
