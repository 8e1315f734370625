"""Writes docs/rules.md anew from the rules of the hook: `python scripts/rules_page.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.lint.lint_rules_page import page  # noqa: E402

(ROOT / "docs" / "rules.md").write_text(page(), encoding="utf-8")
