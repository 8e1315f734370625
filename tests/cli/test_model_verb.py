"""`localagent model`: exit codes and output, as a user sees them."""

import hashlib
import io
import json
import tomllib
from pathlib import Path
from typing import Protocol

import pytest
from support.gguf_builder import TinyGguf

from localagent.cli import main as entry
from localagent.cli.render import Render
from localagent.llm.model.quantized_store import AS_IT_IS, Tuned, machine, record_path, text

TINY = TinyGguf().bytes
KEYS = {"name", "path", "bytes", "sha256", "licence", "default"}


class Call(Protocol):
    """Runs `localagent model` with arguments: its exit code, standard output and standard error."""

    def __call__(self, *arguments: str) -> tuple[int, str, str]: ...


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr(entry, "Render", lambda: Render(out=out, err=err))
        code = entry.main(["model", *arguments])
        return code, out.getvalue(), err.getvalue()

    return run


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "My Model.gguf"
    path.write_bytes(TINY)
    return path


def test_list_json_has_an_object_for_each_model(call: Call) -> None:
    code, out, _ = call("list", "--json")
    assert code == 0
    [model] = [row for row in json.loads(out) if row["default"]]
    assert set(model) >= KEYS
    assert model["name"] == "smollm2-135m-instruct"
    manifest = tomllib.loads((Path(entry.__file__).parents[2] / "models" / "smollm2-135m-instruct.toml").read_text())
    assert (model["bytes"], model["sha256"]) == (manifest["bytes"], manifest["sha256"])
    assert model["served"] == model["quantization"] == manifest["quantization"]  # nothing was measured for this user


def test_add_then_verify_by_name_and_file(call: Call, tiny: Path, tmp_path: Path) -> None:
    code, out, _ = call("verify", str(tiny))
    assert code == 1
    code, out, _ = call("add", str(tiny), "--name", "mine", "--json")
    assert code == 0
    row = json.loads(out)
    assert row["sha256"] == hashlib.sha256(TINY).hexdigest()
    assert Path(row["path"]) == tmp_path / "data/localagent/models/mine.gguf"
    for target in ("mine", str(tiny), row["path"]):
        code, out, _ = call("verify", target)
        assert code == 0
        assert "verified mine" in out
    assert {model["name"] for model in json.loads(call("list", "--json")[1])} >= {"mine", "smollm2-135m-instruct"}
    assert "mine  file type unknown  0 MB  peak not measured" in call("list")[1]
    assert [m["peak_bytes"] for m in json.loads(call("list", "--json")[1])] == [None, None]


def test_verify_fails_once_a_byte_differs(call: Call, tiny: Path) -> None:
    call("add", str(tiny), "--name", "mine")
    path = Path(json.loads(call("verify", "mine", "--json")[1])["path"])
    path.write_bytes(TINY[:-1] + b"\x01")
    code, out, err = call("verify", "mine")
    assert (code, out) == (1, "")
    assert "not the file that was registered as mine" in err
    assert "what to do:" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["verify", "unheard-of"], 1, "no model of that name is registered"),
        (["verify", "/absent.gguf"], 1, "cannot open /absent.gguf: No such file"),
        (["add", "/absent.gguf"], 1, "cannot open"),
        (["add", "/dev/null"], 1, "not a regular file"),
        (["add", __file__], 1, "not a GGUF file"),
        (["add", __file__, "--name", "../x"], 2, "a model's name is"),
        (["bench", "--memory", "--bugs", "1"], 2, "--memory measures only memory"),
        (["bench", "--memory", "unheard-of"], 1, "no model of that name is registered"),
    ],
)
def test_a_no_says_why(call: Call, arguments: list[str], code: int, said: str) -> None:
    got, out, err = call(*arguments)
    assert (got, out) == (code, "")
    assert said in err


def test_a_broken_manifest_of_the_user_is_named(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "data/localagent/models"
    folder.mkdir(parents=True)
    (folder / "bad.toml").write_text("schema = 9\n")
    code, _, err = call("list")
    assert code == 2
    assert "bad.toml: schema is 9, not 1" in err
    assert "bad.toml: name must be given" in err


@pytest.mark.long
def test_tune_says_what_was_measured_before_and_measures_no_model_that_cannot_run(
    call: Call, tiny: Path, tmp_path: Path
) -> None:
    call("add", str(tiny), "--name", "mine")
    digest = hashlib.sha256(TINY).hexdigest()
    record = Tuned(
        source_sha256=digest,
        machine=machine(),
        form=AS_IT_IS,
        bytes=len(TINY),
        sha256=digest,
        rates={AS_IT_IS: 70.0, "BF16": 71.0},
        agreement={AS_IT_IS: 1.0, "BF16": 1.0},
        failed={},
    )
    place = record_path(tmp_path / "data" / "localagent", digest)
    place.parent.mkdir()
    place.write_text(text(record))
    assert call("tune", "mine") == (0, "mine runs as it is on this machine\n", "")
    assert json.loads(call("tune", "mine", "--json")[1])["rates"] == {AS_IT_IS: 70.0, "BF16": 71.0}
    code, out, err = call("tune", "mine", "--again")
    assert (code, out) == (4, "")
    assert "llama.cpp cannot load the model" in err
    assert place.read_text() == text(record)
    assert call("tune", "nobody")[0] == 1
