"""The licence texts of a kit's components, and where the source of those that ask for it is to be had.

Taken from the wheels themselves; a component without any text stops the making. Whether licences fit each other is not
judged here.
"""

import email
import email.message
import re
import shutil
import zipfile
from pathlib import Path

from bootstrap import ROOT, SetupError

TEXTS = ROOT / "scripts" / "kit" / "licences"
LICENCE_NAME = re.compile(r"(licen[sc]e|copying|notice|authors)[^/]*$", re.IGNORECASE)
LIBRARIES = {"libnl": "LGPL-2.1-only", "libcap": "BSD-3-Clause OR GPL-2.0-only", "libprotobuf": "BSD-3-Clause"}
RECIPROCAL = re.compile(r"GPL|MPL|Mozilla|Lesser", re.IGNORECASE)


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licences(kit: Path, wheels: Path) -> None:
    """The licence texts of every component, and where the source of those that ask for it is to be had."""
    offers = []
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as packed:
            names = packed.namelist()
            meta = email.message_from_bytes(packed.read(next(n for n in names if n.endswith(".dist-info/METADATA"))))
            texts = {n: packed.read(n) for n in names if LICENCE_NAME.search(n) and not n.endswith((".py", ".pyc"))}
            libraries = sorted(n for n in names if ".libs/" in n and not n.endswith("/"))
        licence = licence_of(meta)
        target = kit / "licences" / f"{canonical(str(meta['Name']))}-{meta['Version']}"
        target.mkdir(parents=True)
        inside = " ".join(library_licence(name) for name in libraries)
        spelled = sorted(set(re.findall(r"[A-Za-z]+-[0-9][A-Za-z0-9.-]*|MIT", f"{licence} {inside}")))
        for number, (name, text) in enumerate(sorted(texts.items())):
            (target / f"{number:02d}-{re.sub(r'[^A-Za-z0-9.-]', '_', Path(name).name)}").write_bytes(text)
        for known in spelled:
            if (TEXTS / f"{known}.txt").is_file():
                shutil.copyfile(TEXTS / f"{known}.txt", target / f"{known}.txt")
        if not any(target.iterdir()):
            raise SetupError(f"{wheel.name} ({licence}) carries no licence text: put it below scripts/kit/licences")
        if RECIPROCAL.search(licence) or libraries:
            offers.append(offer(meta, licence, libraries))
    shutil.copyfile(ROOT / "LICENSE", kit / "licences" / "localagent.txt")
    (kit / "licences" / "SOURCES.txt").write_text(OFFER + "".join(offers), encoding="utf-8")


OFFER = """Source of components whose licences ask for it (LGPL, GPL, MPL), and of libraries inside third-party wheels.

The wheels of this kit are the unaltered files that their packagers published; their digests stand in SHA256SUMS and in
locks/. Python packages carry their own source. For every compiled component named here whoever made this kit (the
holder of the key in SHA256SUMS.sig) gives the complete corresponding source to anybody who has the kit, on request, for
three years from its making, for no more than the cost of handing it over. Libraries of the LGPL are separate files and
may be replaced by changed ones.

"""


def library_licence(path: str) -> str:
    """The licence of a library that a wheel's packager put into it, where it is known here; "" otherwise."""
    return LIBRARIES.get(re.split(r"[-.]", Path(path).name)[0], "")


def offer(meta: email.message.Message, licence: str, libraries: list[str]) -> str:
    """One component's lines."""
    pages = meta.get_all("Project-URL", []) + ([f"Home-page, {meta['Home-page']}"] if meta["Home-page"] else [])
    inside = "".join(f"  holds the library {Path(n).name} {library_licence(n)}".rstrip() + "\n" for n in libraries)
    return f"{meta['Name']} {meta['Version']} ({licence})\n" + "".join(f"  {p}\n" for p in pages) + inside + "\n"


def licence_of(meta: email.message.Message) -> str:
    """The licence as a package states it, in its newest field first."""
    classified = [str(c).rsplit("::", 1)[-1].strip() for c in meta.get_all("Classifier", []) if "License ::" in str(c)]
    stated = str(meta["License-Expression"] or "") or (str(meta["License"] or "").splitlines() or [""])[0]
    return stated if stated and stated != "UNKNOWN" and len(stated) < 80 else ", ".join(classified) or "not stated"
