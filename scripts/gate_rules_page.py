"""Writes docs/gate-rules.md anew from the rules of the gates: `python scripts/gate_rules_page.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localagent.gate.gate_rules_page import page  # noqa: E402
from localagent.policy.load import load_policy  # noqa: E402

(ROOT / "docs" / "gate-rules.md").write_text(page(load_policy(ROOT / "policies" / "default.toml")), encoding="utf-8")
