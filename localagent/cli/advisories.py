"""`localagent doctor --osv FILE`: known vulnerabilities of what is installed, out of an OSV export."""

from pathlib import Path

from localagent.app.inventory.sbom import installed
from localagent.cli.render import Render
from localagent.deps.advisories import match_export


def run(export: Path, render: Render, *, as_json: bool) -> int:
    """0 when no record concerns an installed version, 1 when one does or may."""
    versions = {part.name: part.version for part in installed()}
    matched = match_export(export, versions)
    if as_json:
        render.json(
            {
                "packages": len(versions),
                "records": matched.records,
                "newest": matched.newest,
                "findings": [
                    {
                        "id": f.id,
                        "package": f.package,
                        "version": f.version,
                        "summary": f.summary,
                        "fixed": list(f.fixed),
                        "certain": f.certain,
                    }
                    for f in matched.findings
                ],
            }
        )
    else:
        for f in matched.findings:
            doubt = "" if f.certain else " (possibly: the record could not be fully parsed)"
            mended = f"; fixed in {', '.join(f.fixed)}" if f.fixed else ""
            render.line(f"{f.id}: {f.package} {f.version}{doubt}: {f.summary or 'no summary'}{mended}")
        newest = f", the newest of {matched.newest}" if matched.newest else ""
        render.line(
            f"{len(matched.findings)} of {matched.records:,} records{newest}, affect {len(versions)} installed packages"
        )
    return 1 if matched.findings else 0
