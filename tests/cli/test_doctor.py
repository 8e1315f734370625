"""`doctor` and `jail run` as a user meets them."""

import io
import json
import re
from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.cli import doctor, main
from localagent.jail.backends.backend import BackendKind
from localagent.jail.backends.level import Layer
from localagent.jail.probe import diagnose, selection
from localagent.jail.probe.diagnose import DiagnosisRow
from localagent.jail.probe.selection import Probed, ProbeState


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main.main(list(argv))
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.long
def test_doctor_tells_each_layer_and_that_tasks_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "doctor", "--json")
    report = json.loads(out)
    assert (code, report["usable"]) == (0, True)
    states = {row["name"]: row["state"] for row in report["rows"]}
    for name in ("user namespace", "net namespace", "read-only system", "pytest", "level", "cores"):
        assert states[name] == "works"
    assert {"uid switch", "llama.cpp"} <= set(states)
    layers = {row["name"]: row for row in report["rows"] if row["part"] == "layers"}
    assert set(layers) == {str(layer) for layer in Layer}
    assert all(row["tried"] and row["detail"] for row in layers.values())
    assert all(row["remedy"] == "" if row["state"] == "works" else row["remedy"] for row in layers.values())


@pytest.mark.long
def test_doctor_says_that_a_model_is_run_on_the_processor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {row["name"]: row["detail"] for row in json.loads(call(capsys, "doctor", "--json")[1])["rows"]}
    assert rows["offload"] == doctor.offload(rows["llama.cpp"])
    assert doctor.offload("CPU (AVX2)") == "not offloaded: this build of llama.cpp has no GPU backend"
    monkeypatch.setattr(doctor, "devices", lambda: ())
    assert "no GPU device can be opened here" in doctor.offload("CUDA0 NVIDIA; CPU (AVX2)")
    monkeypatch.setattr(doctor, "devices", lambda: ("/dev/nvidia0",))
    assert "with /dev/nvidia0" in doctor.offload("CUDA0 NVIDIA; CPU (AVX2)")


def test_without_a_sound_jail_doctor_ends_with_4_and_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = Probed(
        kind=BackendKind.BUBBLEWRAP,
        name="system bubblewrap",
        program="/x/bwrap",
        version="",
        state=ProbeState.ABSENT,
        detail="does not start",
    )
    monkeypatch.setattr(selection, "every", lambda: (nothing,))
    monkeypatch.setattr(selection, "probed", lambda *_, **__: (nothing,))
    code, out, _ = call(capsys, "doctor")
    assert code == 4
    assert "tasks cannot run here" in out
    assert "apparmor_restrict_unprivileged_userns" in out
    for layer in Layer:
        assert re.search(rf"{layer} +missing +no jail could be made", out)


def test_a_missing_needed_tool_ends_with_4_an_optional_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from argparse import Namespace

    from localagent.cli.render import Render

    for name, code in (("pytest", 4), ("ruff", 0)):
        row = DiagnosisRow(part="tools", name=name, state=ProbeState.ABSENT, needed=name in doctor.NEEDED_TOOLS)
        monkeypatch.setattr(doctor, "collect", lambda _, row=row: iter((row,)))
        render = Render(out=io.StringIO(), err=io.StringIO())
        assert (
            doctor.run(Namespace(json=False, attack=False, osv=None, backend="auto"), Settings.from_environ(), render)
            == code
        )


def test_every_layer_that_does_not_work_has_a_remedy() -> None:
    for row in diagnose.jail_rows():
        assert row.state is ProbeState.WORKS or row.remedy or row.name == "uid switch" or row.part == "backend", row


def test_jail_run_passes_output_and_exit_code_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "jail", "run", "--", "sh", "-c", "echo out; echo err >&2; exit 7") == (7, "out\n", "err\n")


def test_jail_run_tells_which_limit_ended_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "jail", "run", "--json", "--wall", "0.5", "--", "sleep", "30")
    assert (code, json.loads(out)["ending"]) == (1, "wall")


def test_jail_run_tells_every_fault(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "jail", "run", "--ro", "/no/such", "--wall", "0", "--memory", "-1", "--", "true")
    assert code == 2
    for part in ("/no/such", "--wall", "--memory"):
        assert part in err


def test_jail_run_shows_a_folder_read_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("shown\n")
    tmp_path.chmod(0o755)
    script = f"cat {tmp_path}/file; touch {tmp_path}/new 2>/dev/null || echo refused"
    assert call(capsys, "jail", "run", "--ro", str(tmp_path), "--", "sh", "-c", script)[:2] == (0, "shown\nrefused\n")
    assert not (tmp_path / "new").exists()
