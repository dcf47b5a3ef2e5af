"""The `config.json` of a checkpoint: reads and checks it, and makes the entries of the one to write."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from albert_tf.config import AlbertConfig
from albert_tf.files.json import read_json

CURE = "download it again, or restore it"
MAX_LABELS, MAX_ANSWERS = 100_000, 1000
# Fields that no published config has.
_OWN_KEYS = ("share", "embedding_projection", "masked_lm_layer_norm_eps", "attention", "block_size")


def read_config(file: pathlib.Path) -> tuple[AlbertConfig, dict[str, Any]]:
    """Reads a config file.

    Returns:
        AlbertConfig, and all values of the file.

    Raises:
        ValueError: the file is not JSON or has an invalid value.
    """
    values = read_json(file, cure=CURE)
    return make_config(file, values, AlbertConfig.from_published), check_settings(file, values)


def make_config(
    source: pathlib.Path, values: Any, make: Callable[[dict[str, Any]], AlbertConfig] | None = None
) -> AlbertConfig:
    """Makes a config by `make` or, by default, from fields of AlbertConfig; raises ValueError, naming `source`."""
    if not isinstance(values, dict):
        raise ValueError(f"{source} holds {type(values).__name__} instead of a model config; {CURE}.")
    try:
        return make(values) if make else AlbertConfig().replace(**values)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def google_values(config: AlbertConfig) -> dict[str, Any]:
    """The entries of Google's `albert_config.json`, where "gelu" is the tanh form.

    Raises:
        ValueError: Google's code would compute something else with these weights.
    """
    extra_projection = config.has_projection and config.embedding_size == config.hidden_size
    groups, layers = max(config.num_attention_groups, config.num_ffn_groups), config.num_hidden_layers
    # The reference finds a layer's group by float arithmetic, which for a few sizes is one too low.
    regrouped = any(int(layer / layers * groups) != layer * groups // layers for layer in range(layers))
    for wrong, rule, name in (
        (config.hidden_act == "gelu", "have the tanh form of GELU", "hidden_act"),
        (config.layer_norm_eps != 1e-12, "normalise with an epsilon of 1e-12", "layer_norm_eps"),
        (extra_projection, "have no projection between equal widths", "embedding_projection"),
        (regrouped, f"not have {groups} groups, to which its code deals layers unevenly", "num_hidden_layers"),
    ):
        if wrong:
            raise ValueError(
                f"A model in Google's layout must {rule}. Received: {name}={getattr(config, name)!r}; "
                "save it in the Hugging Face layout."
            )
    values = config.to_dict()
    for name in ("layer_norm_eps", "classifier_dropout_prob", *_OWN_KEYS):
        if values[name] == getattr(AlbertConfig, name):
            del values[name]
    values["hidden_act"] = "gelu" if config.hidden_act == "gelu_new" else config.hidden_act
    fixed = {"net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0, "down_scale_factor": 1}
    return {**values, **fixed}


def hugging_face_values(config: AlbertConfig) -> dict[str, Any]:
    """The entries of a Hugging Face `config.json`; our own are included only if they differ from their defaults."""
    values = config.to_dict()
    for name in _OWN_KEYS:
        if values[name] == getattr(AlbertConfig, name):
            del values[name]
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    return {"model_type": "albert", **values, **special, "position_embedding_type": "absolute"}


def check_settings(source: pathlib.Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that are not null; raises ValueError if one about the heads has a wrong type."""
    settings = {key: value for key, value in values.items() if value is not None}
    for key, (is_valid, expected) in _SETTINGS.items():
        if key in settings and not is_valid(settings[key]):
            raise ValueError(f"{source}: `{key}` must be {expected}. Received: {str(settings[key])[:60]}; {CURE}.")
    return settings


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_LABELS and all(isinstance(item, str) for item in value)


def _is_labels_by_id(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) > MAX_LABELS:
        return False
    return set(value) == {str(index) for index in range(len(value))} and _is_strings(list(value.values()))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ANSWERS


_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "architectures": (_is_strings, "a list of strings"),
    "id2label": (_is_labels_by_id, 'an object of labels by id, such as {"0": "no", "1": "yes"}'),
    "labels": (_is_strings, "a list of strings"),
    **dict.fromkeys(("problem_type", "problem", "head", "pooling"), (lambda value: isinstance(value, str), "a string")),
    "normalize": (lambda value: isinstance(value, bool), "true or false"),
    "max_length": (lambda value: isinstance(value, int), "an integer"),
    **dict.fromkeys(("start_n_top", "end_n_top"), (_is_count, f"an integer from 1 to {MAX_ANSWERS}")),
}
