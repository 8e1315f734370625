"""The script of an analysis may make files in its folder; the rest that a repair may not do it may not either."""

import pytest

from localagent.app import Settings
from localagent.app.policies import open_policy
from localagent.app.review.code_gates import findings_on
from localagent.domain.policy import Policy
from localagent.gate.analysis_gates import analysing, reaches_outside


@pytest.fixture(scope="module")
def policy() -> Policy:
    return analysing(open_policy(Settings.from_environ()).policy)


def test_making_files_is_what_an_analysis_is_for(policy: Policy) -> None:
    lines = (
        "import os, sqlite3, json",
        "from pathlib import Path",
        "import pandas as pd",
        "import matplotlib.pyplot as plt",
        "os.makedirs('plots', exist_ok=True)",
        "with open('a.json', 'w') as f:",
        "    json.dump({}, f)",
        "Path('b.txt').write_text('x')",
        "pd.read_csv('s.csv').groupby('a').sum().to_csv('c.csv')",
        "plt.title('/day, ~5 %, ../x')",
        "plt.savefig('plots/p.png')",
        "db = sqlite3.connect(':memory:')",
        "print('/etc/passwd', 'https://example.org')",
    )
    script = "\n".join(lines) + "\n"
    assert findings_on((("run.py", script.encode()),), policy) == ()
    assert list(reaches_outside(script)) == []


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import os\nos.remove('a.csv')", "write-files"),
        ("import shutil\nshutil.rmtree('x')", "write-files"),
        ("from pathlib import Path\nPath('a').unlink()", "write-files"),
        ("import os\nos.symlink('/etc/passwd', 'a')", "write-files"),
        ("import subprocess\nsubprocess.run(['id'])", "run-process"),
        ("import socket\nsocket.create_connection(('x', 1))", "network"),
        ("import pickle\npickle.load(open('x', 'rb'))", "load-objects"),
    ],
)
def test_what_else_is_dangerous_stays_so(code: str, rule: str, policy: Policy) -> None:
    assert rule in {finding.rule for finding in findings_on((("run.py", code.encode()),), policy)}


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("open('/home/x/.bashrc', 'a')", "/home/x/.bashrc"),
        ("open('../x', 'w')", "../x"),
        ("open('a/../../x', 'w')", "a/../../x"),
        ("open('~/.ssh/config')", "~/.ssh/config"),
        ("pd.read_csv('https://example.org/x.csv')", "https://example.org/x.csv"),
        ("pd.read_csv(filepath_or_buffer='file:///etc/passwd')", "file:///etc/passwd"),
        ("open(f'/tmp/{x}', 'w')", "/tmp/"),
        ("open(os.path.expanduser(p))", "expanduser"),
        ("(Path.home() / 'x').write_text('')", "home"),
        ("print(os.environ)", "environ"),
    ],
)
def test_places_outside_of_the_folder_are_seen(code: str, what: str) -> None:
    assert what in [found for found, _ in reaches_outside(code)]
