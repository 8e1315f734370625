"""How many altered attestations are refused: by `localagent attest verify`, and by somebody else's verifier.

  attest.py                    two tasks are repaired and attested with a new key, 300 alterations of the first
  attest.py --count 2000 --seed 7 --json

The unaltered ones must be accepted by both, as must what is only spelled otherwise. Ours is asked for everything:
bundle, diff and files. securesystemslib is asked for the envelopes, and counted where a signature alone tells. A
refusal of ours counts with its reason only: exit code 1 or 2, and no fault of ours.
"""

import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.attest_signed import SIGNED, Alter, Enemy, Given
from bench.attest_whole import SPELLINGS, WHOLE
from bench.casefile import BUILT, read_built
from bench.judge import make_repository
from localagent.cli.main import main as localagent
from localagent.record.attest.dsse import Signer, key_id_of

ROOT = Path(__file__).resolve().parents[1]
_CASES = ("basket-rows", "greeting-quote")
_BUG = "a bug of localagent"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a verifier said. `reason`: its words where it refused; "" with a refusal is a fault of its own."""

    accepted: bool
    reason: str = ""


@dataclass(kw_only=True)
class Tally:
    """One kind: how many were made, and refused by either. `theirs` is None where a signature need not tell."""

    made: int = 0
    ours: int = 0
    theirs: int | None = None


def ours(given: Given, folder: Path) -> Answer:
    """The verb itself, over files: everything that it can compare."""
    shutil.rmtree(folder, ignore_errors=True)
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name, data in given.files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if name in given.links:
            (folder / "elsewhere").write_bytes(data)
            (tree / name).symlink_to(folder / "elsewhere")
        else:
            (tree / name).write_bytes(data)
    for name, data in (("bundle", given.bundle), ("diff", given.diff), ("key", given.key)):
        (folder / name).write_bytes(data)
    words = ["--patch", str(folder / "diff"), "--tree", str(tree), "--key", str(folder / "key")]
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        exit_code = localagent(["attest", "verify", str(folder / "bundle"), *words])
    told = [line for line in said.getvalue().splitlines() if line.startswith("localagent: ")]
    sound = exit_code in (1, 2) and told and not any(_BUG in line for line in told)
    return Answer(accepted=exit_code == 0, reason=told[0].removeprefix("localagent: ") if sound else "")


def theirs(given: Given) -> Answer:
    """securesystemslib, over each envelope, as its documentation says."""
    try:
        public = load_pem_public_key(given.key)
        assert hasattr(public, "public_bytes_raw")
        key = SSlibKey.from_crypto(public, keyid=key_id_of(public))  # type: ignore[arg-type]
        rows = given.bundle.splitlines()
        for row in rows:
            Envelope.from_dict(json.loads(row)).verify([key], 1)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, VerificationError) as no:
        return Answer(accepted=False, reason=f"{type(no).__name__}: {no}")
    return Answer(accepted=bool(rows))


def enemy(other: Given) -> Enemy:
    """Somebody with a key of their own."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    signer = Signer(key_id=key_id_of(public), private=private)
    return Enemy(signer=signer, key=public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), other=other)


def altered(alter: Alter, given: Given, against: Enemy, rng: random.Random) -> Given:
    """The alteration, drawn again where it came to nothing."""
    while (found := alter(given, against, rng)) == given:
        pass
    return found


def measure(given: Given, against: Enemy, count: int, seed: int, folder: Path) -> tuple[dict[str, Tally], list[str]]:
    """What became of each kind, and every fault in words; none where all is as it should be."""
    tallies: dict[str, Tally] = {}
    faults: list[str] = []
    for name, alter in SPELLINGS:
        found = alter(given, against, random.Random(f"{seed} {name}"))
        answers = {"ours": ours(found, folder), "securesystemslib": theirs(found)}
        told = {who: a.reason or "without a reason" for who, a in answers.items() if not a.accepted}
        tallies[f"(spelling) {name}"] = Tally(made=1, ours="ours" in told, theirs="securesystemslib" in told)
        faults += [f"{name}: not altered, and refused by {who}: {reason}" for who, reason in told.items()]
    ways = [*SIGNED, *WHOLE]
    for n in range(count):
        way, rng = ways[n % len(ways)], random.Random(f"{seed} {n}")
        signed = way in SIGNED
        tally = tallies.setdefault(way.name, Tally(theirs=0 if signed else None))
        found = altered(way.alter, given, against, rng)
        tally.made += 1
        answer = ours(found, folder)
        tally.ours += not answer.accepted
        if answer.accepted or not answer.reason:
            faults.append(f"{way.name}, {n}: {'accepted' if answer.accepted else 'refused without a reason'} by ours")
        if tally.theirs is not None:
            accepted = theirs(found).accepted
            tally.theirs += not accepted
            faults += [f"{way.name}, {n}: accepted by securesystemslib"] if accepted else []
    return tallies, faults


def verb(home: Path, *words: str) -> str:
    """One verb of localagent in a process of its own; its standard error. RuntimeError where it did not end well."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **_places(home)}
    argv = [sys.executable, "-m", "localagent", *words]
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"localagent {words[0]} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return ended.stderr


def _places(home: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(home / "state"), "XDG_DATA_HOME": str(home / "data")}


def made(home: Path, name: str) -> Given:
    """A real task's attestation: a case is repaired, applied, and what it left is gathered."""
    case = next(case for case in read_built(BUILT) if case.id == name)
    repo, diff = home / name, home / f"{name}.diff"
    make_repository(repo, case)
    said = verb(home, "fix", "--repo", str(repo), "--test", "tests", "--no-model", "--out", str(diff))
    task = re.search(r"localagent apply (\S+)", said)
    if task is None:
        raise RuntimeError(f"{name} was not repaired: {said[-2000:]}")
    verb(home, "apply", task[1])
    verb(home, "attest", task[1], "--out", str(home / "bundle"))
    changed = [path for path in sorted(case.files) if (repo / path).read_text(encoding="utf-8") != case.files[path]]
    return Given(
        bundle=(home / "bundle").read_bytes(),
        key=(home / "key.pub").read_bytes(),
        diff=diff.read_bytes(),
        files={path: (repo / path).read_bytes() for path in changed},
    )


def table(tallies: dict[str, Tally]) -> Iterable[str]:
    """One line a kind, and all of them."""
    yield f"{'kind':38} {'made':>5} {'refused':>8} {'by theirs':>10}"
    for name, tally in tallies.items():
        yield f"{name:38} {tally.made:5} {tally.ours:8} {'-' if tally.theirs is None else tally.theirs:>10}"
    kinds = [tally for name, tally in tallies.items() if not name.startswith("(")]
    asked = sum(tally.made for tally in kinds if tally.theirs is not None)
    refused = sum(tally.theirs or 0 for tally in kinds)
    yield f"altered: {sum(t.made for t in kinds)}, refused by ours: {sum(t.ours for t in kinds)}"
    yield f"of {asked} that a signature alone refuses, securesystemslib refused {refused}"


def main(argv: list[str] | None = None) -> int:
    """Entry point: 0 where every altered one was refused with a reason, and every unaltered one accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bench-attest-") as folder:
        home = Path(folder)
        os.environ.update(_places(home))
        verb(home, "key", "new")
        verb(home, "key", "export", "--out", str(home / "key.pub"))
        given, other = (made(home, name) for name in _CASES)
        tallies, faults = measure(given, enemy(other), args.count, args.seed, home / "tried")
    if args.json:
        print(json.dumps({"kinds": {name: vars(tally) for name, tally in tallies.items()}, "faults": faults}))
    else:
        print("\n".join(table(tallies)))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
