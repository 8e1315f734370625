"""Compiles the chat shim (localagent/llm/chat/shim) against the llama.cpp that stands in `.venv`: some seconds.

The headers come out of the very source package that llama.cpp was compiled from, for structs travel by value. Where
that package or a compiler is missing there is no shim, and localagent calls tools in its own format.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "localagent" / "llm" / "chat" / "shim" / "chat_shim.cpp"
_HEADERS = ("common", "include", "ggml/include")


def library_name() -> str:
    """As `localagent.llm.chat.shim.library` looks for it."""
    return f"liblocalagent_chat-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:8]}.so"


def libraries(venv: Path) -> Path | None:
    """The folder of llama.cpp's libraries in an environment; None where libllama-common is not among them."""
    places = sorted(venv.glob("lib/python3*/site-packages"))
    folders = [place / part for place in places for part in ("llama_cpp/lib", "lib")]
    return next((folder for folder in folders if _common(folder)), None)


def build(venv: Path, downloads: Path) -> str:
    """Compile it, if it is not there; why it is not there afterwards, or ""."""
    folder = libraries(venv)
    if folder is None:
        return "this llama.cpp was built without its chat code"
    if (folder / library_name()).is_file():
        return ""
    source = next(iter(sorted(downloads.glob("llama_cpp_python-*.tar.gz"))), None)
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if source is None or not compiler:
        return "the source of llama.cpp is not there" if source is None else "there is no C++ compiler"
    with tempfile.TemporaryDirectory(prefix="chat-shim-") as scratch:
        top = _headers(source, Path(scratch))
        made = Path(scratch) / library_name()
        argv = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
        argv += [f"-ffile-prefix-map={scratch}=."]  # the same library each time
        argv += [f"-I{top / part}" for part in _HEADERS]
        argv += [str(SOURCE), str(_common(folder)), "-Wl,--disable-new-dtags,-rpath,$ORIGIN"]
        argv += ["-Wl,--allow-shlib-undefined", "-o", str(made)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"the compiler failed: {(done.stderr.strip().splitlines() or ['without a word'])[0]}"
        shutil.copyfile(made, folder / (made.name + ".new"))
        (folder / (made.name + ".new")).replace(folder / made.name)
    return ""


def copy_wheel(wheel: Path, target: Path, downloads: Path) -> str:
    """Copy a wheel of llama.cpp with the shim beside its libraries; why it is without one, or ""."""
    with tempfile.TemporaryDirectory(prefix="chat-shim-") as scratch:
        site = Path(scratch) / "lib" / "python3" / "site-packages"
        with zipfile.ZipFile(wheel) as whole:
            whole.extractall(site, [n for n in whole.namelist() if Path(n).name.startswith("libllama")])
        if why := build(Path(scratch), downloads):
            shutil.copyfile(wheel, target)
            return why
        made = next(site.rglob(library_name()))
        _add(wheel, target, made.relative_to(site).as_posix(), made.read_bytes())
    return ""


def _add(wheel: Path, target: Path, name: str, data: bytes) -> None:
    """Copy a wheel with one more file, which its RECORD names."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as more:
        for entry in whole.infolist():
            text = whole.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                text = f"{name},sha256={digest},{len(data)}\n".encode() + text
            more.writestr(entry, text, zipfile.ZIP_DEFLATED)
        library = zipfile.ZipInfo(name)  # of 1980, as every kit has it
        library.external_attr = 0o644 << 16
        more.writestr(library, data, zipfile.ZIP_DEFLATED)


def _common(folder: Path) -> Path | None:
    found = [folder / name for name in ("libllama-common.so.0", "libllama-common.so")]
    return next((path for path in found if path.is_file()), None)


def _headers(source: Path, target: Path) -> Path:
    """The headers of a source package, below `target`; the folder that holds them."""
    with tarfile.open(source) as package:
        parts = tuple(f"/vendor/llama.cpp/{part}/" for part in _HEADERS)
        members = [m for m in package if m.isfile() and m.name.endswith(".h") and any(p in m.name for p in parts)]
        package.extractall(target, members, filter="data")
    return next(target.glob("*/vendor/llama.cpp"))


if __name__ == "__main__":
    why = build(ROOT / ".venv", ROOT / ".build" / "downloads")
    print(f"chat shim: not built: {why}" if why else "chat shim: ready")
    sys.exit(1 if why else 0)
