"""Export to TF Hub: SavedModels that are called like functions and can be fine-tuned without `albert_tf`.

Letters: B batch, L sequence, P predictions, D hidden, V vocabulary.
"""

import pathlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf import checkpoints
from albert_tf.checkpoints.sentence_modules import SENTENCE_SETTINGS
from albert_tf.export.checks import SAMPLES, check_length
from albert_tf.export.hub_preprocess import HubPreprocessor
from albert_tf.export.saved_model import TOLERANCE, ExportReport
from albert_tf.export.serve_base import traced
from albert_tf.files.atomic import move, temporary_folder, tensorflow_writes
from albert_tf.files.hub import model_folder
from albert_tf.files.urls import kind_of, location
from albert_tf.layers.kernels import in_full_float32
from albert_tf.models import AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import find_vocabulary

DEFAULT_LENGTH = 128
# Our inputs by TF Hub's names, and TF Hub's by those of the reference's signatures.
_INPUTS = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
_OF_SIGNATURES = {"input_ids": "input_word_ids", "input_mask": "input_mask", "segment_ids": "input_type_ids"}


def export_hub(source: str | pathlib.Path, output: str | pathlib.Path, seq_length: int | None = None) -> ExportReport:
    """Writes a checkpoint as two SavedModels for `hub.load` and `hub.KerasLayer`.

    `output/preprocess` turns texts into the encoder's inputs, `output/encoder` turns these into vectors. They have the
    interface of TF Hub's text models, and the encoder also has the signatures of the reference's modules. They are
    published only after they have been loaded and reproduced the Keras model's outputs. See `saved_models/README.md`.

    Args:
        source: folder of a checkpoint of any format with its vocabulary.
        output: folder to write, which must not exist yet.
        seq_length: L of `preprocess`. None: 128, or the model's maximum if that is less.

    Raises:
        ValueError: `output` exists; checkpoint or vocabulary is missing or damaged, or they do not match; outputs
            differ by more than 1e-5.
    """
    output = location(output)
    if kind_of(output) is not None:
        raise ValueError(f"`output` must not exist yet. Received: output={output}; give another folder, or remove it.")
    source = model_folder(source)
    checkpoint = checkpoints.read(source)
    parts = {path.removeprefix("encoder/").split("/")[0] for path in checkpoint.arrays}
    sentence = checkpoint.settings.get(SENTENCE_SETTINGS, {})
    if sentence.get("pooling", "mean") != "mean" or "dense_size" in sentence:
        options = {name: sentence[name] for name in ("pooling", "dense_size") if name in sentence}
        raise ValueError(f"Modules for TF Hub embed texts by the mean. Received: {options}; export a SavedModel.")
    tokenizer = AlbertTokenizer.from_pretrained(source)
    # It has all parts that modules may have; heads that the checkpoint lacks are not exported.
    kind = AlbertForPreTraining if "pooler" in parts else AlbertForMaskedLM
    model = kind.from_pretrained(source, new_head=True)
    tokenizer.check_fits(model.config.vocab_size)
    longest = model.config.max_position_embeddings
    seq_length = min(DEFAULT_LENGTH, longest) if seq_length is None else seq_length
    check_length("seq_length", seq_length, longest)
    functions = _Functions(model, parts, bool(sentence.get("normalize")))
    with temporary_folder(output) as partial:
        tokenizer.save_pretrained(partial / "vocabulary")
        encoder, signatures = _make_encoder(functions, find_vocabulary(partial / "vocabulary"), tokenizer)
        with tensorflow_writes(output):
            tf.saved_model.save(HubPreprocessor(tokenizer, seq_length), str(partial / "hub" / "preprocess"))
            tf.saved_model.save(encoder, str(partial / "hub" / "encoder"), signatures=signatures)
        expected = tokenizer(SAMPLES, max_length=seq_length, padding="max_length")
        difference = _largest_difference(partial / "hub", functions, expected)
        if not difference <= TOLERANCE:
            raise ValueError(
                f"The outputs of the SavedModels differ by {difference:.2e} from those of tokenizer and Keras model "
                f"(tolerance {TOLERANCE}). Nothing was written; please report this as a bug."
            )
        move(partial / "hub", output)
    return ExportReport(output, tuple(sorted(signatures)), difference)


class _Functions:
    """What the encoder's SavedModel computes.

    Args:
        model: the encoder and a masked-LM head, and with a pooler also a sentence-order head.
        parts: parts of the checkpoint, of which the model may have more.
        normalize: whether embeddings of texts are scaled to length 1, where there is no pooler.
    """

    def __init__(self, model: AlbertForPreTraining | AlbertForMaskedLM, parts: Collection[str], normalize: bool):
        self.model, self.parts, self.normalize = model, parts, normalize
        self.traced_encode: Any = tf.function(self.encode, autograph=False)  # traced once for all signatures

    def encode(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, Any]:
        """The outputs of the encoder, by TF Hub's names."""
        features = {ours: inputs[name] for name, ours in _INPUTS.items()}
        outputs = self.model.encoder(features, training=training, output_hidden_states=True)
        sequence = outputs["sequence_output"]  # [B, L, D]
        if "pooler" in self.parts:
            pooled: dict[str, Any] = dict.fromkeys(("default", "pooled_output"), outputs["pooled_output"])
        else:  # as sentence embeddings are computed
            mask = tf.cast(inputs["input_mask"], tf.bool)
            mean = keras.layers.GlobalAveragePooling1D()(sequence, mask=mask)
            pooled = {"default": keras.ops.normalize(mean, epsilon=1e-12) if self.normalize else mean}
        return {**pooled, "sequence_output": sequence, "encoder_outputs": list(outputs["hidden_states"][1:])}

    def fill_masks(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, Any]:
        """The same, and `mlm_logits` [B, P, V]."""
        outputs = self.traced_encode({name: inputs[name] for name in _INPUTS}, training=training)
        table = self.model.encoder.embeddings.word_embeddings
        logits = self.model.masked_lm(outputs["sequence_output"], table, inputs["masked_lm_positions"])
        return {**outputs, "mlm_logits": logits}

    def tokens(self, **inputs: tf.Tensor) -> dict[str, Any]:
        """The reference's signature of that name."""
        outputs = self.traced_encode({name: inputs[theirs] for theirs, name in _OF_SIGNATURES.items()}, training=False)
        return {name: outputs[name] for name in ("pooled_output", "sequence_output") if name in outputs}

    def mlm(self, mlm_positions: tf.Tensor, **inputs: tf.Tensor) -> dict[str, Any]:
        """The reference's signature: as `tokens`, and `mlm_logits` [B * P, V]."""
        outputs, table = self.tokens(**inputs), self.model.encoder.embeddings.word_embeddings
        logits = self.model.masked_lm(outputs["sequence_output"], table, mlm_positions)  # [B, P, V]
        return {**outputs, "mlm_logits": tf.reshape(logits, [-1, logits.shape[-1]])}

    def sop(self, **inputs: tf.Tensor) -> dict[str, Any]:
        """The reference's signature: as `tokens`, and `sop_log_probs` [B, 2]."""
        outputs = self.tokens(**inputs)
        return {**outputs, "sop_log_probs": tf.nn.log_softmax(self.model.sentence_order(outputs["pooled_output"]))}


def _make_encoder(
    functions: _Functions, vocabulary: pathlib.Path, tokenizer: AlbertTokenizer
) -> tuple[tf.train.Checkpoint, dict[str, Any]]:
    """The encoder's object and its signatures."""
    ids, model, parts = tf.TensorSpec([None, None], tf.int32), functions.model, functions.parts
    inputs, named = dict.fromkeys(_INPUTS, ids), dict.fromkeys(_OF_SIGNATURES, ids)
    module = _as_module(functions.traced_encode, [model.encoder], inputs)
    signatures = {"tokens": traced(functions.tokens, **named)}
    if "masked_lm" in parts:
        with_positions = {**inputs, "masked_lm_positions": ids}
        module.mlm = _as_module(
            tf.function(functions.fill_masks, autograph=False), [model.encoder, model.masked_lm], with_positions
        )
        signatures["mlm"] = traced(functions.mlm, **named, mlm_positions=ids)
    if isinstance(model, AlbertForPreTraining) and "sentence_order" in parts:
        module.sentence_order = [variable.value for variable in model.sentence_order.variables]
        signatures["sop"] = traced(functions.sop, **named)
    asset, do_lower_case = tf.saved_model.Asset(str(vocabulary)), tokenizer.options.do_lower_case
    # TF Hub's models have these attributes, named after the kind of vocabulary.
    setattr(module, "sp_model_file" if vocabulary.suffix == ".model" else "vocab_file", asset)
    module.do_lower_case = tf.Variable(do_lower_case, trainable=False)
    signatures["tokenization_info"] = traced(
        lambda: {"vocab_file": asset.asset_path, "do_lower_case": tf.constant(do_lower_case)}
    )
    return module, signatures


def _as_module(
    function: Any, layers: Iterable[keras.layers.Layer], inputs: dict[str, tf.TensorSpec]
) -> tf.train.Checkpoint:
    """A callable object with the attributes that fine-tuning with TF Hub needs."""
    module = tf.train.Checkpoint()
    module.variables = [variable.value for layer in layers for variable in layer.variables]
    module.trainable_variables = [variable.value for layer in layers for variable in layer.trainable_variables]
    module.regularization_losses = []
    module.__call__ = function
    for training in (False, True):
        function.get_concrete_function(inputs, training=training)
    return module


@in_full_float32()
def _largest_difference(folder: pathlib.Path, functions: _Functions, inputs: Mapping[str, np.ndarray]) -> float:
    """Maximum absolute difference between the SavedModels, and tokenizer and Keras model; `inputs` are of SAMPLES."""
    expected: list[Any] = [{name: inputs[ours] for name, ours in _INPUTS.items()}]
    computed: list[Any] = [tf.saved_model.load(str(folder / "preprocess"))(tf.constant(SAMPLES))]
    encoder = tf.saved_model.load(str(folder / "encoder"))
    expected.append(functions.encode(computed[0]))
    computed.append(encoder(computed[0]))
    if "masked_lm" in functions.parts:
        masked = {**computed[0], "masked_lm_positions": tf.zeros([len(SAMPLES), 1], tf.int32)}
        expected.append(functions.fill_masks(masked)["mlm_logits"])
        computed.append(encoder.mlm(masked)["mlm_logits"])
    pairs = zip(tf.nest.flatten(computed), tf.nest.flatten(expected), strict=True)
    return max(float(np.abs(one.numpy() - np.asarray(other)).max()) for one, other in pairs)
