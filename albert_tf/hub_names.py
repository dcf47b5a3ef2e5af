"""Models by their names on the Hugging Face Hub, such as "albert/albert-base-v2"."""

import contextlib
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_EXTRA = "huggingface"
# What a checkpoint needs besides its weights: configs, vocabularies, and the modules of sentence-transformers.
_SMALL_FILES = re.compile(r"[^/]*\.(json|txt|model)|1_Pooling/config\.json|assets/.*")
# The first kind of weights that is there is downloaded, in one file or in several.
_WEIGHTS = tuple(map(re.compile, (r"model[^/]*\.safetensors", r"pytorch_model[^/]*\.bin", r"model\.weights\.h5")))


def is_hub_name(path: str | os.PathLike) -> bool:
    """Whether it has the form of a name on the Hub, and neither it nor the folder it would be in exists here.

    Example:

    >>> is_hub_name("albert/albert-base-v2"), is_hub_name("./albert"), is_hub_name("a/b/c")
    (True, False, False)
    """
    text = os.fspath(path)
    local = pathlib.Path(text)
    return bool(_NAME.fullmatch(text)) and not text.startswith(".") and not local.exists() and not local.parent.exists()


def local_path(path: str | os.PathLike, revision: str | None = None, with_weights: bool = True) -> str | pathlib.Path:
    """The path itself, or for a name on the Hub the folder of its files, downloaded if necessary.

    Files are kept in the cache of huggingface_hub, and are found there without a network.

    Args:
        path: a local path or a name, such as "albert/albert-base-v2". A local path always wins.
        revision: a branch, tag or commit of the Hub. None: its main branch.
        with_weights: whether weights are needed besides configs and vocabulary.

    Raises:
        ValueError: there is no such model, it cannot be downloaded, or `revision` was given with a local path.
    """
    if not is_hub_name(path):
        if revision is not None:
            raise ValueError(f"`revision` must be None with a local path. Received: revision={revision!r}.")
        return path if isinstance(path, str) else pathlib.Path(path)
    name = os.fspath(path)
    try:
        import huggingface_hub.errors
    except ModuleNotFoundError:
        raise ValueError(
            f"{name} does not exist here. If it is a name on the Hugging Face Hub, pip install "
            f"'albert-tf[{_EXTRA}]' to download it, or download it yourself and give its folder."
        ) from None
    return pathlib.Path(_download(huggingface_hub, name, revision, with_weights))


def _download(huggingface_hub: Any, name: str, revision: str | None, with_weights: bool) -> str:
    errors = huggingface_hub.errors
    try:
        listed = huggingface_hub.HfApi().model_info(name, revision=revision).siblings or []
        files = [file.rfilename for file in listed]
        wanted = [file for file in files if _SMALL_FILES.fullmatch(file)]
        if with_weights:
            wanted += _weights(name, files)
        return huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=wanted)
    except errors.GatedRepoError:
        reason = "its owner asks for an agreement; accept it on the Hub, and log in with `hf auth login`"
    except errors.RepositoryNotFoundError:
        reason = (
            "it is neither a folder here nor a public model on the Hub; check the name, or give the path of a folder"
        )
    except errors.RevisionNotFoundError:
        reason = f"it has no revision {revision!r}"
    except ValueError as error:
        reason = str(error).splitlines()[0]
    except Exception as error:  # no network, in terms of the HTTP library; or a download that was cut off
        reason = f"the Hub cannot be reached ({(str(error) or type(error).__name__).splitlines()[0][:100]})"
        with contextlib.suppress(errors.LocalEntryNotFoundError):
            options = {"allow_patterns": ["config.json"], "local_files_only": True}
            folder = huggingface_hub.snapshot_download(name, revision=revision, **options)
            if not with_weights or _weights(name, os.listdir(folder)):
                return folder
        reason += ", and it was not downloaded before; give the path of a folder"
    raise ValueError(f"{name} cannot be loaded: {reason}.")


def _weights(name: str, files: Sequence[str]) -> list[str]:
    """The files of the first kind of weights; raises ValueError if there is none."""
    for kind in _WEIGHTS:
        if found := [file for file in files if kind.fullmatch(file)]:
            return found
    raise ValueError(f"{name} has no model.safetensors, pytorch_model.bin or model.weights.h5, which are what is read")
