"""Installing from a folder of wheels: real jails, real pip, tiny wheels."""

import os
import sys
import venv
from pathlib import Path

import pytest
from support.wheel_builder import digest, encoded, write_wheel

from localagent.deps import choose as choosing
from localagent.deps import install as installing
from localagent.deps import site_packages, unpack
from localagent.deps.choose import ChosenWheel, NotInstallable
from localagent.deps.install import InstallOrder, install
from localagent.deps.site_packages import Environment, environment, fresh_target
from localagent.deps.sources import parse_requirements
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import Locked, Wanted
from localagent.domain.jailspec import JailResult, JailSpec
from localagent.errors import CannotEnforce, LocalagentError, UsageFault
from localagent.jail.api import NamespaceJail, NamespaceProcess, open_jail

KNOWN = KnownNames(["requests"])


@pytest.fixture(scope="module")
def jail() -> NamespaceJail:
    return open_jail()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    return folder


def wanted(text: str) -> list[Wanted]:
    return [item for item in parse_requirements(text.encode(), "r.txt", KNOWN) if isinstance(item, Wanted)]


def pins(*wheels: Path) -> str:
    return "".join(f"{path.name.split('-')[0]} --hash=sha256:{digest(path)}\n" for path in wheels)


def order(
    text: str,
    index: Path,
    place: Path | Environment | None = None,
    *,
    locked: tuple[Locked, ...] = (),
    require_hashes: bool = True,
) -> InstallOrder:
    return InstallOrder(wanted=wanted(text), index=index, locked=locked, require_hashes=require_hashes, place=place)


def refused(
    given: InstallOrder, jail: NamespaceJail, tmp_path: Path, kind: type[LocalagentError] = NotInstallable
) -> str:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(kind) as caught:
        install(given, jail, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before, "something was left behind"
    return str(caught.value)


@pytest.mark.long
def test_a_fresh_folder_holds_the_wheels_and_nothing_else(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    frob = write_wheel(
        index,
        files={
            "frob/__init__.py": b"x = 1\n",
            "frob-1.0.data/purelib/frob/more.py": b"y = 1\n",
            "frob-1.0.data/scripts/raw": b"\x7fELF",
            "frob-1.0.data/scripts/tool": b"#!python\nprint(1)\n",
            "frob-1.0.data/data/share/man/man1/frob.1": b"man",
            "frob-1.0.data/headers/frob.h": b"h",
            "frob.pth": b"import frob\n",
            "frob-1.0.dist-info/direct_url.json": b"{}",
        },
        requires=["zork>=1; python_version > '3'", "other; extra == 'x'"],
        entry_points="[console_scripts]\nFrob = frob:main\n",
    )
    zork = write_wheel(index, "zork", "1.2")
    target = tmp_path / "target"
    one, two = install(order(pins(frob, zork), index, target), jail, tmp_path)
    assert (one.wheel.name, two.wheel.version, one.vouched) == ("frob", "1.2", "r.txt:1")
    assert one.wheel.scripts == ("Frob = frob:main",)
    assert one.wheel.startup == ("frob.pth",)
    assert [line.split(":")[0].split("/")[-1] for line in one.wheel.left_out] == ["tool", "frob.h", "direct_url.json"]
    held = {str(path.relative_to(target)): path for path in target.rglob("*") if path.is_file()}
    assert set(held) == {
        "bin/raw", "frob.pth", "frob/__init__.py", "frob/more.py", "share/man/man1/frob.1", "zork/__init__.py",
        *(f"frob-1.0.dist-info/{n}" for n in ("METADATA", "WHEEL", "RECORD", "INSTALLER", "entry_points.txt")),
        *(f"zork-1.2.dist-info/{n}" for n in ("METADATA", "WHEEL", "RECORD", "INSTALLER")),
    }  # fmt: skip
    assert held["bin/raw"].stat().st_mode & 0o777 == 0o755
    assert held["frob/more.py"].stat().st_mode & 0o777 == 0o644
    for folder in ("frob-1.0", "zork-1.2"):
        for row in held[f"{folder}.dist-info/RECORD"].read_text().splitlines():
            name, written, size = row.split(",")
            if not name.endswith("/RECORD"):
                data = held[name].read_bytes()
                assert (encoded(data), str(len(data))) == (written, size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "target"]


@pytest.mark.long
def test_a_trial_writes_nothing(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    [one] = install(order(pins(write_wheel(index)), index), jail, tmp_path)
    assert one.wheel.name == "frob"
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.long
def test_a_lock_vouches_for_a_digest(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    lock = Locked(name="frob", version="1.0", hashes=frozenset({digest(write_wheel(index))}), lock="l.txt")
    [one] = install(order("frob", index, locked=(lock,)), jail, tmp_path)
    assert one.vouched == "l.txt"


@pytest.mark.long
def test_without_hashes_only_where_the_policy_requires_none(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    path = write_wheel(index)
    assert f"frob-1.0-py3-none-any.whl is sha256:{digest(path)}" in refused(order("frob", index), jail, tmp_path)
    [one] = install(order("frob", index, require_hashes=False), jail, tmp_path)
    assert one.vouched == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("frob==2.0", "the index has 1.0, which is not ==2.0"),
        (
            f"frob --hash=sha256:{'0' * 64}",
            "no wheel there has a SHA-256 that the requirement, a lock file or an approval names",
        ),
        ("nowhere", "no wheel of that name"),
        ("zork", "only source distributions are there (zork-1.0.tar.gz): building runs their code"),
        ("wide", "no wheel fits this interpreter"),
        ("frob; python_version < '3'", "no requirement applies"),
    ],
)
def test_what_has_no_wheel_is_refused(index: Path, tmp_path: Path, jail: NamespaceJail, text: str, reason: str) -> None:
    write_wheel(index)
    (index / "zork-1.0.tar.gz").write_bytes(b"")
    (index / "wide-1.0-cp27-cp27m-win32.whl").write_bytes(b"")
    assert reason in refused(order(text, index, tmp_path / "t"), jail, tmp_path)


def test_a_hash_that_is_not_policy_required_still_binds(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    write_wheel(index)
    text = f"frob --hash=sha256:{'0' * 64}"
    assert "no wheel there has" in refused(order(text, index, require_hashes=False), jail, tmp_path)


def test_every_dependency_must_be_asked_for(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    path = write_wheel(index, requires=["zork>=2", "more; extra == 'x'", "old; python_version < '3'", "bad ==", "n"])
    write_wheel(index, "zork", "1.0")
    said = refused(order(pins(path, index / "zork-1.0-py3-none-any.whl"), index), jail, tmp_path)
    assert "frob needs zork>=2: 1.0 is there" in said
    assert "frob needs n: not asked for" in said
    assert "'bad ==', which cannot be understood" in said
    assert "more" not in said
    assert "old" not in said
    deep = write_wheel(index, "deep", requires=["n; " + "(" * 400, "m" * 2000])
    said = refused(order(pins(deep), index), jail, tmp_path)
    assert said.count("which cannot be understood") == 2
    text = pins(path).replace("frob", "frob[x]")
    assert "frob needs more: not asked for" in refused(order(text, index), jail, tmp_path)


def test_two_wheels_do_not_write_the_same_file(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    one = write_wheel(index, "frob", files={"shared/a.py": b"1"})
    two = write_wheel(index, "zork", files={"shared/a.py": b"2"})
    assert "frob and zork both bring shared/a.py" in refused(order(pins(one, two), index), jail, tmp_path)


@pytest.mark.long
def test_nothing_of_a_wheel_runs(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    flag = tmp_path / "ran"
    code = f"open({str(flag)!r}, 'w')\n".encode()
    path = write_wheel(index, files={"frob/__init__.py": code, "frob.pth": b"import frob\n", "setup.py": code})
    install(order(pins(path), index, tmp_path / "t"), jail, tmp_path)
    assert not flag.exists()


def made(folder: Path) -> Path:
    venv.create(folder, with_pip=False)
    return folder


@pytest.mark.long
def test_an_environment_gets_its_site_packages_only(index: Path, tmp_path: Path, jail: NamespaceJail) -> None:
    home = made(tmp_path / "env")
    before = {path for path in home.rglob("*") if "site-packages" not in path.parts}
    path = write_wheel(
        index, files={"frob/__init__.py": b"", "frob-1.0.data/scripts/raw": b"x", "frob-1.0.data/data/etc/f": b"x"}
    )
    place = environment(home)
    install(order(pins(path), index, place), jail, tmp_path)
    assert {path for path in home.rglob("*") if "site-packages" not in path.parts} == before
    assert sorted(path.name for path in place.site.iterdir()) == ["frob", "frob-1.0.dist-info"]
    assert "raw" not in (place.site / "frob-1.0.dist-info" / "RECORD").read_text()
    again = environment(home / "bin" / "python")
    assert again.present == {"frob": "1.0"}
    said = refused(order(pins(path), index, again), jail, tmp_path)
    assert "frob 1.0 is installed there already" in said
    assert "'frob' is there already" in said


@pytest.mark.long
def test_what_an_environment_holds_satisfies_and_startup_code_is_refused(
    index: Path, tmp_path: Path, jail: NamespaceJail
) -> None:
    home = made(tmp_path / "env")
    place = environment(home)
    (place.site / "zork-1.5.dist-info").mkdir()
    install(order(pins(write_wheel(index, requires=["zork>=1"])), index, environment(home)), jail, tmp_path)
    path = write_wheel(index, "starter", files={"starter.pth": b"import os\n"})
    said = refused(order(pins(path), index, environment(home)), jail, tmp_path)
    assert "starter.pth would run at each start of that Python" in said


class Impatient:
    """A real jail; whoever waits for it is interrupted."""

    def __init__(self, jail: NamespaceJail) -> None:
        self.backend, self.level = jail.backend, jail.level
        self._jail = jail
        self.started: list[NamespaceProcess] = []

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        return self._jail.run(spec, stdin=stdin)

    def start(self, spec: JailSpec) -> "ImpatientProcess":
        self.started.append(self._jail.start(spec))
        return ImpatientProcess(self.started[-1])


class ImpatientProcess:
    def __init__(self, process: NamespaceProcess) -> None:
        self.channel, self.kill = process.channel, process.kill
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.alive

    def wait(self) -> JailResult:
        raise KeyboardInterrupt


def test_an_interrupt_ends_the_jail_before_anything_is_removed(
    index: Path, tmp_path: Path, jail: NamespaceJail
) -> None:
    impatient = Impatient(jail)
    with pytest.raises(KeyboardInterrupt):
        install(order(pins(write_wheel(index)), index, tmp_path / "t"), impatient, tmp_path)
    assert [process.alive for process in impatient.started] == [False]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_wheel_that_became_a_link_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "frob-1.0-py3-none-any.whl").symlink_to("/etc/passwd")
    (tmp_path / "copies").mkdir()
    with pytest.raises(NotInstallable, match="cannot be copied"):
        choosing.copied(tmp_path / "frob-1.0-py3-none-any.whl", tmp_path / "copies")
    assert list((tmp_path / "copies").iterdir()) == []


@pytest.mark.long
def test_an_interrupt_takes_back_what_was_renamed(
    index: Path, tmp_path: Path, jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = environment(made(tmp_path / "env"))
    path = write_wheel(index, files={"a/x.py": b"", "b/x.py": b""})
    real = os.path.lexists

    def interrupted(asked: Path) -> bool:
        if asked == place.site / "b" and (place.site / "a").exists():
            raise KeyboardInterrupt
        return real(asked)

    monkeypatch.setattr("os.path.lexists", interrupted)
    with pytest.raises(KeyboardInterrupt):
        install(order(pins(path), index, place), jail, tmp_path)
    assert list(place.site.iterdir()) == []


@pytest.mark.long
def test_what_was_renamed_is_taken_back(
    index: Path, tmp_path: Path, jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path / "env")
    place = environment(home)
    files = {"a/x.py": b"", "b/x.py": b"", "c/x.py": b""}
    given = order(pins(write_wheel(index, files=files)), index, place)
    for module in (site_packages, installing):  # as if it came there after the look
        monkeypatch.setattr(module, "conflicts", lambda *_: [])
    (place.site / "c").mkdir()
    (place.site / "c" / "mine.py").write_text("kept")
    assert "c has come there meanwhile" in refused(given, jail, tmp_path)
    assert [path.name for path in place.site.iterdir()] == ["c"]


def test_where_nothing_may_be_put(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "x").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (full, tmp_path / "link", full / "x"):
        with pytest.raises(UsageFault, match="something is there"):
            fresh_target(path)
    with pytest.raises(UsageFault, match="is not a directory"):
        fresh_target(tmp_path / "no" / "target")
    with pytest.raises(UsageFault, match="no virtual environment"):
        environment(full)
    (full / "pyvenv.cfg").write_text("home = /usr\nversion = 3.1.0\n")
    with pytest.raises(UsageFault, match=r"is for Python 3\.1, and wheels are chosen for"):
        environment(full)
    (full / "pyvenv.cfg").write_text("home = /usr\n")
    with pytest.raises(UsageFault, match="does not say its version"):
        environment(full)
    if sys.prefix != sys.base_prefix:
        with pytest.raises(UsageFault, match="localagent's own environment"):
            environment(Path(sys.prefix))


def test_without_pip_nothing_starts(
    index: Path, tmp_path: Path, jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip is missing" in refused(order(pins(write_wheel(index)), index), jail, tmp_path, CannotEnforce)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda site: (site / "frob" / "__init__.py").write_text("y = 2\n"), "is not what the wheel holds"),
        (lambda site: (site / "frob" / "more.py").write_text("y"), "which no wheel holds"),
        (lambda site: (site / "zork.pth").write_text("import x"), "which no wheel holds"),
        (lambda site: (site / "frob" / "__init__.py").unlink(), "did not unpack frob/__init__.py"),
        (lambda site: (site / "frob" / "link").symlink_to("/etc"), "neither a file nor a folder"),
    ],
)
def test_what_pip_leaves_is_compared(
    index: Path, tmp_path: Path, jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch, spoil: object, reason: str
) -> None:
    real = unpack._compare

    def after_spoiling(site: Path, *rest: object) -> None:
        assert callable(spoil)
        spoil(site)
        real(site, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(unpack, "_compare", after_spoiling)
    given = order(pins(write_wheel(index)), index, tmp_path / "t")
    assert reason in refused(given, jail, tmp_path, CannotEnforce)


@pytest.mark.long
def test_what_changes_while_it_is_copied_is_refused(
    index: Path, tmp_path: Path, jail: NamespaceJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = site_packages._fill

    def after_change(unpacked: Path, stage: Path, one: ChosenWheel, *, outside: bool) -> None:
        (unpacked / "frob" / "__init__.py").write_text("z")
        real(unpacked, stage, one, outside=outside)

    monkeypatch.setattr(site_packages, "_fill", after_change)
    given = order(pins(write_wheel(index)), index, tmp_path / "t")
    assert "changed while it was copied" in refused(given, jail, tmp_path, CannotEnforce)
