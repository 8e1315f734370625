"""Names that Python and its most used libraries moved or renamed: the old dotted name, and where it is now.

Facts of the projects' release notes. Not promised: that the new one takes the same arguments; whoever uses the table
has tests decide. `builtins.x` needs no import.
"""

from collections.abc import Mapping, Sequence

ABSTRACT_COLLECTIONS = frozenset(
    {
        "AsyncGenerator", "AsyncIterable", "AsyncIterator", "Awaitable", "ByteString", "Callable",
        "Collection", "Container", "Coroutine", "Generator", "Hashable", "ItemsView", "Iterable", "Iterator",
        "KeysView", "Mapping", "MappingView", "MutableMapping", "MutableSequence", "MutableSet", "Reversible",
        "Sequence", "Set", "Sized", "ValuesView",
    }
)  # fmt: skip


def _all(old: str, new: str, names: str) -> dict[str, Sequence[str]]:
    """Names that moved from one module to another and kept their names."""
    return {f"{old}.{name}": (f"{new}.{name}",) for name in names.split()}


MOVED_NAMES: Mapping[str, Sequence[str]] = {
    # modules
    **{
        old: (new,)
        for old, new in (
            ("BaseHTTPServer", "http.server"), ("ConfigParser", "configparser"), ("Cookie", "http.cookies"),
            ("HTMLParser", "html.parser"), ("Queue", "queue"), ("SimpleHTTPServer", "http.server"),
            ("SocketServer", "socketserver"), ("StringIO", "io"), ("Tkinter", "tkinter"), ("__builtin__", "builtins"),
            ("cPickle", "pickle"), ("cStringIO", "io"), ("commands", "subprocess"), ("cookielib", "http.cookiejar"),
            ("copy_reg", "copyreg"), ("email.Encoders", "email.encoders"), ("email.MIMEBase", "email.mime.base"),
            ("email.MIMEMultipart", "email.mime.multipart"), ("email.MIMEText", "email.mime.text"),
            ("email.Utils", "email.utils"), ("httplib", "http.client"),
            ("robotparser", "urllib.robotparser"), ("thread", "_thread"),
            ("typing.io", "typing"), ("typing.re", "typing"), ("urllib2", "urllib.request"),
            ("urlparse", "urllib.parse"), ("xml.etree.cElementTree", "xml.etree.ElementTree"),
            ("xmlrpclib", "xmlrpc.client"), ("django.core.urlresolvers", "django.urls"),
            ("sklearn.cross_validation", "sklearn.model_selection"),
            ("sklearn.grid_search", "sklearn.model_selection"), ("sklearn.externals.joblib", "joblib"),
        )
    },
    # names of the standard library
    **_all("collections", "collections.abc", " ".join(sorted(ABSTRACT_COLLECTIONS))),
    **_all("urllib", "urllib.parse", "quote quote_plus unquote unquote_plus urlencode splitquery splittype"),
    **_all("urllib", "urllib.request", "urlopen urlretrieve Request pathname2url url2pathname"),
    **_all("urllib2", "urllib.error", "HTTPError URLError"),
    **_all("cgi", "urllib.parse", "parse_qs parse_qsl"),
    **_all("cgi", "html", "escape"),
    **_all("fractions", "math", "gcd"),
    **{f"ast.{name}": ("ast.Constant",) for name in ("Bytes", "Ellipsis", "NameConstant", "Num", "Str")},
    "asyncio.JoinableQueue": ("asyncio.Queue",),
    "asyncio.async": ("asyncio.ensure_future",),
    "asyncio.coroutine": ("types.coroutine",),
    "base64.decodestring": ("base64.decodebytes",),
    "base64.encodestring": ("base64.encodebytes",),
    "configparser.SafeConfigParser": ("configparser.ConfigParser",),
    "importlib.find_loader": ("importlib.util.find_spec",),
    "inspect.getargspec": ("inspect.getfullargspec",),
    "itertools.ifilter": ("builtins.filter",),
    "itertools.ifilterfalse": ("itertools.filterfalse",),
    "itertools.imap": ("builtins.map",),
    "itertools.izip": ("builtins.zip",),
    "itertools.izip_longest": ("itertools.zip_longest",),
    "locale.format": ("locale.format_string",),
    "logging.warn": ("logging.warning",),
    "os.errno": ("errno",),
    "os.getcwdu": ("os.getcwd",),
    "pkgutil.find_loader": ("importlib.util.find_spec",),
    "string.letters": ("string.ascii_letters",),
    "string.lowercase": ("string.ascii_lowercase",),
    "string.maketrans": ("builtins.str.maketrans",),
    "string.uppercase": ("string.ascii_uppercase",),
    "sys.maxint": ("sys.maxsize",),
    "time.clock": ("time.perf_counter", "time.process_time"),
    # names of libraries
    **{f"numpy.{name}": (f"builtins.{name}",) for name in ("bool", "complex", "float", "int", "object", "str")},
    **_all("flask", "markupsafe", "Markup escape"),
    **_all("jinja2", "markupsafe", "Markup escape"),
    **_all("pydantic", "pydantic_settings", "BaseSettings"),
    **_all("werkzeug", "werkzeug.security", "check_password_hash generate_password_hash"),
    **_all("werkzeug", "werkzeug.utils", "secure_filename cached_property"),
    "django.conf.urls.url": ("django.urls.re_path",),
    "django.contrib.postgres.fields.JSONField": ("django.db.models.JSONField",),
    "django.utils.encoding.force_text": ("django.utils.encoding.force_str",),
    "django.utils.encoding.smart_text": ("django.utils.encoding.smart_str",),
    "django.utils.http.urlquote": ("urllib.parse.quote",),
    "django.utils.translation.ugettext": ("django.utils.translation.gettext",),
    "django.utils.translation.ugettext_lazy": ("django.utils.translation.gettext_lazy",),
    "django.utils.translation.ungettext": ("django.utils.translation.ngettext",),
    "numpy.Inf": ("numpy.inf",),
    "numpy.NaN": ("numpy.nan",),
    "numpy.alltrue": ("numpy.all",),
    "numpy.cumproduct": ("numpy.cumprod",),
    "numpy.float_": ("numpy.float64",),
    "numpy.in1d": ("numpy.isin",),
    "numpy.infty": ("numpy.inf",),
    "numpy.product": ("numpy.prod",),
    "numpy.row_stack": ("numpy.vstack",),
    "numpy.sometrue": ("numpy.any",),
    "numpy.string_": ("numpy.bytes_",),
    "numpy.trapz": ("numpy.trapezoid",),
    "numpy.unicode_": ("numpy.str_",),
    "werkzeug.contrib.fixers.ProxyFix": ("werkzeug.middleware.proxy_fix.ProxyFix",),
    "werkzeug.urls.url_parse": ("urllib.parse.urlsplit",),
    "werkzeug.urls.url_quote": ("urllib.parse.quote",),
}  # fmt: skip
