"""Where policies come from: names and files, the machine owner's layers, the repository's pyproject.toml."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app.policies import OpenPolicy, open_policy
from localagent.app.settings import SYSTEM_DIR, Settings
from localagent.domain.policy import Permission
from localagent.errors import CannotEnforce, UsageFault

HEAD = "schema = 'localagent/policy-layer/1'\n"


class Machine:
    """A machine whose owner is whoever runs the tests."""

    def __init__(self, root: Path) -> None:
        self.system = root / "etc"
        self.repo = root / "repo"
        self.repo.mkdir()
        self.settings = replace(Settings.from_environ(), system_dir=self.system, system_owner=os.getuid())

    def layer(self, name: str, text: str, head: str = HEAD) -> Path:
        return self.write(self.system / "policy.d" / name, head + text)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.system, path.parent):
            folder.chmod(0o755)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def project(self, text: str) -> None:
        (self.repo / "pyproject.toml").write_text(text)

    def open(self, named: str = "") -> OpenPolicy:
        return open_policy(self.settings, Path(named) if named else None, self.repo)

    def faults(self, named: str = "") -> tuple[str, ...]:
        with pytest.raises(UsageFault) as caught:
            self.open(named)
        assert caught.value.exit_code == 2
        assert caught.value.remedy
        return caught.value.faults

    def disbelieved(self) -> str:
        with pytest.raises(CannotEnforce) as caught:
            self.open()
        assert caught.value.exit_code == 4
        assert "chmod" in caught.value.remedy
        return str(caught.value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_folder_is_no_matter_of_the_environment(tmp_path: Path) -> None:
    environ = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAGENT_SYSTEM_DIR")}
    assert Settings.from_environ(environ).system_dir == SYSTEM_DIR == Path("/etc/localagent")
    assert Settings.from_environ(environ).system_owner == 0


@pytest.mark.parametrize("name", ["default", "strict", "permissive", "appliance"])
def test_a_name_is_a_built_in_policy(machine: Machine, name: str) -> None:
    assert machine.open(name).policy.name == name
    assert machine.open().policy.name == "default"


def test_a_file_is_a_policy_by_its_path(machine: Machine, tmp_path: Path) -> None:
    text = machine.open().source.decode().replace('name = "default"', 'name = "ours"')
    (tmp_path / "ours.toml").write_text(text)
    assert machine.open(str(tmp_path / "ours.toml")).policy.name == "ours"
    (fault,) = machine.faults("nonsense")
    assert "appliance, default, permissive, strict" in fault


def test_layers_tighten_in_the_order_of_their_names(machine: Machine) -> None:
    machine.layer("20-b.toml", "[size]\nmax_files = 2\nmax_depth = 50\n")
    machine.layer("10-a.toml", "[size]\nmax_files = 1\n[patches]\ntests = 'deny'\n")
    machine.project("[tool.localagent.size]\nmax_files = 900\nmax_depth = 40\n")
    opened = machine.open()
    assert (opened.policy.size.max_files, opened.policy.size.max_depth) == (1, 40)
    assert opened.policy.patches.tests is Permission.DENY
    decided = opened.layered.decided
    assert decided["size.max_files"].endswith("10-a.toml")
    assert decided["size.max_depth"].endswith("pyproject.toml [tool.localagent]")
    assert decided["size.max_changed_lines"].endswith("default.toml")
    idle = {Path(layer.split(" ")[0]).name: keys for layer, keys in opened.layered.without_effect.items()}
    assert idle == {"10-a.toml": (), "20-b.toml": ("size.max_files",), "pyproject.toml": ("size.max_files",)}


def test_every_fault_of_every_layer_is_told_with_its_line(machine: Machine, tmp_path: Path) -> None:
    machine.layer("a.toml", "[size]\nmax_files = 0\n[nonsense]\n")
    machine.layer("b.toml", "", head="")
    machine.layer("c.toml", "[size\n")
    machine.layer("d.toml", "name = 'x'\n[dependencies]\nknown_names = 'none'\n[base]\nallowed = ['../x', 'default']\n")
    machine.project(
        "\n[tool.localagent]\nname = 'x'\nschema = 'x'\n[tool.localagent.size]\nmax_files = 'one'\nmore = 1\n"
    )
    faults = [fault.rsplit("/", 1)[-1] for fault in machine.faults("default")]
    for start in (
        "a.toml:3: size.max_files: must be an integer",
        "a.toml:4: nonsense: unknown key",
        "c.toml: not TOML",
        "d.toml:2: name: the base's name is kept",
        "d.toml:4: dependencies.known_names: a layer cannot change it",
        "pyproject.toml:3: tool.localagent.name: the base's",
        "pyproject.toml:4: tool.localagent.schema: a repository cannot",
        "pyproject.toml:6: tool.localagent.size.max_files: must be an integer",
        "pyproject.toml:7: tool.localagent.size.more: unknown key",
    ):
        assert [f for f in faults if f.startswith(start)], (start, faults)
    told = machine.faults("default")
    assert [f for f in told if "b.toml: schema: must be 'localagent/policy-layer/1'" in f]
    assert [f for f in told if "base.allowed[0]: '../x' is not the name of a policy" in f]


def test_of_a_base_that_cannot_be_read_only_that_is_told_and_the_faults_of_other_layers(
    machine: Machine, tmp_path: Path
) -> None:
    missing = tmp_path / "none.toml"
    assert machine.faults(str(missing)) == (f"{missing}: cannot be read: No such file or directory",)
    machine.project("[tool.localagent.size]\nmax_files = 'one'\n")
    first, second = machine.faults(str(missing))
    assert (first.startswith(str(missing)), "size.max_files: must be an integer" in second) == (True, True)


def test_only_allowed_bases_can_be_chosen(machine: Machine, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(machine.open().source.decode())
    machine.layer("a.toml", "[base]\nallowed = ['strict', 'appliance']\n")
    assert machine.open().policy.name == "strict"
    assert machine.open("appliance").policy.name == "appliance"
    for refused in ("default", "permissive", str(own)):
        (fault,) = machine.faults(refused)
        assert "not among the policies" in fault
    machine.layer("b.toml", "[base]\nallowed = ['appliance']\n")
    assert machine.open().policy.name == "appliance"
    machine.layer("c.toml", "[base]\nallowed = ['strict']\n")
    assert "leaves no policy" in machine.faults()[0]


def test_with_layers_that_allow_no_names_only_the_default_can_be_chosen(machine: Machine) -> None:
    machine.layer("a.toml", "[size]\nmax_files = 1\n")
    assert machine.open("default").policy.size.max_files == 1
    assert "not among" in machine.faults("permissive")[0]


def test_the_owner_may_bring_a_base(machine: Machine) -> None:
    text = machine.open().source.decode().replace('name = "default"', 'name = "house"')
    machine.layer("a.toml", "[base]\nallowed = ['house', 'default']\n")
    machine.write(machine.system / "policies" / "house.toml", text)
    assert machine.open().policy.name == "house"
    machine.write(machine.system / "policies" / "default.toml", text)
    assert "name of a built-in policy" in machine.faults("default")[0]


def test_a_project_without_a_table_says_nothing(machine: Machine) -> None:
    for text in ("", "[tool.other]\nx = 1\n", "tool = 3\n", "this is = not [toml\n"):
        machine.project(text)
        assert len(machine.open().layered.layers) == 1


def test_whoever_may_write_the_layers_is_their_owner_alone(machine: Machine) -> None:
    path = machine.layer("a.toml", "[size]\nmax_files = 1\n")
    folder = path.parent
    for place, mode in ((path, 0o664), (path, 0o646), (folder, 0o775), (folder, 0o757), (machine.system, 0o777)):
        before = place.stat().st_mode
        place.chmod(mode)
        assert "others than its owner may write" in machine.disbelieved()
        place.chmod(before)
    assert machine.open().policy.size.max_files == 1
    machine.settings = replace(machine.settings, system_owner=os.getuid() + 1)
    assert "belongs to uid" in machine.disbelieved()


def test_links_and_other_things_are_no_layers(machine: Machine, tmp_path: Path) -> None:
    path = machine.layer("a.toml", "[size]\nmax_files = 1\n")
    elsewhere = path.rename(tmp_path / "elsewhere.toml")
    path.symlink_to(elsewhere)
    assert "not a regular file" in machine.disbelieved()
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in machine.disbelieved()
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    assert "not a folder that can be read" in machine.disbelieved()
