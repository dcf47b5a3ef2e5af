"""Files behind URLs, through fsspec."""

import pathlib
import tempfile
from typing import Any

from albert_tf.files.origins import ORIGINS, process_folder

_CURE = "check the URL and the connection, or download the file"


def is_url(path: Any) -> bool:
    """Whether this is a string such as `https://...`, `s3://...` or `hf://...`."""
    return isinstance(path, str) and "://" in path


def local_copy(url: str) -> pathlib.Path:
    """Downloads a file to a temporary one of the same name, which is removed when Python ends.

    Raises:
        ValueError: the file cannot be read, or a library that this needs is not installed.
    """
    try:
        import fsspec
    except ImportError:
        raise ValueError(f"{url} needs fsspec; pip install 'albert-tf[cloud]'.") from None
    name = url.rsplit("/", 1)[-1].split("?")[0] or "file"
    path = pathlib.Path(tempfile.mkdtemp(dir=process_folder())) / name
    try:
        filesystem, remote = fsspec.url_to_fs(url)
        filesystem.get_file(remote, str(path))
    except ImportError as error:
        raise ValueError(f"{url} needs another library ({error}); pip install 'albert-tf[cloud]'.") from None
    except Exception as error:  # of many kinds, by protocol
        reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise ValueError(f"{url} could not be read ({type(error).__name__}: {reason}); {_CURE}.") from None
    ORIGINS[path] = url
    return path
