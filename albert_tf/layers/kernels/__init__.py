"""Kernels: the ways to compute the parts of a transformer block, and which of them is used.

Each is a class with the same methods; `plain.py` says what they compute. An encoder has kernels for training and for
inference, chosen by backend, processor and mode; layers that are called alone have those of the backend.

| backend    | processor          | training by our own step, without XLA | inference of `pipeline`, exports | others  |
|------------|--------------------|---------------------------------------|----------------------------------|---------|
| TensorFlow | a CPU              | `Programs`                            | `OneDnn`, where oneDNN is on     | `Plain` |
| TensorFlow | NVIDIA since A100  | `CuDnn`                               | `CuDnn`, in exports `Plain`      | `CuDnn` |
| TensorFlow | other accelerators | `Plain`                               | `Plain`                          | `Plain` |
| JAX        | a GPU              | `JaxGpu`                              | `JaxGpu`                         | `JaxGpu`|
| JAX, torch | others             | `Fused`                               | `Fused`                          | `Fused` |

`CuDnn` computes as `Plain` where XLA does not compile a graph. Exports that XLA compiles have `CuDnnInShapes`.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import keras

from albert_tf.layers.kernels.plain import Plain, mask_to_bias

__all__ = [
    "Plain",
    "fastest_for_inference",
    "for_layers",
    "for_own_step",
    "has_onednn",
    "in_full_float32",
    "inference_with",
    "lacks_flash_attention",
    "mask_to_bias",
    "runs_on",
    "runs_on_cpu",
]

# Kernels of an encoder change only while a graph of it is made.
_CHANGING = threading.RLock()


def for_layers() -> Plain:
    """Those of the backend, for every mode."""
    if keras.backend.backend() == "jax" and runs_on("gpu"):
        from albert_tf.layers.kernels.gpu import JaxGpu

        return JaxGpu()
    if keras.backend.backend() != "tensorflow":
        from albert_tf.layers.kernels.fused import Fused

        return Fused()
    if lacks_flash_attention():
        return Plain()
    from albert_tf.layers.kernels.tensorflow_gpu import CuDnn

    return CuDnn()


def for_own_step() -> Plain:
    """Those of a training step of this package that is not compiled with XLA, on TensorFlow."""
    if not runs_on_cpu():
        return for_layers()
    from albert_tf.layers.kernels.tensorflow_cpu import Programs

    return Programs()


def fastest_for_inference() -> Plain:
    """The fastest on this machine for graphs of inference, whose numbers differ from those of `Plain` by rounding."""
    if not has_onednn():
        return for_layers()
    from albert_tf.layers.kernels.tensorflow_cpu import OneDnn

    return OneDnn()


@contextlib.contextmanager
def inference_with(model: Any, kernels: Plain) -> Iterator[None]:
    """Calls of the model without training have these kernels in this context, in which a graph is made."""
    encoder = getattr(model, "encoder", model)
    with _CHANGING:
        before, encoder.inference_kernels = encoder.inference_kernels, kernels
        try:
            yield
        finally:
            encoder.inference_kernels = before


def has_onednn() -> bool:
    """Whether TensorFlow computes, on a CPU, with oneDNN."""
    if keras.backend.backend() != "tensorflow" or not runs_on_cpu():
        return False
    try:  # TensorFlow has no public name for it
        from tensorflow.python.util._pywrap_util_port import IsMklEnabled
    except ImportError:
        return False
    return bool(IsMklEnabled())


def lacks_flash_attention() -> str:
    """Why TensorFlow cannot use cuDNN's flash attention on this machine; "" where it can."""
    import tensorflow as tf

    details = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    capabilities = [gpu.get("compute_capability", (0, 0)) for gpu in details]
    if not capabilities:
        return "there is no GPU"
    if (lowest := min(capabilities)) < (8, 0):
        return f"cuDNN has it for NVIDIA GPUs of compute capability 8.0, and here one has {lowest[0]}.{lowest[1]}"
    return ""


@contextlib.contextmanager
def in_full_float32() -> Iterator[None]:
    """Within it, TensorFlow does not multiply float32 as TF32 on GPUs, which in other shapes differs by up to 1e-3."""
    import tensorflow as tf

    options = tf.config.experimental
    is_enabled = options.tensor_float_32_execution_enabled()
    options.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        options.enable_tensor_float_32_execution(is_enabled)


def runs_on_cpu() -> bool:
    """Whether there is no accelerator."""
    if keras.backend.backend() == "torch":  # whose devices Keras does not list
        return keras.ops.zeros(()).device.type == "cpu"
    return keras.distribution.list_devices()[0].startswith("cpu")


def runs_on(kind: str) -> bool:
    """Whether there is a "gpu" or a "tpu", not on PyTorch."""
    return keras.distribution.list_devices()[0].startswith(kind)
