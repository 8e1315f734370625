"""Failures that no edit could mend are told from those of the code; what is missing is named, with a command."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.fix_builder import home

from localagent.domain.outcome import Baseline, CauseKind, CauseOrigin, Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.repo.declared_dependencies import declared_project
from localagent.repo.python_environment import PythonEnvironment
from localagent.verify.baseline.failed_project import Project
from localagent.verify.baseline.failure_cause import cause_of, hints, with_causes

PY = "/srv/env/bin/python"
TEST, SOURCE = "tests/test_shop.py", "shop/core.py"
TREE = {"shop/__init__.py": "", SOURCE: "def total(prices):\n    return sum(prices)\n", TEST: "import shop\n"}


def project(
    folder: Path, files: Mapping[str, str], *, python: str = "3.11.7", there: Mapping[str, str] = {}
) -> Project:
    store = folder / "group" / "repo"
    for name, text in {**TREE, **files}.items():
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text(text)
    environment = PythonEnvironment(
        python=PY, ours=False, made_by_uv=False, distributions={"pip": "25.0", **there}, outside=()
    )
    return Project(
        store=store,
        repo=str(store),
        declared=declared_project(store),
        environment=environment,
        python=python,
        test_files=frozenset({RepoPath(TEST)}),
    )


def failure(exception: str, message: str, at: str = SOURCE, line: int = 1) -> Failure:
    return Failure(exception=exception, message=message, frames=(Frame(path=RepoPath(at), line=line, function="f"),))


NO_YAML = ("ModuleNotFoundError", "No module named 'yaml'")
ASYNC = ("Failed", "async def functions are not natively supported.\nYou need to install a suitable plugin")
ABSENT = [
    (*NO_YAML, SOURCE, {"requirements.txt": "PyYAML>=6\n"}, f"{PY} -m pip install -r requirements.txt"),
    (*NO_YAML, TEST, {"pyproject.toml": '[project]\nname="s"\ndependencies=["pyyaml"]\n'}, f"{PY} -m pip install -e ."),
    (
        *NO_YAML,
        TEST,
        {"pyproject.toml": '[project.optional-dependencies]\ntest=["pyyaml"]\n'},
        f"{PY} -m pip install -e '.[test]'",
    ),
    (*NO_YAML, TEST, {"pyproject.toml": '[dependency-groups]\ndev=["pyyaml"]\n'}, "-m pip install --group dev"),
    (*NO_YAML, SOURCE, {"tox.ini": "[testenv]\ndeps =\n    pyyaml<7\n"}, f"{PY} -m pip install 'pyyaml<7'"),
    (
        *NO_YAML,
        SOURCE,
        {"requirements/testing.txt": "git+https://h/x/pyyaml.git@v6\n"},
        f"{PY} -m pip install -r requirements/testing.txt",
    ),
    (
        *NO_YAML,
        SOURCE,
        {"requirements.txt": "-e git+ssh://git@h/x/y#egg=PyYAML\n"},
        "-m pip install -r requirements.txt",
    ),
    (*NO_YAML, SOURCE, {"noxfile.py": "def t(s):\n    s.install('pyyaml')\n"}, f"{PY} -m pip install pyyaml"),
    (*NO_YAML, SOURCE, {"uv.lock": '[[package]]\nname = "pyyaml"\n'}, f"{PY} -m pip install pyyaml"),
    (*NO_YAML, SOURCE, {}, f"{PY} -m pip install PyYAML; declare it"),
    ("FixtureLookupError", "('mocker', <FixtureRequest for <Function test_q>>)", TEST, {}, "install pytest-mock"),
    (*ASYNC, TEST, {TEST: "@pytest.mark.anyio\nasync def test_q(): ...\n"}, f"{PY} -m pip install anyio"),
    (*ASYNC, TEST, {"requirements.txt": "pytest-asyncio\n"}, f"{PY} -m pip install -r requirements.txt"),
    ("Failed", "'asyncio' not found in `markers` configuration option", TEST, {}, "install pytest-asyncio"),
]


@pytest.mark.parametrize(("exception", "message", "at", "files", "command"), ABSENT)
def test_what_is_missing_is_named_with_its_command(
    tmp_path: Path, exception: str, message: str, at: str, files: Mapping[str, str], command: str
) -> None:
    baseline = Baseline(
        tests=(), collect_failures={"collect:t": failure(exception, message, at)}, failing=("collect:t",)
    )
    known = with_causes(baseline, project(tmp_path, files))
    (cause,) = known.causes
    assert known.failing == ()
    assert cause.kind.origin is CauseOrigin.ENVIRONMENT
    assert command in cause.remedy


DJANGO = "Requested setting DEBUG, but settings are not configured. You must define DJANGO_SETTINGS_MODULE"
OTHERS = [
    (("ImproperlyConfigured", DJANGO), {"manage.py": "('DJANGO_SETTINGS_MODULE', 's')"}, CauseKind.DJANGO_SETTINGS),
    (("ConnectionRefusedError", "[Errno 111] Connection refused"), {}, CauseKind.SERVICE),
    (("OperationalError", 'connection to server at "db", port 5432 failed: Connection refused'), {}, CauseKind.SERVICE),
    (("gaierror", "[Errno -3] Temporary failure in name resolution"), {}, CauseKind.SERVICE),
    (("Error", "unsupported locale setting"), {}, CauseKind.SYSTEM),
    (("RuntimeError", "Found no NVIDIA driver on your system."), {}, CauseKind.SYSTEM),
    (("ImportError", "libGL.so.1: cannot open shared object file: No such file"), {}, CauseKind.SYSTEM),
    (("ModuleNotFoundError", "No module named 'imp'"), {}, CauseKind.PYTHON_VERSION),
    (
        ("ImportError", "cannot import name 'override' from 'typing' (/usr/lib/python3.11/typing.py)"),
        {"pyproject.toml": '[project]\nrequires-python=">=3.12"\n'},
        CauseKind.PYTHON_VERSION,
    ),
    (("SyntaxError", "invalid syntax"), {SOURCE: "x = t'{a}'\n"}, CauseKind.PYTHON_VERSION),
    (("ModuleNotFoundError", "No module named 'shop._version'"), {"setup.py": "setuptools_scm"}, CauseKind.NOT_BUILT),
    (
        ("PackageNotFoundError", "No package metadata was found for shop"),
        {"setup.cfg": "[metadata]\nname=shop\n"},
        CauseKind.NOT_BUILT,
    ),
    (("ModuleNotFoundError", "No module named 'tools'"), {"libs/tools/a.py": ""}, CauseKind.NOT_ON_PATH),
    (("ModuleNotFoundError", "No module named 'money'"), {".gitmodules": "path = ext/money"}, CauseKind.MISSING_DATA),
    (
        ("JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
        {
            SOURCE: "open('big.json')\n",
            "data/big.json": "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n",
            ".gitattributes": "*.json filter=lfs",
        },
        CauseKind.MISSING_DATA,
    ),
    (
        ("OperationalError", "unable to open database file"),
        {SOURCE: "connect('var/shop.db')\n", ".gitignore": "var/\n"},
        CauseKind.MISSING_DATA,
    ),
    (("PermissionError", "[Errno 1] Operation not permitted", "tests/__init__.py"), {}, CauseKind.SYSTEM),
    (("PermissionError", "[Errno 13] Permission denied: '/var'"), {SOURCE: "mkdir('/var/x')\n"}, CauseKind.SYSTEM),
    (("ModuleNotFoundError", "No module named 'taxes'"), {"../taxes/taxes/__init__.py": ""}, CauseKind.SIBLING_PACKAGE),
    (
        ("ModuleNotFoundError", "No module named 'ours.core'", TEST),
        {"src/ours/cli/__init__.py": "", "../core/src/ours/core/__init__.py": ""},
        CauseKind.SIBLING_PACKAGE,
    ),
    (("KeyError", "'SHOP_DSN'"), {SOURCE: "import os; DSN = os.environ['SHOP_DSN']\n"}, CauseKind.MISSING_VARIABLE),
]  # fmt: skip


@pytest.mark.parametrize(("raised", "files", "kind"), OTHERS)
def test_other_causes_of_the_environment(
    tmp_path: Path, raised: tuple[str, str], files: Mapping[str, str], kind: CauseKind
) -> None:
    found = cause_of(failure(*raised), project(tmp_path, files))
    assert found is not None
    assert (found.kind, kind.origin) == (kind, CauseOrigin.ENVIRONMENT)


RUNNER = "import django\nfrom django.test.runner import DiscoverRunner\nif __name__ == '__main__':\n    main()\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "pip install pytest-django; set `DJANGO_SETTINGS_MODULE = yourproject.settings`"),
        ({"runtests.py": RUNNER}, f"pass `--check '{PY} runtests.py'`"),
        ({"tests/run.py": RUNNER}, f"pass `--check '{PY} tests/run.py'`"),
        ({"runtests.py": RUNNER, "manage.py": "('DJANGO_SETTINGS_MODULE', 's')"}, f"`--check '{PY} manage.py test'`"),
        ({"docs/build.py": "from django.test import TestCase\n"}, "pip install pytest-django"),
    ],
)
def test_what_runs_the_tests_of_django_where_pytest_does_not(
    tmp_path: Path, files: Mapping[str, str], told: str
) -> None:
    broken = failure("ImproperlyConfigured", DJANGO)
    there = project(tmp_path, files)
    name = f"collect:{TEST}"
    (cause,) = with_causes(Baseline(tests=(), collect_failures={name: broken}, failing=(name,)), there).causes
    assert told in cause.remedy


@pytest.mark.parametrize(("line", "refused"), [(4, True), (8, False)])
def test_a_refusal_that_another_test_plays_is_still_the_jails(tmp_path: Path, line: int, refused: bool) -> None:
    text = "import errno\n\ndef test_lists():\n    lists()\n\ndef test_plays():\n"
    text += "    e = PermissionError(errno.EPERM)\n    lists(e)\n"
    frames = (
        Frame(path=RepoPath(TEST), line=line, function="test"),
        Frame(path=RepoPath(SOURCE), line=1, function="lists"),
    )
    raised = Failure(exception="PermissionError", message="[Errno 1] Operation not permitted", frames=frames)
    assert (cause_of(raised, project(tmp_path, {TEST: text})) is not None) is refused


def test_tests_that_yield_others_are_not_for_pytest(tmp_path: Path) -> None:
    told = "'yield' keyword is allowed in fixtures, but not in tests (test_cases)"
    found = cause_of(Failure(exception="Failed", message=told), project(tmp_path, {}))
    assert found is not None
    assert found.kind is CauseKind.BROKEN_TEST


def test_two_folders_that_pytest_cannot_load_together_are_to_be_run_one_by_one(tmp_path: Path) -> None:
    clash = failure("ValueError", "option names {'--slow'} already added", "unit/conftest.py")
    found = cause_of(clash, project(tmp_path, {"unit/conftest.py": "", "tests/conftest.py": ""}))
    assert found is not None
    assert found.sentence.startswith("unit/conftest.py adds '--slow', which another conftest.py has added")
    assert "--test unit" in found.remedy


def test_a_package_of_a_monorepo_lies_where_its_modules_do(tmp_path: Path) -> None:
    files = {"packages/money/src/money/__init__.py": "", "packages/money/pyproject.toml": "[project]\nname='money'\n"}
    found = cause_of(failure("ModuleNotFoundError", "No module named 'money'", TEST), project(tmp_path, files))
    assert found is not None
    assert "money lies in packages/money/src/" in found.sentence
    assert found.install == ("-e", "./packages/money")


@pytest.mark.parametrize(
    ("file", "text", "install"),
    [
        (
            "pyproject.toml",
            "[project.optional-dependencies]\nslides = ['python-pptx>=1']\n",
            ("-e", "./packages/md[slides]"),
        ),
        ("requirements-test.txt", "python-pptx\n", ("-r", "packages/md/requirements-test.txt")),
        ("pyproject.toml", "[dependency-groups]\ntest = ['python-pptx']\n", ("python-pptx",)),
    ],
)  # fmt: skip
def test_a_part_of_a_monorepo_declares_what_it_needs(
    tmp_path: Path, file: str, text: str, install: tuple[str, ...]
) -> None:
    files = {f"packages/md/{file}": text, "packages/other/pyproject.toml": text, "packages/md/tests/test_md.py": ""}
    shop = project(tmp_path, files)
    found = cause_of(failure("ModuleNotFoundError", "No module named 'pptx'", "packages/md/tests/test_md.py"), shop)
    assert found is not None
    assert f"packages/md/{file} declares python-pptx" in found.sentence
    assert found.install == install


def test_a_part_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "requirements.txt").write_text("python-pptx\n")
    shop = project(tmp_path / "shop", {"tests/test_md.py": ""})
    (shop.store / "md").symlink_to(tmp_path / "elsewhere")
    assert shop.declaration("python-pptx", "md/test_md.py") is None


def test_the_manage_py_of_an_example_does_not_say_which_settings_the_tests_have(tmp_path: Path) -> None:
    files = {
        "examples/shop/manage.py": "('DJANGO_SETTINGS_MODULE', 'shop.settings')",
        "tox.ini": "[testenv]\nsetenv =\n  DJANGO_SETTINGS_MODULE = tests.settings\n",
    }
    found = cause_of(failure("ImproperlyConfigured", DJANGO), project(tmp_path, files))
    assert found is not None
    assert "`DJANGO_SETTINGS_MODULE = tests.settings`" in found.remedy
    assert "manage.py" not in found.remedy


def test_a_module_that_only_settings_name_is_told_with_the_file_that_names_it(tmp_path: Path) -> None:
    files = {
        "tests/settings.py": "INSTALLED_APPS = ['bootstrap.apps']\n",
        "requirements/testing.txt": "git+https://h/x/bootstrap@main\n",
    }
    loaded = Failure(exception="ModuleNotFoundError", message="No module named 'bootstrap'")
    found = cause_of(loaded, project(tmp_path, files))
    assert found is not None
    assert found.sentence == (
        "the module bootstrap is missing (tests/settings.py names it; requirements/testing.txt declares bootstrap)"
    )


def test_a_data_file_that_is_not_in_the_tree(tmp_path: Path) -> None:
    shop = project(tmp_path, {".gitignore": "*.bin\n"})
    ignored = failure("FileNotFoundError", f"[Errno 2] No such file or directory: '{shop.repo}/model.bin'")
    assert (found := cause_of(ignored, shop)) is not None
    assert (found.kind, found.subject) == (CauseKind.MISSING_DATA, "model.bin")
    assert ".gitignore leaves it out" in found.sentence


def test_a_dependency_of_another_version_than_declared(tmp_path: Path) -> None:
    shop = project(tmp_path, {"requirements.txt": "flask<2\n"}, there={"flask": "3.0.1"})
    name = failure("ImportError", "cannot import name 'escape' from 'flask' (/srv/env/lib/flask/__init__.py)")
    assert (found := cause_of(name, shop)) is not None
    assert found.kind is CauseKind.DEPENDENCY_VERSION
    assert found.sentence.startswith("Flask 3.0.1 is installed, and requirements.txt declares flask<2")


WRITTEN = [
    ("ModuleNotFoundError", "No module named 'shop.discount'"),
    ("ImportError", "cannot import name 'discount' from 'shop.core' (/r/shop/core.py)"),
    ("AttributeError", "module 'shop.core' has no attribute 'discount'"),
]


@pytest.mark.parametrize(("exception", "message"), WRITTEN)
def test_what_the_tests_want_and_nobody_wrote_is_to_be_written(tmp_path: Path, exception: str, message: str) -> None:
    found = cause_of(failure(exception, message, TEST), project(tmp_path, {}))
    assert found is not None
    assert (found.kind, found.install) == (CauseKind.NOT_WRITTEN, ())
    assert "must be written" in found.sentence


CODE = [
    (("ModuleNotFoundError", "No module named 'jsn'"), SOURCE, {}),
    (("ModuleNotFoundError", "No module named 'ConfigParser'"), SOURCE, {}),
    (("ModuleNotFoundError", "No module named 'xml.etree.cElementTree'"), SOURCE, {}),
    (("ModuleNotFoundError", "No module named 'shop.cor'"), SOURCE, {}),
    (("ModuleNotFoundError", "No module named 'core'"), SOURCE, {}),
    (("ImportError", "cannot import name 'totl' from 'shop.core' (/r/shop/core.py)"), TEST, {}),
    (("ImportError", "cannot import name 'rate' from 'shop' (/r/shop/__init__.py)"), TEST, {SOURCE: "rate = 1\n"}),
    (("ConnectionRefusedError", "Connection refused"), SOURCE, {SOURCE: "import socketserver\n"}),
    (("FileNotFoundError", "[Errno 2] No such file or directory: '/tmp/x/out.txt'"), TEST, {}),
    (("FileNotFoundError", "[Errno 2] No such file or directory: 'data/rate.csv'"), SOURCE, {"data/rates.csv": ""}),
    (("KeyError", "'SHOP_DSN'"), SOURCE, {SOURCE: "os.environ['SHOP_DSN']", TEST: "monkeypatch.setenv('SHOP_DSM', 1)"}),
    (
        ("OperationalError", "no such table: nosuch"),
        SOURCE,
        {SOURCE: '"""Opens a database: Shop("shop.db")."""\n', ".gitignore": "*.db\n"},
    ),
    (
        ("PermissionError", "[Errno 1] Operation not permitted"),
        SOURCE,
        {TEST: "mock.side_effect = PermissionError(1, 'Operation not permitted')\n"},
    ),
    (("FixtureLookupError", "('cart', <FixtureRequest for x>)"), TEST, {SOURCE: "def cart():\n    return 1\n"}),
    (("AssertionError", "assert 1 == 2"), TEST, {}),
    (
        ("TypeError", "'NoneType' object is not subscriptable"),
        SOURCE,
        {"setup.cfg": "[options]\npython_requires=>=4\n"},
    ),
]


@pytest.mark.parametrize(("raised", "at", "files"), CODE)
def test_faults_of_the_code_are_searched(
    tmp_path: Path, raised: tuple[str, str], at: str, files: Mapping[str, str]
) -> None:
    assert cause_of(failure(*raised, at), project(tmp_path, files)) is None


def test_tests_that_no_plugin_would_run_are_faults_of_the_tests(tmp_path: Path) -> None:
    marked = cause_of(failure(*ASYNC, TEST), project(tmp_path, {}, there={"pytest-asyncio": "1.0"}))
    unknown = cause_of(failure("FixtureLookupError", "('nobody', x)", TEST), project(tmp_path, {}))
    assert marked is not None
    assert unknown is not None
    assert (marked.kind, unknown.kind) == (CauseKind.UNMARKED_ASYNC, CauseKind.UNKNOWN_FIXTURE)
    assert marked.kind.origin is unknown.kind.origin is CauseOrigin.TEST


def test_what_a_linter_reports_as_a_test_and_files_of_one_name_are_no_faults_of_the_code(tmp_path: Path) -> None:
    here = project(tmp_path, {})
    linted = Failure(exception="RuffError", message="F401 `os` imported but unused")
    assert (cause := cause_of(linted, here)) is not None
    assert (cause.kind, cause.subject, "ruff check" in cause.remedy) == (CauseKind.LINTER_FINDING, "ruff", True)
    assert cause_of(failure("RuffError", "raised by a test of a linter", TEST), here) is None
    two = f"('test_a', '{here.repo}/x/test_a.py', PosixPath('{here.repo}/y/test_a.py'))"
    assert (cause := cause_of(Failure(exception="ImportPathMismatchError", message=two), here)) is not None
    assert (cause.kind, cause.kind.origin) == (CauseKind.SAME_NAME, CauseOrigin.TEST)
    assert cause.sentence == "x/test_a.py and y/test_a.py are both the module test_a to pytest"


def test_test_files_that_do_not_run_at_all_are_named(tmp_path: Path) -> None:
    here = project(tmp_path, {TEST: "raise RuntimeError('set SHOP_ENV first')\n"})
    at = (Frame(path=RepoPath(TEST), line=1, function="<module>"),)
    for name, message, said in (
        ("SyntaxError", "invalid syntax", f"{TEST}:1 does not parse: SyntaxError: invalid syntax"),
        ("RuntimeError", "set SHOP_ENV first\nplease", f"{TEST}:1 refuses: RuntimeError: set SHOP_ENV first"),
    ):
        cause = cause_of(Failure(exception=name, message=message, frames=at), here)
        assert cause is not None
        assert (cause.sentence, cause.kind.origin) == (said, CauseOrigin.TEST)
    called = (Frame(path=RepoPath(TEST), line=1, function="test_total"),)
    assert cause_of(Failure(exception="RuntimeError", message="x", frames=called), here) is None


def test_what_may_be_behind_a_failure_is_said_and_the_code_is_searched(tmp_path: Path) -> None:
    source = "import os\nURL = os.getenv('SHOP_URL').rstrip()\nNOW = time.localtime()\n"
    here = project(tmp_path, {SOURCE: source, "tox.ini": "[testenv]\nsetenv =\n    TZ = UTC\n    UNUSED = 1\n"})
    none = "'NoneType' object has no attribute 'rstrip'"
    at = (Frame(path=RepoPath(SOURCE), line=2, function="<module>"),)
    failures = {
        "collect:a": Failure(exception="AttributeError", message=none, frames=at),
        "collect:b": Failure(exception="ImportError", message="cannot import name 'x' (most likely a circular import)"),
        "collect:c": Failure(exception="AssertionError", message="assert 0 == 1"),
    }
    baseline = Baseline(tests=(), collect_failures=failures, failing=tuple(failures))
    assert with_causes(baseline, here).failing == tuple(failures)
    variable, circular, tox = hints(baseline, here)
    assert variable.startswith(f"SHOP_URL is not set where the tests run ({SOURCE}:2 reads it")
    assert circular.startswith("a circular import")
    assert tox.startswith("tox.ini sets TZ for the tests, and they ran without")


def test_nothing_is_ever_installed_into_our_own_environment(tmp_path: Path) -> None:
    ours = PythonEnvironment(python=sys.executable, ours=True, made_by_uv=False, distributions={}, outside=())
    assert ours.install(("-r", "requirements.txt")).startswith(
        "python3 -m venv .venv && .venv/bin/python -m pip install"
    )


@pytest.mark.long
def test_only_the_faults_of_the_code_are_searched() -> None:
    files = {
        "shop.py": "def add(a, b):\n    return a - b\n\n\n"
        "def load(text):\n    import yamlx\n    return yamlx.load(text)\n",
        "test_shop.py": "import shop\n\n\n"
        "def test_add():\n    assert shop.add(1, 2) == 3\n    assert shop.add(4, 4) == 8\n"
        "\n\ndef test_zero():\n    assert shop.add(5, 0) == 5\n\n\ndef test_load():\n    assert shop.load('a') == 'a'\n"
        "\n\ndef test_q(mocker):\n    assert mocker\n",
        "requirements.txt": "yamlx\n",
    }
    with home(files) as h:
        ran = h.fix("--assume")
        assert (ran.code, ran.report["outcome"]) == (1, "progress"), ran  # two tests still fail: nothing is accepted
        assert "return a + b" in str(ran.report["proposals"]), ran.report["proposals"]
        for told in ("yamlx is missing (shop.py:6 imports it; requirements.txt declares yamlx)", "pytest-mock"):
            assert any("not searched: test_shop.py" in line and told in line for line in ran.report["warnings"]), ran
        h.write({"shop.py": files["shop.py"].replace("a - b", "a + b")})
        again = h.fix()
        assert (again.code, again.report["outcome"], again.report["proposals"]) == (1, "needs-person", []), again
        assert again.reason.startswith("the environment is not complete, so nothing was searched: the module yamlx")
        assert ".venv/bin/python -m pip install pytest -r requirements.txt" in again.out
