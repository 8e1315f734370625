"""A task's model that was tuned elsewhere serves as it came, and the task says so."""

from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import pytest
from support.fix_builder import bundled_model
from support.model_replay import ReplayJail

from localagent.app.fix.model_setup import open_model
from localagent.app.fix.request import FixRequest
from localagent.app.settings import Settings
from localagent.domain.task import Event
from localagent.llm.model import quantized_store
from localagent.llm.model.registry import Registry


class Heard:
    def __init__(self) -> None:
        self.texts = list[object]()

    def emit(self, event: Event) -> None:
        assert event.kind == "warning"
        self.texts.append(event.data["text"])


@pytest.mark.model
@pytest.mark.parametrize(("machine", "warned"), [("another", True), (quantized_store.machine(), False)])
def test_tuning_that_was_lost_is_told_with_what_to_do(tmp_path: Path, machine: str, warned: bool) -> None:
    settings = replace(Settings.from_environ(), data_dir=tmp_path)
    file = bundled_model()
    (tmp_path / "models").mkdir()
    copyfile(file, tmp_path / "models" / file.name)
    registered = Registry(settings.models_dir, tmp_path).default()
    quantized_store.folder(tmp_path).mkdir(parents=True)
    record = quantized_store.Tuned(
        source_sha256=registered.sha256, machine=machine, form="Q8_0", bytes=1, sha256="b" * 64,
        rates={}, agreement={}, failed={},
    )  # fmt: skip
    quantized_store.record_path(tmp_path, registered.sha256).write_text(quantized_store.text(record))
    heard = Heard()
    opened = open_model(FixRequest(repo=Path()), settings, ReplayJail(), heard)
    assert opened.scorer is not None
    opened.scorer.close()
    assert list(opened.warnings) == heard.texts
    assert [("tuned on another processor" in w, "`localagent model tune`" in w) for w in opened.warnings] == (
        [(True, True)] if warned else []
    )


def test_a_task_without_a_model_is_not_told_of_its_tuning(tmp_path: Path) -> None:
    heard = Heard()
    opened = open_model(
        FixRequest(repo=Path(), use_model=False),
        replace(Settings.from_environ(), data_dir=tmp_path),
        ReplayJail(),
        heard,
    )
    assert (opened.file, opened.scorer, opened.warnings, heard.texts) == (None, None, (), [])
