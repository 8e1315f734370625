"""What code that took over the model's child tries against the weights, and the reason why it fails."""

import os
import subprocess
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.jail_backends import WAYS, walled_by

from localagent.domain.outcome import JailOutcome
from localagent.jail.api import NamespaceJail, open_jail
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.child_jail import child_spec
from localagent.llm.process.protocol import WEIGHTS

PROGRAM = """
import errno, os
place = %r
number = os.open(place, os.O_RDONLY)
def reason(path, flags):
    try:
        os.close(os.open(path, flags))
        return "opened"
    except OSError as fault:
        return errno.errorcode[fault.errno]
print(os.read(number, 4).decode())
print(reason(place, os.O_RDWR), reason("/proc/self/fd/%%d" %% number, os.O_WRONLY),
      reason("/proc/self/fd/%%d" %% number, os.O_RDWR | os.O_TRUNC))
for act in (lambda: os.unlink(place), lambda: os.rename(place, place + ".old"), lambda: os.truncate(place, 0)):
    try:
        act()
        print("done")
    except OSError as fault:
        print(errno.errorcode[fault.errno])
"""


@pytest.fixture(scope="module", params=WAYS)
def jail(request: pytest.FixtureRequest) -> NamespaceJail:
    found = open_jail()
    return walled_by(found, request.param) if found._backend.landlock is not None else found


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    path.chmod(0o666)  # as if the child had the owner's uid: nothing but the mount stands between
    return ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT")


@pytest.mark.parametrize("walled", [True, False])
def test_the_weights_cannot_be_opened_for_writing(jail: NamespaceJail, model: ModelFile, walled: bool) -> None:
    backend = jail._backend if walled else replace(jail._backend, landlock=None)
    spec = child_spec(model)
    result = NamespaceJail(backend).run(replace(spec, argv=(spec.argv[0], "-I", "-S", "-c", PROGRAM % WEIGHTS)))
    assert (result.ending, result.stderr) == (JailOutcome.EXITED, b"")
    first, opened, *others = result.stdout.decode().splitlines()
    assert (first, opened) == ("GGUF", "EROFS EROFS EROFS")
    assert others[2] == "EROFS"
    assert set(others) <= {"EROFS", "EBUSY", "EACCES"}
    assert model.path is not None
    assert model.path.read_bytes() == b"GGUF"


def test_no_descriptor_of_the_weights_is_handed_over(jail: NamespaceJail, model: ModelFile) -> None:
    spec = child_spec(model)
    code = "import os; print(sorted(os.readlink('/proc/self/fd/%s' % n) for n in os.listdir('/proc/self/fd')[:-1]))"
    result = jail.run(replace(spec, argv=(spec.argv[0], "-I", "-S", "-c", code)))
    assert b"gguf" not in result.stdout
    assert result.returncode == 0


ORDINARY = """
import os, sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[2])
sys.path.append(sys.argv[4])  # the packaged jails are found there, where the system has none
os.setgroups([]); os.setresgid(4242, 4242, 4242); os.setresuid(4242, 4242, 4242)
try:
    from localagent.jail.api import open_jail
except (ImportError, OSError):
    print("unreadable"); sys.exit()
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.child_jail import child_spec
model = ModelFile(name="m", path=Path(sys.argv[1]), bytes=4, sha256="0" * 64, licence="MIT")
spec = child_spec(model)
result = open_jail().run(replace(spec, argv=(spec.argv[0], "-I", "-S", "-c", sys.argv[3])))
print(result.ending, *result.stdout.decode().split(), result.stderr.decode())
"""
SYSTEM_PYTHON = "/usr/bin/python3"


def new_enough(python: str) -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    return Path(python).exists() and subprocess.run([python, "-c", code], check=False).returncode == 0


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.skipif(not new_enough(SYSTEM_PYTHON), reason="no interpreter that an ordinary user could start")
def test_started_by_an_ordinary_user_the_child_cannot_write_that_users_weights() -> None:
    """The child has the very uid that owns the file: what refuses is the mount."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        weights = Path(folder) / "m.gguf"
        weights.write_bytes(b"GGUF")
        for path in (Path(folder), weights):
            os.chown(path, 4242, 4242)
        argv = [
            SYSTEM_PYTHON,
            "-c",
            ORDINARY,
            str(weights),
            str(Path(__file__).resolve().parents[2]),
            PROGRAM % WEIGHTS,
            sysconfig.get_path("purelib"),
        ]
        done = subprocess.run(argv, capture_output=True, check=False, text=True, cwd="/")
        if done.stdout.strip() == "unreadable":
            pytest.skip("the checkout is closed to other users")
        assert done.stdout.split()[:5] == ["exited", "GGUF", "EROFS", "EROFS", "EROFS"], done.stderr
        assert weights.read_bytes() == b"GGUF"
