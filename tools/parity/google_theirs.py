"""Runs Google's own graph with the checkpoints that `google_ours.py` wrote, and compares what the two give.

    .venv-parity-google/bin/python tools/parity/google_theirs.py runs/parity/google

Runs in an environment of its own, without albert_tf: Google's code as the package albert-tensorflow 1.1 has it, on
TensorFlow 2.15.1 as TensorFlow 1, with a stand-in for the one function of `tensorflow.contrib` that the graph uses.
The exit status is 1 where a difference is above 1e-5, or where a trainable variable is not in its file.

Letters: B batch, L sequence, V vocabulary.
"""

import pathlib
import sys
import types
import warnings

import numpy as np
import tensorflow

tf = tensorflow.compat.v1
TOLERANCE = 1e-5
# The reference's graph has a pooler under every head; ours has none under those that do not use it.
UNUSED = {"squad_v1": {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}}
UNUSED["squad_v2"] = UNUSED["squad_v1"]


def layer_norm(inputs, begin_norm_axis=-1, begin_params_axis=-1, scope=None):
    """As `tensorflow.contrib.layers.layer_norm` over the last axis, with its epsilon and its names."""
    if (begin_norm_axis, begin_params_axis) != (-1, -1):
        raise NotImplementedError(f"axes {begin_norm_axis}, {begin_params_axis}")
    with tf.variable_scope(scope, "LayerNorm", [inputs]):
        width = inputs.shape.as_list()[-1:]
        beta = tf.get_variable("beta", width, initializer=tf.zeros_initializer())
        gamma = tf.get_variable("gamma", width, initializer=tf.ones_initializer())
        mean, variance = tf.nn.moments(inputs, [-1], keepdims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


def import_reference() -> types.SimpleNamespace:
    """Google's modules, which see TensorFlow 1."""
    contrib = types.ModuleType("tensorflow.contrib")
    for name in ("cluster_resolver", "data", "metrics", "tpu"):
        setattr(contrib, name, types.SimpleNamespace())
    contrib.layers = types.SimpleNamespace(layer_norm=layer_norm)
    sys.modules.update({"tensorflow": tf, "tensorflow.contrib": contrib})
    try:
        from albert import classifier_utils, modeling, run_pretraining, squad_utils
    finally:
        sys.modules["tensorflow"] = tensorflow
    return types.SimpleNamespace(
        classifier_utils=classifier_utils, modeling=modeling, run_pretraining=run_pretraining, squad_utils=squad_utils
    )


# === Their outputs by our names ===


def pretraining(reference, config, features) -> dict:
    model = reference.modeling.AlbertModel(
        config, False, features["input_ids"], features["attention_mask"], features["token_type_ids"]
    )
    masked_lm_loss, _, masked_lm = reference.run_pretraining.get_masked_lm_output(
        config,
        model.get_sequence_output(),
        model.get_embedding_table(),
        features["masked_lm_positions"],
        features["masked_lm_ids"],
        features["masked_lm_weights"],
    )
    order_loss, _, order = reference.run_pretraining.get_sentence_order_output(
        config, model.get_pooled_output(), features["sentence_order_labels"]
    )
    return {
        "sequence_output": model.get_sequence_output(),
        "pooled_output": model.get_pooled_output(),
        # What these functions return are log probabilities; logits went into them.
        "masked_lm_logits": masked_lm.op.inputs[0],  # [B P, V]
        "sentence_order_logits": order.op.inputs[0],
        "masked_lm_loss": masked_lm_loss,
        "sentence_order_loss": order_loss,
    }


def classifier(reference, config, features, task="mnli", num_labels=3, loss_name="cross_entropy") -> dict:
    loss, _, _, logits, _ = reference.classifier_utils.create_model(
        config, False, *_three(features), features["labels"], num_labels, False, task
    )
    return {"logits": logits, loss_name: loss}


def regression(reference, config, features) -> dict:
    return classifier(reference, config, features, "sts-b", 1, "mean_squared_error")


def squad_v1(reference, config, features) -> dict:
    start, end = reference.squad_utils.create_v1_model(config, False, *_three(features), False)
    return {"start_logits": start, "end_logits": end}


def squad_v2(reference, config, features) -> dict:
    length = features["input_ids"].shape.as_list()[1]
    return reference.squad_utils.create_v2_model(config, False, *_three(features), False, features, length, 3, 2, 0.1)


def _three(features) -> list:
    return [features[name] for name in ("input_ids", "attention_mask", "token_type_ids")]


# === Comparison ===


def compare(reference, folder: pathlib.Path) -> tuple[dict, list]:
    """The largest difference of each output, and the names of variables that file and graph do not share."""
    name, arrays, prefix = folder.name, dict(np.load(folder / "arrays.npz")), str(folder / "model.ckpt-best")
    config = reference.modeling.AlbertConfig.from_json_file(str(folder / "albert_config.json"))
    with tf.Graph().as_default(), tf.Session() as session:
        features = {key[6:]: tf.constant(array) for key, array in arrays.items() if key.startswith("input:")}
        outputs = globals()[name](reference, config, features)
        variables = {variable.op.name: variable for variable in tf.trainable_variables()}
        absent = set(variables) - {found for found, _ in tf.train.list_variables(prefix)}
        unused = {found for found, _ in tf.train.list_variables(prefix)} - set(variables)
        session.run(tf.global_variables_initializer())
        tf.train.Saver({key: variables[key] for key in variables if key not in absent}).restore(session, prefix)
        theirs = session.run(outputs)
    ours = {key[7:]: array for key, array in arrays.items() if key.startswith("output:")}
    differences = {key: np.max(np.abs(array - ours[key].reshape(array.shape))) for key, array in theirs.items()}
    return differences, sorted((absent - UNUSED.get(name, set())) | unused)


def main(root: pathlib.Path) -> int:
    """Prints one line for each output and returns the exit status."""
    warnings.simplefilter("ignore")  # nearly every function of TensorFlow 1 is deprecated
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    reference, failed = import_reference(), False
    print(f"Google's code on TensorFlow {tensorflow.__version__}: largest absolute differences, allowed {TOLERANCE}")
    for folder in sorted(path.parent for path in root.glob("*/*/arrays.npz")):
        differences, unshared = compare(reference, folder)
        for output, difference in differences.items():
            failed |= not difference <= TOLERANCE  # NaN is no agreement
            print(f"{folder.parent.name:24}{folder.name:14}{output:24}{difference:.1e}")
        if unshared:
            failed = True
            print(f"{folder.parent.name:24}{folder.name:14}not in both file and graph: {', '.join(unshared)}")
    print("FAILED" if failed else "all within what is allowed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
