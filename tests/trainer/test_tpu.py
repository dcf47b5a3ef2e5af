"""TPUs, without one: XLA takes the step with fixed shapes, and input from disk runs no Python."""

import re
from functools import partial

import keras
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from albert_tf import AlbertForPreTraining
from albert_tf.data import PrepareOptions, prepare
from albert_tf.trainer import parse_recipe
from albert_tf.trainer.batches import heldout_batches, train_batches
from albert_tf.training_step.step import test_step as evaluation_step
from albert_tf.training_step.step import train_step
from tests.parameters import first_of
from tests.small_pipeline import LENGTH, small_recipe

# What a TPU's own compiler knows; anything else would be a call to code of the CPU that this was compiled on.
KNOWN_CALLS = {"Sharding", "TopK"}


@pytest.fixture(scope="module", params=["examples", "documents"])
def recipe(request, pipeline, tmp_path_factory):
    values = small_recipe(pipeline)
    if request.param == "documents":
        folder = tmp_path_factory.mktemp("documents") / "documents"
        prepare(
            PrepareOptions(
                inputs=(pipeline.text,),
                output_dir=folder,
                tokenizer=pipeline.vocabulary,
                split_sentences=True,
                max_seq_length=LENGTH,
                format="documents",
            )
        )
        values["data"]["documents"] = str(folder)
        del values["data"]["examples"]
    return parse_recipe(values)


def operations(dataset: tf.data.Dataset) -> set[str]:
    """Names of all operations of a pipeline, those inside its functions too."""
    graph = graph_pb2.GraphDef.FromString(tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor).numpy())
    return {
        node.op for part in (graph, *graph.library.function) for node in getattr(part, "node", None) or part.node_def
    }


def test_shapes_are_fixed_and_python_runs_only_where_examples_are_made(recipe, pipeline):
    train, heldout = train_batches(recipe), heldout_batches(recipe)
    made = {"PyFunc"} if recipe.data.documents else set()  # by NumPy, on the host of the TPU
    for dataset, expected in ((train, made), (heldout, set())):
        assert {name for name in operations(dataset) if "Py" in name or "Numpy" in name} == expected
    assert all(spec.shape.is_fully_defined() for spec in tf.nest.flatten(train.element_spec))


def test_a_python_function_would_show():
    dataset = tf.data.Dataset.range(3).map(lambda x: tf.py_function(abs, [x], tf.int64))
    assert "EagerPyFunc" in operations(dataset)


def hlo(step, batch) -> str:
    compiled = tf.function(lambda *data: step(data), jit_compile=True)
    return compiled.experimental_get_compiler_ir(*batch)(stage="hlo")


def faults(text: str) -> list[str]:
    """What in a program a TPU cannot run."""
    calls = set(re.findall(r'custom_call_target="([^"]+)"', text)) - KNOWN_CALLS
    patterns = {
        "a shape that is not fixed": r"\[[^\]]*<=",
        "a size asked for at run time": r"(?:get|set)-dimension-size\(",
        "a way to the host": r"\b(?:infeed|outfeed|send|recv)\(",
        "float64": r"\bf64\[",
    }
    return [f"calls {sorted(calls)}"] * bool(calls) + [what for what, how in patterns.items() if re.search(how, text)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("policy", "changes"),
    first_of([("float32", {}), ("mixed_bfloat16", {"gradient_accumulation_steps": 2, "remat": "block"})]),
)
def test_the_step_compiles_with_fixed_shapes_and_never_leaves_the_device(pipeline, policy, changes):
    recipe = parse_recipe(small_recipe(pipeline))
    batch = next(iter(train_batches(recipe)))
    keras.config.set_dtype_policy(policy)
    try:
        model = AlbertForPreTraining(recipe.config)
        model.compile(recipe.optimizer.build(60, 16), **changes)
        model.make_train_function()
        assert faults(hlo(partial(train_step, model, model.trainable_variables), batch)) == []
        assert faults(hlo(partial(evaluation_step, model), batch)) == []
    finally:
        keras.config.set_dtype_policy("float32")


def test_what_a_tpu_cannot_run_would_show():
    found = hlo(lambda data: tf.boolean_mask(data[0], data[0] > 0), (tf.range(4.0),))
    assert "a shape that is not fixed" in faults(found)
    assert "float64" in faults(hlo(lambda data: tf.cast(data[0], tf.float64) + 1, (tf.range(4.0),)))
