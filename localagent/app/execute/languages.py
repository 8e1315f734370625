"""Which program runs a language inside a jail, what it must see, and its environment. Looks at files, runs nothing."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.domain.execution import Language
from localagent.domain.jailspec import Bind
from localagent.errors import CannotEnforce, UsageFault
from localagent.jail.api import interpreter_binds

WORKSPACE = "/workspace"
WORKER = Path(__file__).resolve().parents[2] / "runner"
WORKER_INSIDE = "/run/la/_la_worker"
_PLOTS_INSIDE = "/run/la-plots/_la_plots.py"
FONTS = "/etc/fonts"
_FONTS_INSIDE = "/run/la-fonts"
_FONTS_ENV = (("FONTCONFIG_FILE", f"{_FONTS_INSIDE}/fonts.conf"), ("FONTCONFIG_PATH", _FONTS_INSIDE))
SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
ENV: tuple[tuple[str, str], ...] = (
    ("HOME", "/tmp"),  # noqa: S108 - the jail's own
    ("LANG", "C.UTF-8"),
    ("PATH", ":".join(SYSTEM_FOLDERS)),
    ("TMPDIR", "/tmp"),  # noqa: S108 - the jail's own
)
_PYTHON_ENV = (
    ("MPLBACKEND", "module://_la_plots"),  # a module that matplotlib alone imports
    ("MPLCONFIGDIR", "/tmp"),  # noqa: S108 - the jail's own
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONPATH", str(Path(_PLOTS_INSIDE).parent)),
    ("PYTHONUNBUFFERED", "1"),  # what was printed before a limit is not lost
)
SUFFIXES = {
    ".py": Language.PYTHON,
    ".sh": Language.BASH,
    ".bash": Language.BASH,
    ".js": Language.NODE,
    ".cjs": Language.NODE,
    ".mjs": Language.NODE,
}
DEFAULT_NAMES = {Language.PYTHON: "main.py", Language.BASH: "main.sh", Language.NODE: "main.js"}
_PACKAGES = {Language.BASH: "bash", Language.NODE: "nodejs"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """`argv` to which a program's path is added; `binds` and `env` that it needs."""

    argv: tuple[str, ...]
    binds: tuple[Bind, ...]
    env: tuple[tuple[str, str], ...]


def interpreter_for(language: Language, python: str = "", *, folders: Sequence[str] = SYSTEM_FOLDERS) -> Interpreter:
    """CannotEnforce when this machine has none that a jail would see; UsageFault when `python` is none."""
    if language is not Language.PYTHON:
        if python:
            raise UsageFault(f"--python has no meaning for {language}")
        for folder in folders:
            program = Path(folder) / language.value
            if program.is_file() and os.access(program, os.X_OK):
                return Interpreter(argv=(str(program),), binds=(), env=ENV)
        raise CannotEnforce(
            f"no {language} in {', '.join(folders)}, the folders that a jail sees: nothing ran",
            remedy=f"on Debian or Ubuntu: apt install {_PACKAGES[language]}",
        )
    path, binds = interpreter_binds(named_python(python))
    plots = Bind(source=str(WORKER / "matplotlib_png.py"), target=_PLOTS_INSIDE)
    if not Path(FONTS).is_dir():
        return Interpreter(argv=(path,), binds=(*binds, plots), env=(*ENV, *_PYTHON_ENV))
    fonts = Bind(source=FONTS, target=_FONTS_INSIDE)
    return Interpreter(argv=(path,), binds=(*binds, plots, fonts), env=(*ENV, *_PYTHON_ENV, *_FONTS_ENV))


def named_python(python: str) -> str:
    """The absolute path of an interpreter that was named, or of a virtual environment's; our own for ""."""
    if not python:
        return sys.executable
    named = Path(python).absolute()
    path = named / "bin" / "python" if named.is_dir() else named
    if not os.access(path, os.X_OK):
        raise UsageFault(
            f"--python: {path} is not an interpreter", remedy="name a Python or a virtual environment's folder"
        )
    return str(path)
