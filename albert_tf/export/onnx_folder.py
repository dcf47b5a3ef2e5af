"""Export to a folder of ONNX files, for onnxruntime, OpenVINO and transformers.js.

Letters: B batch, C choices, L sequence.
"""

import dataclasses
import json
import pathlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from albert_tf import checkpoints, models
from albert_tf.checkpoints.config_files import hugging_face_values
from albert_tf.checkpoints.names import num_file_groups
from albert_tf.export.checks import SAMPLES, check_length, relative_difference, without_none
from albert_tf.export.onnx_graph import OnnxGraph, Precision, onnx_graph
from albert_tf.export.versions import publish, version_folder
from albert_tf.files.atomic import atomic_write, temporary_folder, write_json
from albert_tf.files.exports import ONNX
from albert_tf.files.hub import model_folder
from albert_tf.files.json import has_file, read_json
from albert_tf.files.urls import location
from albert_tf.inference.folder import ModelFolder, load_folder
from albert_tf.inference.network import P_MASK
from albert_tf.inference.onnx_network import MODEL_FILES, OUTPUT_NAMES
from albert_tf.layers.kernels import in_full_float32
from albert_tf.tasks.sentence_embedding.settings import EmbeddingSettings
from albert_tf.tasks.sequence_classification.settings import Threshold
from albert_tf.tasks.settings import files_in, write_settings
from albert_tf.tasks.table import WindowsName, find_task
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import CONFIG_FILE, TOKENIZERS_FILE, TokenizerOptions, read_config, write_config

TOLERANCE, MAX_CALIBRATION_TEXTS = 1e-4, 500
# Without texts to calibrate with, ranges are those of samples and of random pieces.
_RANDOM_ROWS = 16


@dataclasses.dataclass(frozen=True)
class OnnxReport:
    """Result of an export.

    Attributes:
        folder: `<output>/<name>/<version>`.
        sizes: bytes of each file by precision.
        largest_differences: by precision, the maximum absolute difference from the outputs of the Keras model.
    """

    folder: pathlib.Path
    sizes: Mapping[str, int]
    largest_differences: Mapping[str, float]


def export_onnx(
    source: str | pathlib.Path,
    output: str | pathlib.Path,
    name: str,
    version: int | None = None,
    max_length: int | None = None,
    threshold: Threshold | None = None,
    precisions: Sequence[Precision] = ("float32", "int8"),
    calibration: Sequence[str] = (),
    windows: WindowsName | None = None,
    pair_column: str | None = None,
) -> OnnxReport:
    """Writes a model as ONNX files with its tokenizer.

    It is published only after onnxruntime has reproduced the Keras model's outputs with the float32 file. The folder is
    read by `albert_tf.pipeline`, which needs neither TensorFlow nor Keras, and by transformers.js.

    Args:
        source, output, name, version, max_length: as in `export_saved_model`.
        threshold: of a model of any number of labels per text, see `albert_tf.pipeline`.
        precisions: the files to write; `"float32"` always is.
        calibration: texts like those of use, from which the ranges of an int8 file are measured, of which the first
            500 are taken. By default a few samples and random pieces.
        windows: as in `export_saved_model`, for programs that use `albert_tf`.
        pair_column: as in `export_saved_model`.

    Raises:
        ValueError: the model is of no task, the version exists, or outputs differ by more than 1e-4.

    Warns:
        UserWarning: there is no `tokenizer.json` for this vocabulary, so transformers.js cannot read texts.
    """
    folder = version_folder(location(output), name, version, ONNX)
    changes = {"max_length": max_length, "threshold": threshold, "windows": windows, "pair_column": pair_column}
    loaded = _load(model_folder(source), without_none(**changes))
    with temporary_folder(folder) as partial:
        (partial / "onnx").mkdir()
        _write_tokenizer(partial, loaded)
        differences = _write_graphs(partial, loaded, precisions, calibration)
        sizes = {precision: (partial / MODEL_FILES[precision]).stat().st_size for precision in differences}
        write_settings(partial, loaded.settings, files=files_in(partial))
        publish(partial, folder)
    return OnnxReport(folder, sizes, differences)


def _load(source: pathlib.Path, changes: dict[str, Any]) -> ModelFolder:
    """The model, of sentence embeddings the encoder alone: pooling is left to the program that uses the file."""
    checkpoint = checkpoints.read(source)
    config, has_pooler = checkpoint.config, "encoder/pooler/kernel" in checkpoint.arrays
    if config.attention != "full":
        raise ValueError(
            f"{source} has attention={config.attention!r}, which ONNX files do not support; export a SavedModel."
        )
    if "max_length" in changes:
        check_length("max_length", changes["max_length"], config.max_position_embeddings)
    is_bare = checkpoint.parts == {"encoder"} and not find_task(
        checkpoint.parts, checkpoint.settings.get("architectures") or ()
    )
    if is_bare:
        settings = EmbeddingSettings(task="sentence_embedding", max_length=config.max_position_embeddings)
        tokenizer = AlbertTokenizer.from_pretrained(source)
        tokenizer.check_fits(config.vocab_size)
    else:
        loaded = load_folder(source)
        if loaded.settings.task != "sentence_embedding":
            return loaded.changed(**changes)
        if loaded.model.dense_size is not None:
            raise ValueError(
                f"{source} has a layer after pooling, which ONNX files do not support; export a SavedModel."
            )
        settings, tokenizer = loaded.settings, loaded.tokenizer
    encoder = models.AlbertEncoder.from_pretrained(source, add_pooling_layer=has_pooler)
    return ModelFolder(tokenizer, settings.changed(**changes), model=encoder)


def _is_beam(model: Any) -> bool:
    """Whether it answers questions with the beam head, which is a task of its own but for programs that use it."""
    return getattr(model, "head", "") == "beam"


def _graph(
    loaded: ModelFolder, precision: Precision = "float32", ranges: Sequence[tuple[float, float]] = ()
) -> OnnxGraph:
    task, model = loaded.settings.task, loaded.model
    common = model.config, model.arrays_by_path(), precision, ranges
    if _is_beam(model):
        return onnx_graph(f"{task}_beam", *common, beams=(model.start_n_top, model.end_n_top))
    return onnx_graph(task, *common, mask_padding=getattr(model, "mask_padding", False))


def _write_tokenizer(folder: pathlib.Path, loaded: ModelFolder) -> None:
    """Writes the tokenizer's files and `config.json`."""
    model, config = loaded.model, loaded.model.config
    loaded.tokenizer.save_pretrained(folder)
    # transformers.js cuts texts to this in its own pipelines.
    write_config(folder, {**read_config(folder / CONFIG_FILE), "model_max_length": loaded.settings.max_length})
    published = {
        **hugging_face_values(config),
        "num_hidden_groups": num_file_groups(config),
        "architectures": [model.architecture],
        **model.head_settings(),
    }
    write_json(folder / "config.json", published, sort_keys=True)
    file = folder / TOKENIZERS_FILE
    if not has_file(file):
        warnings.warn(
            f"The vocabulary {loaded.tokenizer!r} has no form in {TOKENIZERS_FILE}; transformers.js cannot read texts "
            "for this model. `albert-tf serve` can.",
            stacklevel=3,
        )
        return
    content = read_json(file)
    if content["model"]["type"] == "Unigram":
        atomic_write(file, json.dumps(_for_browsers(content, loaded.tokenizer.options), ensure_ascii=False).encode())
        # transformers.js would also remove the white space after a [MASK], which begins a word.
        write_config(folder, {**read_config(folder / CONFIG_FILE), "remove_space": False})


def _for_browsers(content: dict[str, Any], options: TokenizerOptions) -> dict[str, Any]:
    """A `tokenizer.json` with the same ids in transformers.js, and the pieces after a [MASK] as they are here.

    transformers.js takes the compiled rules for NFKC, so what else they do is done before. A word start is put only
    where white space was: not before the full stop in "[MASK].".
    """
    steps = [] if options.keep_accents else [{"type": "NFKD"}, {"type": "StripAccents"}]
    steps += [{"type": "Lowercase"}] if options.do_lower_case else []
    collapse = [
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        {"type": "Strip", "strip_left": False, "strip_right": True},
    ]
    normalizer = {"type": "Sequence", "normalizers": [*steps, content["normalizer"], *collapse]}
    return {**content, "normalizer": normalizer, "pre_tokenizer": {**content["decoder"], "prepend_scheme": "first"}}


def _write_graphs(
    folder: pathlib.Path, loaded: ModelFolder, precisions: Sequence[Precision], calibration: Sequence[str]
) -> dict[str, float]:
    """Writes the float32 file and others; returns the largest difference of each from the Keras model."""
    exact = _graph(loaded)
    samples = _samples(loaded)
    with in_full_float32():
        expected = loaded.network.compute(samples)
    ours = OUTPUT_NAMES.get(loaded.settings.task, {})

    def write(graph: OnnxGraph, precision: str) -> float:
        file = folder / MODEL_FILES[precision]
        atomic_write(file, graph.model.SerializeToString())
        computed = _run(onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]), samples)
        differences = [
            relative_difference(name, array, expected[ours.get(name, name)])
            for name, array in computed.items()
            if not name.endswith("_index")
        ]
        return float(np.max(differences))  # NaN if any is

    differences = {"float32": write(exact, "float32")}
    if not differences["float32"] <= TOLERANCE:
        raise ValueError(
            f"The outputs of the ONNX file differ by {differences['float32']:.2e} from those of the Keras model "
            f"(tolerance {TOLERANCE}). Nothing was written; please report this as a bug."
        )
    for precision in dict.fromkeys(precisions):
        if precision not in MODEL_FILES:
            raise ValueError(f"`precisions` must be of {', '.join(MODEL_FILES)}. Received: {precision!r}.")
        if precision != "float32":
            ranges = _measure(exact, _calibration_inputs(loaded, calibration)) if precision == "int8" else []
            differences[precision] = write(_graph(loaded, precision, ranges), precision)
            if np.isnan(differences[precision]):
                raise ValueError(f"The model's outputs in {precision} are not finite; leave this precision out.")
    return differences


def _samples(loaded: ModelFolder) -> dict[str, np.ndarray]:
    """A padded batch on which files are compared with the Keras model."""
    first, second = (SAMPLES[::2], SAMPLES[::2]) if _is_beam(loaded.model) else (SAMPLES, SAMPLES[::-1])
    inputs = loaded.tokenizer(first, second, max_length=loaded.text_task.max_length)
    if loaded.settings.task == "multiple_choice":
        return {name: array.reshape(2, 2, -1) for name, array in inputs.items()}
    return inputs


def _run(
    session: onnxruntime.InferenceSession, batch: Mapping[str, np.ndarray], names: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """The outputs of these names, or all of them."""
    arrays = {P_MASK: 1 - batch["attention_mask"], **batch}
    inputs = {node.name: arrays[node.name].astype(np.int64) for node in session.get_inputs()}
    names = names or [output.name for output in session.get_outputs()]
    return dict(zip(names, map(np.asarray, session.run(names, inputs))))


def _calibration_inputs(loaded: ModelFolder, texts: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
    """Rows without padding: each text alone, and with the next one as its pair."""
    length = loaded.text_task.max_length
    if not texts:
        rng = np.random.default_rng(0)
        ids = rng.integers(loaded.tokenizer.vocab_size, size=[_RANDOM_ROWS, min(length, 64)])
        types = np.broadcast_to(np.arange(ids.shape[1]) * 2 >= ids.shape[1], ids.shape)
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        texts = SAMPLES
    texts = texts[:MAX_CALIBRATION_TEXTS]
    for text, pair in zip(texts, [*texts[1:], *texts[:1]]):
        for pairs in (None, [pair]):
            yield loaded.tokenizer([text], pairs, max_length=length, allow_special=True)


def _measure(graph: OnnxGraph, batches: Iterator[dict[str, np.ndarray]]) -> list[tuple[float, float]]:
    """Smallest and largest value of each tensor in `graph.measured`."""
    names = list(dict.fromkeys(graph.measured))
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    has_choices = len(session.get_inputs()[0].shape) == 3
    ranges = dict.fromkeys(names, (np.inf, -np.inf))
    for batch in batches:
        batch = {name: array[:, None] if has_choices else array for name, array in batch.items()}
        for name, array in _run(session, batch, names).items():
            low, high = ranges[name]
            ranges[name] = min(low, float(array.min())), max(high, float(array.max()))
    return [ranges[name] for name in graph.measured]
