"""Everything of Keras that is used here without being public; no other module may, see `tests/test_architecture.py`.

Each part says what it is for. `make test-keras` tries them on the oldest Keras that `pyproject.toml` allows, on the
current one and on the next: 3.14.0, 3.15.1 and keras-nightly 3.16.0.dev2026102704 were tried.
"""

from typing import Any

import keras
from keras.src.losses.losses import LossFunctionWrapper
from keras.src.trainers.compile_utils import CompileMetrics
from keras.src.trainers.trainer import model_supports_jit
from keras.src.utils.tracking import DotNotTrackScope

__all__ = [
    "CompileMetrics",  # callbacks ask only this class for the direction in which a metric is better
    "DotNotTrackScope",  # what is made and set within it is not listed among the metrics of a model a second time
    "LossFunctionWrapper",  # makes a Loss of a function as `compile` does, with labels [B, 1] for outputs [B] too
    "OpenModel",
    "direction_of",
    "for_summed_gradients",
    "index_of",
    "is_evaluated_by_fit",
    "layers_within",
    "model_supports_jit",  # whether XLA can compile a model, as `jit_compile="auto"` asks
    "moving_averages",
    "reshape_variable",
    "set_direction",
    "show_in_summary",
    "track",
]


class OpenModel(keras.Model):
    """A `keras.Model` that names what a step and metrics of one's own need of Keras' trainer.

    Attributes:
        num_batches: of the data of `fit` or `evaluate`, once these have opened them; None if unknown.
        rows_of_last_batch: the number of rows that do not fill the last batch; 0 if there are none, or it is unknown.
    """

    num_batches: int | None = None
    rows_of_last_batch = 0

    @property
    def reported_metrics(self) -> Any:
        """All that `fit` reports besides the loss, a CompileMetrics; set by `keras.Model.compile`."""
        return self._compile_metrics

    @reported_metrics.setter
    def reported_metrics(self, metrics: CompileMetrics | None):
        self._compile_metrics = metrics

    def update_loss(self, loss, rows) -> None:
        """Updates the running mean of the loss with one batch."""
        self._loss_tracker.update_state(loss, sample_weight=rows)

    def discard_compiled_loss(self) -> None:
        """Keeps Keras from computing the compiled loss, which it would divide by the number of replicas."""
        self._compile_loss = None

    def loss_of_batch(self, x, y, y_pred, sample_weight, training: bool):
        """`compute_loss`, also of a subclass whose method does not take `training`."""
        return self._compute_loss(x, y, y_pred, sample_weight, training=training)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Keras' hook that builds compiled metrics; Keras would average a batch over hosts, which fails."""
        arrays = None if getattr(iterator, "steps_per_epoch", None) else getattr(iterator, "data_adapter", None)
        self.num_batches = getattr(iterator, "num_batches", None)
        self.rows_of_last_batch = getattr(arrays, "_partial_batch_size", None) or 0
        if iterator is not None and not self.reported_metrics.built and self._distribute_strategy is not None:
            of_replicas = self._distribute_strategy.experimental_local_results
            batch = next(next(batches) for _, _, batches in iterator)
            data_batch = keras.tree.map_structure(lambda value: of_replicas(value)[0], batch)
        super()._maybe_symbolic_build(data_batch=data_batch)


def is_evaluated_by_fit(arguments: dict[str, Any]) -> bool:
    """Whether these keyword arguments of `evaluate` are those of `fit`, which has checked the data already."""
    return bool(arguments.get("_use_cached_eval_dataset"))


def set_direction(metric: keras.metrics.Metric, direction: str) -> None:
    """Tells callbacks with mode="auto" which way a metric is better, "up" or "down"."""
    metric._direction = direction


def direction_of(metric: keras.metrics.Metric) -> str | None:
    """Which way a metric is better, "up" or "down"; None if it does not say."""
    return getattr(metric, "_direction", None)


def layers_within(layer: keras.layers.Layer, recursive: bool = True) -> list[keras.layers.Layer]:
    """The layers in a layer, without itself; Keras lists them publicly for models alone."""
    return layer._flatten_layers(include_self=False, recursive=recursive)


def show_in_summary(model: keras.Model) -> None:
    """Lets `summary` ask a model within a model for its `compute_output_shape`; `build` would also lock its layers."""
    model._build_shapes_dict = {"input_shape": (None, None)}


def track(owner: keras.layers.Layer, layer: keras.layers.Layer) -> None:
    """Puts a layer into the owner's `tf.train.Checkpoint` under its name; it would overlook those in nested lists."""
    if keras.backend.backend() == "tensorflow":
        owner._track_trackable(layer, layer.name)


def reshape_variable(owner: keras.layers.Layer, variable: Any, value: Any) -> None:
    """Gives a layer's variable a value of another shape; it keeps its place among the weights."""
    owner._post_untrack_variable(variable)
    variable._shape = tuple(value.shape)
    variable._initialize(keras.ops.convert_to_tensor(value, dtype=variable.dtype))
    owner._post_track_variable(variable)


# === Optimizers ===


def index_of(optimizer: keras.optimizers.Optimizer, variable) -> int:
    """The index of a variable among those that the optimizer was built with."""
    return optimizer._get_variable_index(variable)


def moving_averages(optimizer: keras.optimizers.Optimizer) -> list[Any]:
    """The averages of an optimizer with `use_ema`, in the order of its variables."""
    return optimizer._model_variables_moving_average


def for_summed_gradients(optimizer: Any, one_copy: bool) -> Any:
    """A view of an optimizer, with the same attributes, that takes its gradients as summed over replicas.

    Keras clips gradients and then sums them.

    Args:
        optimizer: a Keras optimizer on TensorFlow.
        one_copy: whether to update the copies of one device, for which a program is traced, not those of all.
    """
    from keras.src.backend.tensorflow.optimizer import TFOptimizer
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    kind: Any = type(optimizer)
    methods: dict[str, Any] = {"_all_reduce_sum_gradients": lambda self, pairs: pairs}
    if one_copy:
        names = ("_apply_weight_decay", "_backend_update_step", "_overwrite_model_variables_with_average_value")
        ours = [name for name in names if getattr(kind, name) is getattr(TFOptimizer, name)]  # not of a subclass
        methods |= {name: getattr(BaseOptimizer, name) for name in ours}
    if hasattr(optimizer, "_tf_apply"):  # a loss scale
        inner = for_summed_gradients(optimizer.inner_optimizer, one_copy)
        methods["inner_optimizer"] = property(lambda self: inner)
        if one_copy:
            methods["_tf_apply"] = kind._common_apply
    view = object.__new__(type(kind.__name__, (kind,), methods))
    object.__setattr__(view, "__dict__", vars(optimizer))
    return view
