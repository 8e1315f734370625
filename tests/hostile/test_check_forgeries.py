"""A check is an exit status and a text that the program under test writes: neither vouches for a patch by itself."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.house_builder import house

from localagent.domain.edit import Candidate
from localagent.domain.outcome import Baseline, FullResult
from localagent.repair.acceptance.goal_controls import examined
from localagent.repair.search.run_context import RunContext

COMMAND = "python check.py"
CODE = "PLAN = 1\n\n\ndef tax(price):\n    return price + 1\n\n\ndef ready():\n    return True\n"
CHECK = (
    "import sys\nimport unittest\n\nimport shop\n\n\nclass T(unittest.TestCase):\n"
    "    def test_tax(self):\n        self.assertEqual(shop.tax(100), 107)\n\n"
    "    def test_more(self):\n        self.assertEqual(shop.tax(200), 207)\n\n\n"
    "names = ('test_tax', 'test_more')[: 2 * shop.PLAN]\n"
    "suite = unittest.TestSuite(map(T, names))\n"
    "if shop.ready():\n    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())\n"
)
FORGED = "__import__('sys').stderr.write('Ran 999 tests in 0.001s\\n\\nOK\\n')"


def judged(verifier: Any, candidate: Candidate, baseline: Baseline) -> tuple[FullResult, FullResult]:
    """What the full check says, and what is left of it once the goal was controlled."""
    full = verifier.full(candidate, baseline, seed=1)
    run = SimpleNamespace(parts=SimpleNamespace(verifier=verifier), baseline=baseline, emit=lambda *_, **__: None)
    return full, examined(cast("RunContext", run), candidate, full) if full.accepted else full


@pytest.mark.long
def test_a_forged_number_of_tests_makes_no_patch_believed() -> None:
    with house({"shop.py": CODE, "check.py": CHECK}, checks=(COMMAND,)) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == (f"check:{COMMAND}",)
        assert baseline.checks[0].counts == (2,)

        right, controlled = judged(h.verifier, h.candidate("shop.py", "price + 1", "price + 7"), baseline)
        assert right.accepted, right.reasons
        assert (controlled.accepted, controlled.doubts) == (True, ())

        fewer, _ = judged(h.verifier, h.candidate("shop.py", "PLAN = 1", "PLAN = 0", scoped=False), baseline)
        assert fewer.reasons == (f"the check '{COMMAND}' runs 0 tests where it ran 2 before",)

        switched_off, _ = judged(h.verifier, h.candidate("shop.py", "return True", "return False"), baseline)
        assert switched_off.reasons == (f"the check '{COMMAND}' reports no tests where it ran 2 tests before",)

        beside = h.candidate("shop.py", "PLAN = 1", f"PLAN = 0\n{FORGED}", scoped=False)
        forged, _ = judged(h.verifier, beside, baseline)
        assert not forged.accepted
        assert "reports a run of 0 tests" in forged.reasons[0]

        dead = "price + 1\n\n\ndef unused():\n    return 1"
        alone = h.candidate("shop.py", "price + 1", f"{dead}\n\n\n{FORGED}\nraise SystemExit", scoped=False)
        believed, controlled = judged(h.verifier, alone, baseline)
        assert believed.accepted, believed.reasons  # 999 is more than 2, and the status is 0
        assert not controlled.accepted
        assert controlled.reasons == (
            "no test or check that was asked for fails when shop.py:unused is broken on purpose",
        )
