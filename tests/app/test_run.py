"""Running code as a tool, through the typed API: real jails, files in and out, limits, gates, canaries."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.app.execute.execution_json import as_json
from localagent.app.execute.known_secrets import open_sanitizer
from localagent.app.execute.languages import interpreter_for
from localagent.app.execute.run import code_in, code_of, execute
from localagent.app.review.code_gates import findings_on, refuse_ungateable
from localagent.domain.execution import Executed, Execution, Language
from localagent.domain.jailspec import JailLimits
from localagent.domain.outcome import JailOutcome
from localagent.errors import AnswerIsNo, CannotEnforce, UsageFault
from localagent.jail.api import open_jail
from localagent.policy.load import load_policy
from localagent.text.secret_redaction import Sanitizer, SecretKind

LIMITS = JailLimits(wall_seconds=20.0, resident_bytes=256 << 20, processes=32)
NODE = any(Path(folder, "node").exists() for folder in ("/usr/local/bin", "/usr/bin", "/bin"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environ({"HOME": str(tmp_path), "TMPDIR": "/tmp"})


def run(
    settings: Settings, request: Execution, out: Path | None = None, sanitizer: Sanitizer | None = None
) -> Executed:
    return execute(request, settings, open_jail(), sanitizer or Sanitizer(), out=out)


def python(text: str, **more: object) -> Execution:
    return replace(Execution(limits=LIMITS, code=code_of(text.encode(), Language.PYTHON)), **more)  # type: ignore[arg-type]


def test_streams_apart_status_arguments_and_files(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/data.csv").write_text("1,2\n")
    program = code_of(
        b"import sys\nprint(sys.argv[1:], open('in/data.csv').read())\nprint('err', file=sys.stderr)\n"
        b"open('made.txt', 'w').write('made')\nraise SystemExit(5)\n",
        Language.PYTHON,
        arguments=("a", "b c"),
    )
    executed = run(settings, Execution(limits=LIMITS, code=program, files=(str(tmp_path / "in"),)), tmp_path / "out")
    assert (executed.ending, executed.returncode) == (JailOutcome.EXITED, 5)
    assert (executed.stdout, executed.stderr) == ("['a', 'b c'] 1,2\n\n", "err\n")
    assert [(f.name, f.bytes, f.copied) for f in executed.files] == [("made.txt", 4, True)]
    assert (tmp_path / "out/made.txt").read_text() == "made"
    assert (tmp_path / "in/data.csv").read_text() == "1,2\n"
    assert executed.wall_seconds > 0


def test_bash_and_node(settings: Settings, tmp_path: Path) -> None:
    shell = code_of(b'echo "$0 $1 $PWD"; exit 3', Language.BASH, arguments=("x",))
    executed = run(settings, Execution(limits=LIMITS, code=shell))
    assert (executed.stdout, executed.returncode) == ("/workspace/main.sh x /workspace\n", 3)
    if NODE:
        (tmp_path / "a.js").write_text("console.log(6 * 7, require('fs').readdirSync('.'))")
        executed = run(settings, Execution(limits=LIMITS, code=code_in(tmp_path / "a.js")))
        assert executed.stdout == "42 [ 'a.js' ]\n"


@pytest.mark.parametrize(
    ("text", "limits", "ending"),
    [
        ("while True: pass", {"wall_seconds": 0.5}, JailOutcome.WALL),
        ("print('x' * 9999)", {"output_bytes": 1000}, JailOutcome.OUTPUT),
        (
            "x = bytes(10 ** 9).replace(b'\\0', b'1')\nwhile True: pass",
            {"resident_bytes": 128 << 20},
            JailOutcome.MEMORY,
        ),
    ],
)
def test_the_limit_that_was_hit_is_named(
    settings: Settings, text: str, limits: dict[str, float], ending: JailOutcome
) -> None:
    executed = run(settings, python(text, limits=replace(LIMITS, **limits)))  # type: ignore[arg-type]
    assert executed.ending is ending
    assert as_json(executed)["limit"] == str(ending)


def test_what_the_user_shows_is_read_only_unless_said(settings: Settings, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    shown.chmod(0o755)
    (shown / "f").write_text("mine")
    executed = run(settings, python(f"open({str(shown / 'f')!r}, 'w')", read_only=(str(shown),)))
    assert "Read-only file system" in executed.stderr
    assert (shown / "f").read_text() == "mine"


def test_all_faults_of_a_request_together(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    with pytest.raises(UsageFault) as caught:
        run(settings, python("1", files=(str(tmp_path / "main.py"), "/no/such"), cwd="relative"))
    assert len(caught.value.faults) == 3
    with pytest.raises(UsageFault, match="only one of them can run"):
        run(settings, python("1", command=("true",)))


def test_a_missing_interpreter_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(CannotEnforce, match="nothing ran") as caught:
        interpreter_for(Language.NODE, folders=(str(tmp_path),))
    assert "apt install nodejs" in caught.value.remedy
    with pytest.raises(UsageFault, match="is not an interpreter"):
        interpreter_for(Language.PYTHON, str(tmp_path / "none"))
    with pytest.raises(UsageFault, match="no meaning for bash"):
        interpreter_for(Language.BASH, "/usr/bin/python3")


def test_a_suffix_tells_the_language(tmp_path: Path) -> None:
    (tmp_path / "a.rb").touch()
    with pytest.raises(UsageFault, match="no known suffix"):
        code_in(tmp_path / "a.rb")
    assert code_in(tmp_path / "a.rb", Language.BASH).language is Language.BASH


STAND_IN = {
    "__init__.py": "",
    "_pylab_helpers.py": "class Gcf:\n    figs = []\n    get_all_fig_managers = classmethod(lambda c: c.figs)\n"
    "    destroy_all = classmethod(lambda c: c.figs.clear())\n",
    "backend_bases.py": "class FigureManagerBase:\n    def __init__(self, canvas, num): self.canvas = canvas\n",
    "figure.py": "class Figure:\n    def savefig(self, path, format): open(path, 'wb').write(b'\\x89PNG')\n",
    "backends/__init__.py": "",
    "backends/backend_agg.py": "class FigureCanvasAgg:\n    def __init__(self, figure): self.figure = figure\n",
}
PLOT = """
import importlib, os
from matplotlib._pylab_helpers import Gcf
backend = importlib.import_module(os.environ["MPLBACKEND"].removeprefix("module://"))
open("figure-1.png", "w")
for number in (1, 2):
    Gcf.figs.append(backend.new_figure_manager(number))
backend.show()
backend.show(block=True)
"""


def test_the_backend_for_plots_saves_what_is_shown(settings: Settings, tmp_path: Path) -> None:
    """Its own part, on a stand-in of the library's few names that it uses."""
    for name, text in STAND_IN.items():
        (tmp_path / "matplotlib" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "matplotlib" / name).write_text(text)
    executed = run(settings, python(PLOT, files=(str(tmp_path / "matplotlib"),)), tmp_path / "out")
    assert executed.stdout == "[the figure is in figure-2.png]\n[the figure is in figure-3.png]\n"
    assert (tmp_path / "out/figure-3.png").read_bytes() == b"\x89PNG"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import os as o\nx = o.system\nx('ls')", "run-process"),
        ("import hashlib\nhashlib.md5(b'')", "bandit"),
        ("exec(input())", "run-text"),
        ("def f(:", "does-not-parse"),
    ],
)
def test_gates_deny_by_rule(settings: Settings, text: str, rule: str) -> None:
    policy = load_policy(settings.policies_dir / "default.toml")
    assert rule in {finding.rule for finding in findings_on([("main.py", text.encode())], policy)}


def test_gates_let_ordinary_code_pass_and_refuse_what_they_cannot_read(settings: Settings) -> None:
    policy = load_policy(settings.policies_dir / "default.toml")
    assert findings_on([("main.py", b"import math\nprint(math.pi)\n"), ("empty.py", b"")], policy) == ()
    for language in (Language.BASH, Language.NODE, None):
        with pytest.raises(CannotEnforce, match="cannot gate"):
            refuse_ungateable(language)
    refuse_ungateable(Language.PYTHON)


def test_canaries_of_environment_and_credential_files_never_come_out(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text("[default]\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY\n")
    os.mkfifo(tmp_path / ".netrc")
    (tmp_path / ".npmrc").symlink_to("/etc/passwd")
    env = {
        "HOME": str(tmp_path),
        "MY_API_KEY": "k3y-of-mine",
        "DB_PASSWORD": "short",
        "SSH_AUTH_SOCK": "/run/ssh-agent",
        "PATH": "/usr/bin/x",
    }
    text = "print('k3y-of' + '-mine', 'short', '/run/ssh-agent', '/usr/bin/x', 'wJalrXUtnFEMI/K7MDENG' + '/bPxRfiCY')"
    executed = run(settings, python(text), sanitizer=open_sanitizer(env))
    assert executed.stdout == "[redacted:environment] short /run/ssh-agent /usr/bin/x [redacted:credential-file]\n"
    assert executed.redacted == {SecretKind.CREDENTIAL_FILE: 1, SecretKind.ENVIRONMENT: 1}
    assert b"k3y-of-mine" in executed.raw_stdout
    assert "k3y" not in repr(as_json(executed))
    assert "stdout_base64" in as_json(executed, raw=True)


def test_an_out_that_cannot_be_is_told_before_anything_runs(settings: Settings, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    os.chown(shown, 54321, 54321) if os.geteuid() == 0 else None
    writes = python(f"open({str(shown / 'ran')!r}, 'w')", read_write=(str(shown),))
    for out in (tmp_path / "no/such", Path("/dev/null")):
        with pytest.raises(AnswerIsNo, match="--out"):
            run(settings, writes, out)
    assert not (shown / "ran").exists()
    run(settings, writes, tmp_path / "out")
    assert (shown / "ran").exists()


def test_nothing_of_a_run_is_left(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    here = replace(settings, scratch_dir=tmp_path / "scratch")
    run(here, python("import os\nos.makedirs('a/b')\nos.chmod('a', 0)\nos.mkfifo('f')"))
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_page_s_example_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    page = (Path(__file__).resolve().parents[2] / "docs" / "jail.md").read_text(encoding="utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    assert "execute(" in example
    exec(compile(example, "docs/jail.md", "exec"), {})
