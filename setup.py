"""Packs what an installed localagent needs below localagent/_data/: data folders, locks, units, one example.

Weights are never packed. An editable install packs nothing: there the folders beside the package are read.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PACKED = {
    "models": (".toml", ".md", ".json", ".mender"),
    "policies": (".toml", ".md", ".txt"),
    "sandbox": (".toml", ".json", ".md", ".txt"),
    "requirements": (".txt",),
    "examples/ledger": (".py", ".toml", ".md"),
    "systemd": (".toml", ".service", ".timer", ".socket", ".conf"),
}


def packed_files() -> list[Path]:
    """The data files of the checkout, relative to it."""
    found = (
        p for folder, ends in PACKED.items() for p in (ROOT / folder).rglob("*") if p.suffix in ends and p.is_file()
    )
    return sorted(p.relative_to(ROOT) for p in found)


class BuildWithData(build_py):
    """The ordinary build, then the data files."""

    def run(self) -> None:
        """Copies unless the install is editable."""
        super().run()
        if not self.editable_mode:
            for name in packed_files():
                target = Path(self.build_lib) / "localagent" / "_data" / name
                self.mkpath(str(target.parent))
                self.copy_file(str(ROOT / name), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What the wheel records."""
        data = (
            []
            if self.editable_mode
            else [str(Path(self.build_lib) / "localagent" / "_data" / n) for n in packed_files()]
        )
        return [*super().get_outputs(include_bytecode), *data]


setup(cmdclass={"build_py": BuildWithData})
