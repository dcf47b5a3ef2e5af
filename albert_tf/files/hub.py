"""Models by their names on huggingface.co, such as "albert/albert-base-v2", in huggingface_hub's own cache."""

import pathlib
import re
from typing import Any

from albert_tf.files.installation import install_command
from albert_tf.files.urls import as_url, explained, is_remote, kind_of, local_copy, location, without_secrets

# Weights in order of preference; of these, only the first that a model has is downloaded.
HUGGING_FACE_WEIGHTS = (
    *(file + end for file in ("model.safetensors", "pytorch_model.bin") for end in ("", ".index.json")),
    "tf_model.h5",
)
_WEIGHTS = (*HUGGING_FACE_WEIGHTS, "model.weights.h5")  # the last one is KerasHub's
_SHARD = re.compile(r"(model|pytorch_model)-\d+-of-\d+\.(safetensors|bin)")
_VOCABULARIES = ("spiece.model", "30k-clean.model", "vocab.txt", "tokenizer.json")
# Needed besides weights: config, tokenizer, modules of sentence-transformers, records of `finetune`, KerasHub's pieces.
_SMALL_FILES = {
    *("config.json", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json", *_VOCABULARIES),
    *("modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "recipe.json", "metrics.json"),
    "model.json",
    *(f"2_Dense/{name}" for name in ("config.json", "model.safetensors", "pytorch_model.bin")),
    *("metadata.json", "assets/tokenizer/vocabulary.spm"),
}
_READ_WITHOUT_WEIGHTS = (".json", ".txt", ".model", ".spm")
_OF_RUNS = ("checkpoints/", "logs/", ".")  # in the folder of a run, but not of its model
_NAME = re.compile(r"(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>[^@]+))?", re.ASCII)


def model_folder(path: str | pathlib.Path, revision: str | None = None, *, weights: bool = True) -> pathlib.Path:
    """Returns the path or, for a URL or the name of a model on huggingface.co, where its files are downloaded to.

    A path that exists is never taken for a name; others are names if they are like `owner/name` or
    `owner/name@revision`. Without a network, or with HF_HUB_OFFLINE=1, an earlier download is used.

    Args:
        path: a path, a name, or the URL of a folder, a file or the prefix of a checkpoint.
        revision: branch, tag or commit. None: the newest.
        weights: whether weights are needed; else only config and vocabulary are downloaded.

    Raises:
        ValueError: there is no such model, it has no weights in a known format, or it cannot be downloaded.
    """
    url = as_url(path)
    match = _NAME.fullmatch((url or pathlib.Path(path).as_posix()).removeprefix("hf://"))
    if match is None or (url is None and pathlib.Path(path).exists()):
        return _on_disk(location(path), weights)
    name, revision = match["name"], revision or match["revision"]
    try:
        import huggingface_hub.errors as errors
    except ImportError:
        raise ValueError(
            f"{path} does not exist; if it is a model on huggingface.co, {install_command('hub')}, or download its "
            "files and pass their folder."
        ) from None
    try:
        folder = _download(name, revision, weights)
    except errors.GatedRepoError:
        raise ValueError(
            f"{name} is a gated model: accept its conditions on its page at {_site()}, then log in with "
            "`hf auth login`, or set HF_TOKEN."
        ) from None
    except errors.RepositoryNotFoundError:
        raise ValueError(
            f"There is neither a folder {name} nor a public model with this name at {_site()}; check the spelling, or "
            "log in with `hf auth login` if the model is private."
        ) from None
    except errors.RevisionNotFoundError:
        raise ValueError(f"{name} at {_site()} has no branch, tag or commit {revision}; check the spelling.") from None
    except Exception as error:  # network errors, whose types depend on the version of huggingface_hub
        if (folder := _cached(name, revision, weights)) is not None:
            return folder
        reason = (without_secrets(str(error)).splitlines() or [""])[0].rstrip(". ")[:200] or type(error).__name__
        raise ValueError(
            f"{name} is neither a folder nor in the download cache, and downloading it from {_site()} failed "
            f"({reason}); check the network and try again, or download its files on another machine and pass their "
            "folder."
        ) from None
    if folder is None:
        raise ValueError(
            f"{name} at {_site()} has no weights in a known format ({', '.join(_WEIGHTS)}); choose another model."
        )
    return folder


def _on_disk(path: Any, weights: bool) -> pathlib.Path:
    """The path, or the copy of a model's folder or, of a file or the prefix of a checkpoint, of what belongs to it."""
    if not is_remote(path):
        return path
    if kind_of(path) == "directory":
        return local_copy(path, lambda name: not name.startswith(_OF_RUNS) and (weights or _is_small(name)))
    with explained(path):
        if not path.fs.glob(f"{path.path}*"):
            raise ValueError(f"{path} does not exist; check the URL.")
    beside = local_copy(path.parent, lambda name: name.startswith(path.name) or ("/" not in name and _is_small(name)))
    return beside / path.name


def _is_small(name: str) -> bool:
    return name.endswith(_READ_WITHOUT_WEIGHTS)


def _site() -> str:
    from huggingface_hub import constants

    return without_secrets(constants.ENDPOINT)


def _download(name: str, revision: str | None, weights: bool) -> pathlib.Path | None:
    """The folder of the model; None if it has no weights in a known format."""
    from huggingface_hub import HfApi, snapshot_download

    files = {file.rfilename for file in HfApi().model_info(name, revision=revision).siblings or ()}
    wanted = _SMALL_FILES & files
    if weights:
        first = next((file for file in _WEIGHTS if file in files), None)
        if first is None:
            return None
        shards = {file for file in files if first.endswith(".index.json") and _SHARD.fullmatch(file)}
        wanted |= {first} | {file for file in shards if file.startswith(first.partition(".")[0] + "-")}
    return pathlib.Path(snapshot_download(name, revision=revision, allow_patterns=sorted(wanted)))


def _cached(name: str, revision: str | None, weights: bool) -> pathlib.Path | None:
    """The folder of an earlier download, if it has what is needed."""
    from huggingface_hub import try_to_load_from_cache

    needed = _WEIGHTS if weights else _VOCABULARIES
    paths = (try_to_load_from_cache(name, file, revision=revision) for file in needed)
    return next((pathlib.Path(file).parent for file in paths if isinstance(file, str)), None)
