"""Forms of a transformer block that oneDNN computes fast, for inference with TensorFlow on CPUs.

- "normalization": TensorFlow runs Keras' layer normalisation as six operations that read and write whole tensors. Where
  oneDNN is on, its graph optimizer makes one operation of the batch normalisation of an image whose channels are the
  rows, times gamma plus beta. Float32 outputs differ by 5e-7. Where oneDNN is off, models take 9 % longer with it.
- "logits": those of attention stay in the compute data type, and are scaled and masked in the operation that computes
  them; oneDNN computes a softmax in float32 whatever the type of its input. Where it is off, sums would be computed in
  bfloat16.

On an Intel CPU with AMX, both together make base 1.3 times as fast in bfloat16, and 1.05 times in float32.
`add_and_normalize` in `base.py` and `_attend` in `attention.py` define what is computed.

Letters: R rows, D hidden.
"""

import contextlib
import contextvars
from collections.abc import Iterator

import keras

FORMS = ("normalization", "logits")
_USED: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("used", default=())


@contextlib.contextmanager
def fused_inference(*forms: str) -> Iterator[None]:
    """Graphs of inference that are built in this context have these forms."""
    token = _USED.set(forms)
    try:
        yield
    finally:
        _USED.reset(token)


def is_used(form: str) -> bool:
    """Whether a form is to be used."""
    return form in _USED.get()


def fast_forms() -> tuple[str, ...]:
    """The forms that are fast on this machine: all of them where TensorFlow computes on a CPU with oneDNN, or none."""
    if keras.backend.backend() != "tensorflow" or not runs_on_cpu():
        return ()
    try:  # TensorFlow has no public name for it
        from tensorflow.python.util._pywrap_util_port import IsMklEnabled
    except ImportError:
        return ()
    return FORMS if IsMklEnabled() else ()


def runs_on_cpu() -> bool:
    """Whether there is no accelerator."""
    return keras.distribution.list_devices()[0].startswith("cpu")


def normalize(x, layer_norm: keras.layers.LayerNormalization):
    """`layer_norm` of a tensor [R, D]."""
    import tensorflow as tf

    rows, none = tf.shape(x)[0], tf.zeros([0])
    image = tf.reshape(x, [1, rows, x.shape[-1], 1])
    scale, offset = tf.fill([rows], 1.0), tf.fill([rows], 0.0)
    normalized = tf.raw_ops.FusedBatchNormV3(
        x=image,
        scale=scale,
        offset=offset,
        mean=none,
        variance=none,
        epsilon=layer_norm.epsilon,
        data_format="NCHW",
        is_training=True,
    )[0]
    gamma, beta = (keras.ops.cast(weight, x.dtype) for weight in (layer_norm.gamma, layer_norm.beta))
    return tf.reshape(normalized, tf.shape(x)) * gamma + beta
