"""Which new files would stand in the way of a module that others mean: by their path alone.

A file at the top, or in a folder that is put before the installed packages, is what an import of its name finds. Not
known: how a project is started, and what it means to replace. The list of distributions is of those that everybody
imports, not of all.
"""

import sys

from localagent.domain.paths import RepoPath

_ROOTS = (("src",), ("lib",), ("tests",), ("test",), ("testing",), ())
_OWN = frozenset({"test", "tests", "this", "antigravity", "setup"})  # what projects call folders and files of their own
_FRAMEWORKS = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "nose", "nose2", "mock", "hypothesis", "coverage", "xdist", "tox",
     "nox", "behave", "testtools", "trial", "pytest_asyncio", "pytest_cov", "pytest_mock", "freezegun", "responses",
     "exceptiongroup"}
)  # fmt: skip
_DISTRIBUTIONS = frozenset(
    {"aiohttp", "anyio", "attr", "attrs", "babel", "bcrypt", "bleach", "boto3", "botocore", "bs4", "celery", "certifi",
     "cffi", "chardet", "charset_normalizer", "click", "colorama", "cryptography", "dateutil", "django", "docutils",
     "fastapi", "flask", "google", "greenlet", "gunicorn", "h11", "httpcore", "httpx", "idna", "jinja2", "jsonschema",
     "jwt", "kombu", "lxml", "markdown", "markupsafe", "marshmallow", "matplotlib", "msgpack", "multidict", "mypy",
     "networkx", "numpy", "OpenSSL", "packaging", "pandas", "paramiko", "PIL", "pip", "pkg_resources", "platformdirs",
     "psutil", "psycopg2", "pydantic", "pygments", "pymysql", "pytz", "redis", "regex", "requests", "rich", "rsa",
     "scipy", "setuptools", "simplejson", "six", "sklearn", "sqlalchemy", "starlette", "tabulate", "tensorflow", "toml",
     "tomli", "torch", "tornado", "tqdm", "twisted", "typer", "typing_extensions", "tzdata", "urllib3", "uvicorn",
     "virtualenv", "websockets", "werkzeug", "wheel", "wrapt", "yaml", "yarl", "zipp", "zope"}
)  # fmt: skip
_MEANT = (sys.stdlib_module_names | _FRAMEWORKS | _DISTRIBUTIONS) - _OWN


def stands_for(path: RepoPath) -> str:
    """The module that others mean by the name of this file, "" if there is none, or nothing would find the file."""
    parts = path.parts
    name = parts[-2] if len(parts) > 1 and parts[-1] == "__init__.py" else parts[-1].removesuffix(".py")
    folder = parts[:-2] if parts[-1] == "__init__.py" else parts[:-1]
    is_module = parts[-1].endswith(".py")
    return name if is_module and tuple(folder) in _ROOTS and name in _MEANT else ""
