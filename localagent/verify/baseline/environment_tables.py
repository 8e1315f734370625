"""What names stand for: modules and their distributions, fixtures, markers and their plugins, messages of systems."""

import re

from localagent.domain.outcome import CauseKind

# modules that are not called as their distribution, or that resemble the name of another module
DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "Crypto": ("pycryptodome",),
    "MySQLdb": ("mysqlclient",),
    "OpenSSL": ("pyOpenSSL",),
    "PIL": ("Pillow",),
    "attr": ("attrs",),
    "bs4": ("beautifulsoup4",),
    "corsheaders": ("django-cors-headers",),
    "cv2": ("opencv-python", "opencv-python-headless"),
    "dateutil": ("python-dateutil",),
    "django": ("Django",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "environ": ("django-environ",),
    "fitz": ("PyMuPDF",),
    "flask": ("Flask",),
    "git": ("GitPython",),
    "google.cloud": ("google-cloud-core",),
    "google.protobuf": ("protobuf",),
    "httpx": ("httpx",),
    "jose": ("python-jose",),
    "jwt": ("PyJWT",),
    "magic": ("python-magic",),
    "markdown": ("Markdown",),
    "multipart": ("python-multipart",),
    "numpy": ("numpy",),
    "orjson": ("orjson",),
    "pandas": ("pandas",),
    "pkg_resources": ("setuptools",),
    "pptx": ("python-pptx",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pydantic_settings": ("pydantic-settings",),
    "regex": ("regex",),
    "requests": ("requests",),
    "rest_framework": ("djangorestframework",),
    "scipy": ("scipy",),
    "serial": ("pyserial",),
    "simplejson": ("simplejson",),
    "six": ("six",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "slugify": ("python-slugify",),
    "socks": ("PySocks",),
    "sqlalchemy": ("SQLAlchemy",),
    "tomli": ("tomli",),
    "ujson": ("ujson",),
    "usb": ("pyusb",),
    "werkzeug": ("Werkzeug",),
    "wx": ("wxPython",),
    "yaml": ("PyYAML", "ruamel.yaml"),
    "zmq": ("pyzmq",),
}

STDLIB_SINCE = {
    "annotationlib": "3.14",
    "compression": "3.14",
    "concurrent.interpreters": "3.14",
    "graphlib": "3.9",
    "string.templatelib": "3.14",
    "tomllib": "3.11",
    "zoneinfo": "3.9",
}
STDLIB_UNTIL = {
    **dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), "3.12"),
    **dict.fromkeys(
        (
            "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis",
            "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
        ),
        "3.13",
    ),
}  # fmt: skip
BUILT_WITH = (".pyx", ".c", ".cc", ".cpp", ".rs", ".f90", ".pyi")

FIXTURE_PLUGINS = {
    **dict.fromkeys(("mocker", "class_mocker", "module_mocker", "package_mocker", "session_mocker"), "pytest-mock"),
    **dict.fromkeys(("client", "admin_client", "db", "rf", "settings", "live_server"), "pytest-django"),
    **dict.fromkeys(("transactional_db", "django_user_model", "admin_user", "mailoutbox"), "pytest-django"),
    **dict.fromkeys(("django_assert_num_queries", "django_db_setup", "django_db_blocker"), "pytest-django"),
    **dict.fromkeys(("benchmark", "benchmark_weave"), "pytest-benchmark"),
    **dict.fromkeys(("event_loop", "unused_tcp_port", "unused_tcp_port_factory"), "pytest-asyncio"),
    **dict.fromkeys(("anyio_backend", "anyio_backend_name", "free_tcp_port"), "anyio"),
    **dict.fromkeys(("aiohttp_client", "aiohttp_server", "aiohttp_raw_server"), "pytest-aiohttp"),
    **dict.fromkeys(("httpserver", "make_httpserver"), "pytest-httpserver"),
    **dict.fromkeys(("vcr", "vcr_config", "vcr_cassette"), "pytest-recording"),
    **dict.fromkeys(("file_regression", "data_regression", "num_regression", "datadir"), "pytest-regressions"),
    **dict.fromkeys(("qtbot", "qapp"), "pytest-qt"),
    **dict.fromkeys(("page", "browser", "browser_context_args"), "pytest-playwright"),
    **dict.fromkeys(("testdir_cov", "cov", "no_cover"), "pytest-cov"),
    **dict.fromkeys(("postgresql", "postgresql_proc"), "pytest-postgresql"),
    **dict.fromkeys(("faker",), "Faker"),
    **dict.fromkeys(("freezer",), "pytest-freezer"),
    **dict.fromkeys(("fs", "fake_filesystem"), "pyfakefs"),
    **dict.fromkeys(("httpx_mock",), "pytest-httpx"),
    **dict.fromkeys(("lazy_datadir", "shared_datadir"), "pytest-datadir"),
    **dict.fromkeys(("redisdb",), "pytest-redis"),
    **dict.fromkeys(("requests_mock",), "requests-mock"),
    **dict.fromkeys(("respx_mock",), "respx"),
    **dict.fromkeys(("snapshot",), "syrupy"),
    **dict.fromkeys(("socket_enabled", "socket_disabled"), "pytest-socket"),
    **dict.fromkeys(("subtests",), "pytest-subtests"),
    **dict.fromkeys(("testbed", "worker_id", "testrun_uid"), "pytest-xdist"),
    **dict.fromkeys(("time_machine",), "time-machine"),
}
MARKER_PLUGINS = {
    "anyio": "anyio",
    "asyncio": "pytest-asyncio",
    "benchmark": "pytest-benchmark",
    "django_db": "pytest-django",
    "flaky": "pytest-rerunfailures",
    "freeze_time": "pytest-freezegun",
    "order": "pytest-order",
    "timeout": "pytest-timeout",
    "trio": "pytest-trio",
    "vcr": "pytest-recording",
    "xdist_group": "pytest-xdist",
}
# what tests write, and the plugin that runs such tests; more special ones first
ASYNC_PLUGINS = (
    ("mark.anyio", "anyio"),
    ("mark.trio", "pytest-trio"),
    ("mark.twisted", "pytest-twisted"),
    ("mark.asyncio", "pytest-asyncio"),
    ("pytest_asyncio", "pytest-asyncio"),
    ("aiohttp_client", "pytest-aiohttp"),
)

DATA_FOLDERS = frozenset(
    (
        "assets", "corpus", "data", "datasets", "fixtures", "golden", "models", "resources", "samples", "snapshots",
        "testdata", "test_data",
    )
)  # fmt: skip

# (kind, pattern over "exception: message", sentence, arguments of pip, remedy); {} is the pattern's first group
# What a linter that runs as a pytest plugin raises: the tool, and how it is run by hand.
LINTER_ITEMS = {
    "RuffError": ("ruff", "ruff check"),
    "Flake8Error": ("flake8", "flake8"),
    "MypyError": ("mypy", "mypy"),
    "BlackError": ("black", "black"),
    "PyLintException": ("pylint", "pylint"),
    "ISortError": ("isort", "isort"),
    "PycodestyleError": ("pycodestyle", "pycodestyle"),
    "PydocstyleError": ("pydocstyle", "pydocstyle"),
}
MESSAGES: tuple[tuple[CauseKind, re.Pattern[str], str, tuple[str, ...], str], ...] = (
    (
        CauseKind.SYSTEM,
        re.compile(r"^(?:Error|LocaleError): unsupported locale setting"),
        "a locale that the tests set is not installed",
        (),
        "install it (Debian: `locale-gen`, package `locales`; `locale -a` lists what is there)",
    ),
    (
        CauseKind.MISSING_DATA,
        re.compile(r"^ZoneInfoNotFoundError: .*?key ([\w/+-]+)"),
        "the time zone {} is not known here: there is no time zone database",
        ("tzdata",),
        "",
    ),
    (
        CauseKind.MISSING_DATA,
        re.compile(r"nltk\.download\('([\w.-]+)'\)", re.DOTALL),
        "the data {} of nltk are not there",
        (),
        "download them into the project's environment: `{python} -m nltk.downloader -d SITE/nltk_data {0}`",
    ),
    (
        CauseKind.MISSING_DATA,
        re.compile(r"\[E050\] Can't find model '([\w.-]+)'"),
        "the model {} of spaCy is not installed",
        (),
        "`{python} -m spacy download {0}`",
    ),
    (
        CauseKind.SYSTEM,
        re.compile(r"([\w.+-]+\.so[.\d]*): cannot open shared object file"),
        "the shared library {} is not installed",
        (),
        "install the system's package that holds {0} (`apt-file search {0}`)",
    ),
    (
        CauseKind.SYSTEM,
        re.compile(r"no display name and no \$DISPLAY|couldn't connect to display|could not connect to display"),
        "there is no display in the jail",
        (),
        "name the tests that need none with --test, or use the toolkit's offscreen mode",
    ),
    (
        CauseKind.SYSTEM,
        re.compile(
            r"no NVIDIA driver|No CUDA GPUs are available|not compiled with CUDA|CUDA driver|no CUDA-capable device"
        ),
        "there is no GPU in the jail",
        (),
        "name the tests that need none with --test",
    ),
    (
        CauseKind.SYSTEM,
        re.compile(r"Executable doesn't exist at .*?/(chromium|firefox|webkit)"),
        "the browser {} of playwright is not there",
        (),
        "name the tests that need no browser with --test",
    ),
)
