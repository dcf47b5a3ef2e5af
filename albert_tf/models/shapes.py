"""The output shapes of all layers of a model, for `summary`."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import keras

from albert_tf.keras_internals import layers_within
from albert_tf.models.inputs import Fields

_Shape = tuple[int | None, ...]


def symbolic_inputs(fields: Fields) -> dict[str, Any]:
    """Symbolic tensors for the inputs that are not optional, without lengths."""
    needed = {name: field for name, field in fields.items() if not field.optional}
    return {
        name: keras.Input((None,) * (len(field.axes) - 1), dtype="int32", name=name) for name, field in needed.items()
    }


def output_shapes(model: keras.Model, inputs: dict[str, Any]) -> dict[keras.layers.Layer, Any]:
    """The shapes of the outputs of each layer that a call of the model calls; nothing is computed.

    Args:
        model: a model without symbolic tensors of its own.
        inputs: its inputs, symbolic.

    Returns:
        For each layer one shape, or several by the names of outputs, or a list of them.
    """
    seen: dict[keras.layers.Layer, list[Any]] = {}
    with contextlib.ExitStack() as stack:
        for layer in layers_within(model):
            name = "apply" if hasattr(layer, "apply") else "call"  # by which an encoder calls its blocks
            stack.callback(delattr, layer, name)
            shapes = seen.setdefault(layer, [])
            setattr(layer, name, _recorded(getattr(layer, name), shapes, has_scores=name == "apply"))
        keras.Operation.compute_output_spec(model, inputs)
    return {layer: functools.reduce(_common, calls) for layer, calls in seen.items() if calls}


def _recorded(call: Callable[..., Any], calls: list[Any], has_scores: bool) -> Callable[..., Any]:
    @functools.wraps(call)
    def recorded(*args, **kwargs):
        outputs = call(*args, **kwargs)
        calls.append(_shapes(outputs[0] if has_scores and isinstance(outputs, tuple) else outputs))
        return outputs

    return recorded


def _shapes(outputs: Any) -> Any:
    if isinstance(outputs, dict):
        return {name: _shapes(value) for name, value in outputs.items()}
    if isinstance(outputs, tuple | list):
        shapes = [_shapes(value) for value in outputs if value is not None]
        return shapes[0] if len(shapes) == 1 else shapes
    return tuple(size if isinstance(size, int) else None for size in outputs.shape)  # JAX has symbols for lengths


def _common(one: Any, other: Any) -> Any:
    """One shape for several calls; an axis whose length differs has none, as PyTorch tries lengths of its own."""
    if isinstance(one, dict):
        return {name: _common(value, other[name]) for name, value in one.items()}
    if isinstance(one, list):
        return [_common(a, b) for a, b in zip(one, other)]
    return tuple(a if a == b else None for a, b in zip(one, other))
