"""Binds of an interpreter: what is shown, what a hostile pyvenv.cfg cannot have shown."""

import sys
import sysconfig
from pathlib import Path

import pytest

from localagent.domain.jailspec import JailLimits, JailSpec
from localagent.errors import UsageFault
from localagent.jail.api import NamespaceJail, interpreter_binds


def environment(folder: Path, config: str, python: str = "") -> str:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(config)
    (folder / "bin" / "python").symlink_to(python or str(Path(sys.executable).resolve()))
    return str(folder / "bin" / "python")


def home() -> str:
    return str(Path(sys.executable).resolve().parent)


def test_our_own_interpreter_starts_in_a_jail(jail: NamespaceJail) -> None:
    python, binds = interpreter_binds(sys.executable)
    spec = JailSpec(argv=(python, "-I", "-c", "import sys; print(sys.prefix)"), cwd="/", binds=binds)
    assert jail.run(spec).stdout.decode().strip() == sys.prefix


def test_the_headers_of_the_interpreter_are_there_for_tests_that_build_extensions(jail: NamespaceJail) -> None:
    ask = "import os, sysconfig; print(os.path.isfile(sysconfig.get_path('include') + '/Python.h'))"
    python, binds = interpreter_binds(sys.executable)
    outside = Path(sysconfig.get_path("include"), "Python.h").is_file()
    told = jail.run(JailSpec(argv=(python, "-I", "-c", ask), cwd="/", binds=binds)).stdout.decode().strip()
    assert told == str(outside)


def test_a_virtual_environment_below_a_closed_folder_starts(jail: NamespaceJail, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    path = environment(closed / "venv", f"home = {home()}\n")
    python, binds = interpreter_binds(path)
    spec = JailSpec(argv=(python, "-I", "-S", "-c", "import sys; print(sys.executable)"), cwd="/", binds=binds)
    assert jail.run(spec).stdout.decode().strip() == path


def test_links_through_aliases_resolve(jail: NamespaceJail, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(Path(home()).parent)
    name = Path(sys.executable).resolve().name
    path = environment(tmp_path / "venv", f"home = {alias}/bin\n", f"{alias}/bin/{name}")
    python, binds = interpreter_binds(path)
    spec = JailSpec(argv=(python, "-I", "-S", "-c", "import os; print('runs')"), cwd="/", binds=binds)
    assert jail.run(spec).stdout == b"runs\n"


def test_the_environment_is_untrusted_and_all_is_read_only(tmp_path: Path) -> None:
    _, binds = interpreter_binds(environment(tmp_path / "venv", f"home = {home()}\n"))
    assert all(bind.access == "ro" for bind in binds)
    assert next(bind for bind in binds if bind.target == str(tmp_path / "venv")).untrusted


@pytest.mark.parametrize("wanted", ["/root", "/root/bin", "/", "/etc", "relative", "/var/lib", "/usr/../etc/x"])
def test_home_that_is_no_python_prefix_is_refused(tmp_path: Path, wanted: str) -> None:
    path = environment(tmp_path / "venv", f"home = {wanted}\n")
    with pytest.raises(UsageFault, match=r"does not look like the prefix|no usable `home`"):
        interpreter_binds(path)


def test_a_secret_folder_dressed_as_a_prefix_shows_bin_and_lib_only(tmp_path: Path) -> None:
    prefix = tmp_path / "secret"
    (prefix / "lib" / "python3.11").mkdir(parents=True)
    (prefix / "lib" / "python3.11" / "os.py").write_text("")
    (prefix / "bin").mkdir()
    (prefix / "keys").mkdir()
    (prefix / "lib64").symlink_to("keys")
    _, binds = interpreter_binds(environment(tmp_path / "venv", f"home = {prefix}/bin\n"))
    shown = {bind.source for bind in binds if bind.source.startswith(str(prefix))}
    assert shown == {f"{prefix}/bin", f"{prefix}/lib"}


def test_config_that_is_a_link_is_refused(tmp_path: Path) -> None:
    path = environment(tmp_path / "venv", "")
    (tmp_path / "venv" / "pyvenv.cfg").unlink()
    (tmp_path / "real.cfg").write_text(f"home = {home()}\n")
    (tmp_path / "venv" / "pyvenv.cfg").symlink_to(tmp_path / "real.cfg")
    with pytest.raises(UsageFault, match=r"pyvenv\.cfg"):
        interpreter_binds(path)


def test_a_huge_config_is_read_bounded(tmp_path: Path) -> None:
    path = environment(tmp_path / "venv", "#" * (1 << 20) + f"\nhome = {home()}\n")
    with pytest.raises(UsageFault, match="no usable `home`"):
        interpreter_binds(path)


@pytest.mark.parametrize("path", ["python3", "/nowhere/python", "/etc/passwd", "/usr", "/bin/sh\0"])
def test_what_is_no_interpreter_is_refused(path: str) -> None:
    with pytest.raises(UsageFault):
        interpreter_binds(path)


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UsageFault):
        interpreter_binds(str(tmp_path / "a"))


def test_the_systems_interpreter_needs_no_binds() -> None:
    if not Path("/usr/bin/python3").exists():
        pytest.skip("no system python")
    assert interpreter_binds("/usr/bin/python3")[1] == ()


def test_limits_of_the_default_let_an_interpreter_start() -> None:
    assert JailLimits().address_space_bytes >= 4 << 30
