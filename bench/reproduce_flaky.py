"""Planted flaky tests whose cause is known: does `localagent reproduce --flaky` name the class?

.venv/bin/python bench/reproduce_flaky.py [--only NAME] [--every N] [--runs N] [--max-seconds S] [--json FILE]
"""
# ruff: noqa: E501 - planted files stand on one line

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOCALAGENT = Path(sys.executable).parent / "localagent"

# name: (cause, test, {file: text})
PLANTED: dict[str, tuple[str, str, dict[str, str]]] = {
    "order-list": ("order", "test_b.py::test_clean", {
        "state.py": "SEEN = []\n",
        "test_a.py": "import state\n\ndef test_x():\n    pass\n\ndef test_adds():\n    state.SEEN.append(1)\n\ndef test_y():\n    pass\n",
        "test_b.py": "import state\n\ndef test_clean():\n    assert state.SEEN == []\n",
    }),
    "order-environ": ("order", "test_b.py::test_default", {
        "test_a.py": "import os\n\ndef test_sets():\n    os.environ['MODE'] = 'fast'\n\ndef test_other():\n    assert True\n",
        "test_b.py": "import os\n\ndef test_default():\n    assert os.environ.get('MODE', 'slow') == 'slow'\n",
    }),
    "order-needs-setup": ("order", "test_b.py::test_uses", {
        "registry.py": "HANDLERS = {}\n",
        "test_a.py": "import registry\n\ndef test_registers():\n    registry.HANDLERS['a'] = len\n\ndef test_z():\n    pass\n",
        "test_b.py": "import registry\n\ndef test_uses():\n    assert registry.HANDLERS['a']('xy') == 2\n",
    }),
    "order-cache": ("order", "test_b.py::test_fresh", {
        "rates.py": "import functools\n\nRATE = {'eur': 2}\n\n@functools.lru_cache\ndef rate(name):\n    return RATE[name]\n",
        "test_a.py": "import rates\n\ndef test_rate(monkeypatch):\n    monkeypatch.setitem(rates.RATE, 'eur', 5)\n    assert rates.rate('eur') == 5\n",
        "test_b.py": "import rates\n\ndef test_fresh():\n    assert rates.rate('eur') == 2\n",
    }),
    "order-later": ("order", "test_a.py::test_level", {
        "test_a.py": "import logging\n\ndef test_level():\n    assert logging.getLogger('app').level == 0\n",
        "test_b.py": "import logging\n\ndef test_verbose():\n    logging.getLogger('app').setLevel(10)\n",
    }),
    "hash-set": ("hash-seed", "test_a.py::test_tags", {
        "tags.py": "def tags(text):\n    return list(set(text.split()))\n",
        "test_a.py": "from tags import tags\n\ndef test_tags():\n    assert tags('red green blue') == ['red', 'green', 'blue']\n",
    }),
    "hash-join": ("hash-seed", "test_a.py::test_header", {
        "test_a.py": "def test_header():\n    names = {'id', 'name'}\n    assert ','.join(names) == 'id,name'\n",
    }),
    "hash-bucket": ("hash-seed", "test_a.py::test_bucket", {
        "test_a.py": "def bucket(name):\n    return hash(name) % 3\n\ndef test_bucket():\n    assert bucket('alice') != bucket('bob')\n",
    }),
    "random-choice": ("random", "test_a.py::test_pick", {
        "test_a.py": "import random\n\ndef test_pick():\n    assert random.choice([1, 2, 3]) != 2\n",
    }),
    "random-shuffle": ("random", "test_a.py::test_deal", {
        "deck.py": "import random\n\ndef deal():\n    cards = list(range(4))\n    random.shuffle(cards)\n    return cards\n",
        "test_a.py": "from deck import deal\n\ndef test_deal():\n    assert deal()[0] < 2\n",
    }),
    "random-own": ("random", "test_a.py::test_token", {
        "test_a.py": "import random\n\ndef test_token():\n    r = random.Random()\n    assert r.randint(0, 9) > 2\n",
    }),
    "random-uuid": ("random", "test_a.py::test_id", {
        "test_a.py": "import uuid\n\ndef test_id():\n    assert uuid.uuid4().hex[0] not in '01234'\n",
    }),
    "random-secrets": ("random", "test_a.py::test_code", {
        "test_a.py": "import secrets\n\ndef test_code():\n    assert secrets.token_bytes(1)[0] < 170\n",
    }),
    "time-parity": ("time", "test_a.py::test_even", {
        "test_a.py": "import time\n\ndef test_even():\n    assert int(time.time() * 1000) % 2 == 0\n",
    }),
    "time-weekend": ("time", "test_a.py::test_workday", {
        "calendar_of.py": "from datetime import date\n\ndef is_workday():\n    return date.today().weekday() < 5\n",
        "test_a.py": "from calendar_of import is_workday\n\ndef test_workday():\n    assert is_workday() is True\n",
    }),
    "time-month-end": ("time", "test_a.py::test_next_day", {
        "test_a.py": "from datetime import datetime\n\ndef test_next_day():\n    now = datetime.now()\n    assert now.replace(day=now.day % 31 + 1).day > now.day\n",
    }),
    "time-year": ("time", "test_a.py::test_expiry", {
        "test_a.py": "import datetime\n\ndef test_expiry():\n    assert datetime.datetime.now() < datetime.datetime(2030, 1, 1)\n",
    }),
    "time-deadline": ("time", "test_a.py::test_fast", {
        "test_a.py": "import time\n\ndef test_fast():\n    begin = time.perf_counter()\n    sum(range(20000))\n    assert time.perf_counter() - begin < 0.02\n",
    }),
    "file-marker": ("shared-file", "test_a.py::test_marker", {
        "test_a.py": "import os\nimport tempfile\n\ndef test_marker():\n    path = os.path.join(tempfile.gettempdir(), 'm.txt')\n    assert not os.path.exists(path)\n    open(path, 'w').close()\n",
    }),
    "file-counter": ("shared-file", "test_a.py::test_count", {
        "test_a.py": "from pathlib import Path\n\ndef test_count():\n    p = Path('/tmp/count.txt')\n    n = int(p.read_text()) if p.exists() else 0\n    p.write_text(str(n + 1))\n    assert n == 0\n",
    }),
    "file-tree": ("shared-file", "test_a.py::test_cache", {
        "test_a.py": "from pathlib import Path\n\ndef test_cache():\n    p = Path('cache.txt')\n    assert not p.exists()\n    p.write_text('x')\n",
    }),
    "threads-counter": ("threads", "test_a.py::test_count", {
        "counter.py": "class Counter:\n    def __init__(self):\n        self.n = 0\n\n    def get(self):\n        return self.n\n\n    def add(self):\n        n = self.get()\n        self.set(n + 1)\n\n    def set(self, n):\n        self.n = n\n",
        "test_a.py": "import threading\nfrom counter import Counter\n\ndef test_count():\n    c = Counter()\n    def work():\n        for _ in range(2000):\n            c.add()\n    ts = [threading.Thread(target=work) for _ in range(4)]\n    [t.start() for t in ts]\n    [t.join() for t in ts]\n    assert c.n == 8000\n",
    }),
    "threads-check-then-act": ("threads", "test_a.py::test_once", {
        "once.py": "class Once:\n    def __init__(self):\n        self.made = []\n\n    def busy(self):\n        return sum(range(300))\n\n    def get(self):\n        if not self.made:\n            self.busy()\n            self.made.append(object())\n        return self.made[0]\n",
        "test_a.py": "import threading\nfrom once import Once\n\ndef test_once():\n    for _ in range(150):\n        o = Once()\n        gate = threading.Barrier(3)\n        def work():\n            gate.wait()\n            o.get()\n        ts = [threading.Thread(target=work) for _ in range(3)]\n        [t.start() for t in ts]\n        [t.join() for t in ts]\n        assert len(o.made) == 1\n",
    }),
    "threads-balance": ("threads", "test_a.py::test_transfer", {
        "bank.py": "def read(a, k):\n    return a[k]\n\ndef write(a, k, v):\n    a[k] = v\n\ndef transfer(a, x, y):\n    write(a, x, read(a, x) - 1)\n    write(a, y, read(a, y) + 1)\n",
        "test_a.py": "from concurrent.futures import ThreadPoolExecutor\nfrom bank import transfer\n\ndef test_transfer():\n    a = {'x': 0, 'y': 0}\n    with ThreadPoolExecutor(4) as pool:\n        list(pool.map(lambda n: [transfer(a, 'x', 'y') for _ in range(1500)], range(4)))\n    assert a == {'x': -6000, 'y': 6000}\n",
    }),
    "steady": ("none", "test_a.py::test_fine", {
        "test_a.py": "def test_fine():\n    assert 1 + 1 == 2\n",
    }),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--every", type=int, default=1, help="every n-th case")
    parser.add_argument("--runs", type=int, default=12, help="runs of the plain test (12)")
    parser.add_argument("--max-seconds", type=float, default=240.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = [name for name in PLANTED if args.only in name][:: args.every]
    rows = []
    for name in names:
        row = one(name, args.runs, args.max_seconds)
        rows.append(row)
        right = "right" if row["right"] else f"WRONG, is {row['cause']}"
        print(
            f"{name:24} {row['found']:12} {right:22} {row['runs']:4} runs {row['seconds']:6.1f} s  {row['sentence'][:90]}",
            flush=True,
        )
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1))
    right = sum(row["right"] for row in rows)
    print(f"cause class right: {right} of {len(rows)} ({right / max(1, len(rows)):.0%}); the bar is 80 %")
    return 0 if right >= 0.8 * len(rows) else 1


def one(name: str, runs: int, seconds: float) -> dict[str, object]:
    cause, test, files = PLANTED[name]
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            Path(folder, path).write_text(text)
        begin = time.monotonic()
        argv = [LOCALAGENT, "reproduce", test, "--repo", folder, "--flaky", "--json", "--runs", str(runs)]
        ended = subprocess.run([*argv, "--max-seconds", str(seconds)], capture_output=True, text=True, check=False)
        report = json.loads(ended.stdout) if ended.stdout.startswith("{") else {}
    flaky = report.get("flaky") or {
        "cause": report.get("status", "error"),
        "sentence": report.get("reason", ended.stderr),
    }
    return {
        "name": name,
        "cause": cause,
        "found": flaky["cause"],
        "right": flaky["cause"] == cause,
        "sentence": flaky["sentence"],
        "runs": report.get("runs", 0),
        "seconds": time.monotonic() - begin,
    }


if __name__ == "__main__":
    sys.exit(main())
