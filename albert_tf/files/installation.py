"""The version of this package, and which command installs the packages of an extra."""

import functools
import importlib.metadata
import json
import pathlib
import shlex
import sys
import urllib.parse
import urllib.request


def version() -> str:
    """The version of this package, which may be a checkout that is not installed."""
    return sys.modules["albert_tf"].__version__


@functools.cache
def install_command(extra: str) -> str:
    """`pip install 'albert-tf[extra]'`, or of the checkout or wheel from which this package was installed.

    Reference: https://packaging.python.org/en/latest/specifications/direct-url.
    """
    # In a checkout there may be two: what installs it leaves an `egg-info` there, which does not tell.
    installations = importlib.metadata.distributions(name="albert-tf")
    origin = next(filter(None, (one.read_text("direct_url.json") for one in installations)), "{}")
    url = urllib.parse.urlsplit(json.loads(origin).get("url", ""))
    source = urllib.request.url2pathname(url.path) if url.scheme == "file" else ""
    if not source or not pathlib.Path(source).exists():
        source = "albert-tf"
    return f"pip install {shlex.quote(f'{source}[{extra}]')}"
