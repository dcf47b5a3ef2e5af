"""The loss and metrics given to `compile`.

Letters: B batch.
"""

import inspect
import re
from collections.abc import Collection, Sequence
from typing import Any

import keras
from keras import ops, tree

from albert_tf.keras_internals import CompileMetrics, LossFunctionWrapper, direction_of, set_direction
from albert_tf.models.losses import WeightedMean, as_factors, weights_for

# What makes probabilities of logits, by how they are imitated.
_ACTIVATIONS = {"classes": "softmax", "classes_of_tokens": "softmax", "decisions": "sigmoid"}


def on_logits(loss: Any) -> Any:
    """Configures a loss for logits, which all models return.

    Given by name, as a class or as a Keras function, a loss would otherwise silently interpret logits as probabilities.
    """
    is_named = isinstance(loss, str)
    if is_named:
        loss = keras.losses.get(loss)
    if inspect.isfunction(loss):
        loss = _class_of(loss, keras.losses)
    if is_named and option_of(loss, "from_logits") is False:
        loss = type(loss)
    if isinstance(loss, type):
        return loss(from_logits=True) if "from_logits" in inspect.signature(loss).parameters else loss()
    if option_of(loss, "from_logits") is False:
        raise ValueError(
            f"`loss` must take logits. Received: loss={type(loss).__name__}(from_logits=False); pass from_logits=True."
        )
    return loss


def option_of(loss: Any, name: str) -> Any:
    """An option of a loss, None if it has none; some versions of Keras keep it only in the loss' config."""
    if isinstance(loss, keras.losses.Loss) and not hasattr(loss, name):
        return loss.get_config().get(name)
    return getattr(loss, name, None)


def without_accuracy(metrics: Any) -> Any:
    """The `metrics` of `compile` without the name "accuracy", for which Keras would count ignored labels as wrong."""
    if isinstance(metrics, dict):
        return {name: without_accuracy(metric) for name, metric in metrics.items()}
    if isinstance(metrics, (list, tuple)):
        return [without_accuracy(metric) for metric in metrics if metric != "accuracy"]
    return [] if metrics == "accuracy" else metrics


@keras.saving.register_keras_serializable("albert_tf")
class OnProbabilities(keras.metrics.Metric):
    """A metric of probabilities for models, which return logits.

    Args:
        metric: the metric.
        activation: str. What makes probabilities of logits, `"softmax"` or `"sigmoid"`.
        name: str.
    """

    def __init__(self, metric: keras.metrics.Metric, activation: str, name: str):
        super().__init__(name=name)
        self.metric, self.activation = metric, activation
        if direction := direction_of(metric):
            set_direction(self, direction)

    def update_state(self, y_true, y_pred, sample_weight=None):
        probabilities = keras.activations.get(self.activation)(ops.cast(y_pred, "float32"))
        return self.metric.update_state(y_true, probabilities, sample_weight)

    def result(self):
        return self.metric.result()

    def reset_state(self):
        self.metric.reset_state()

    def get_config(self):
        metric = keras.saving.serialize_keras_object(self.metric)
        return {"metric": metric, "activation": self.activation, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "metric": keras.saving.deserialize_keras_object(config["metric"])})


def on_probabilities(metric: Any, kinds: Collection[str]) -> Any:
    """Gives probabilities to a metric of Keras that wants them, such as AUC; it would take logits for them in silence.

    One configured for logits stays as it is. `kinds` are what the model's logits are, the values of its `imitated`.
    """
    activations = {_ACTIVATIONS.get(kind) for kind in kinds}
    activation = activations.pop() if len(activations) == 1 else None
    if activation is None or metric is None:
        return metric
    known, name = metric, metric if isinstance(metric, str) else None
    if metric in ("accuracy", "acc"):
        if activation == "softmax":
            return metric
        known = keras.metrics.BinaryAccuracy  # Keras would compare the largest of several labels
    elif inspect.isfunction(metric):
        known = _class_of(metric, keras.metrics)
    known = keras.metrics.get(known)
    return OnProbabilities(known, activation, name or known.name) if _wants_probabilities(known) else metric


def _class_of(function: Any, module: Any) -> Any:
    """The class among Keras' losses or metrics that a function of Keras is of; the function where there is none."""
    classes = {kind.__name__: kind for kind in vars(module).values() if inspect.isclass(kind)}
    snake_case = {re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower(): kind for name, kind in classes.items()}
    return snake_case.get(function.__name__, function) if function.__module__.startswith("keras.") else function


def _wants_probabilities(metric: Any) -> bool:
    if not type(metric).__module__.startswith("keras."):  # a user's own
        return False
    config = metric.get_config()
    if "from_logits" in config:
        return not config["from_logits"]
    if "num_thresholds" in config or isinstance(metric, keras.metrics.KLDivergence):
        return True
    if config.get("threshold", 0.5) is None:  # the largest counts
        return False
    thresholds = tree.flatten([config[name] for name in ("threshold", "thresholds") if name in config])
    return bool(thresholds) and all(value is None or 0 < value < 1 for value in thresholds)


class CompiledLoss:
    """The loss given to `compile` as a weighted mean; it replaces the loss of the model's task.

    Args:
        loss: of the only output, or a dict of one by the name of its output; see `on_logits`.
        is_divided: bool. Whether batches are divided among replicas or microbatches, which requires losses per row.
    """

    def __init__(self, loss: Any, is_divided: bool):
        self._loss, self._is_divided = loss, is_divided

    def reported_terms(self) -> tuple[str, ...]:
        """Nothing: it is reported as `loss`."""
        return ()

    def loss_terms(self, y, outputs, sample_weight=None) -> dict[str, WeightedMean]:
        """The loss of the output that has one."""
        if not isinstance(outputs, dict):  # of a subclass
            outputs = {f"output_{index}": output for index, output in enumerate(tree.flatten(outputs))}
        losses = self._loss if isinstance(self._loss, dict) else dict.fromkeys(outputs, self._loss)
        if isinstance(self._loss, list | tuple) or len(losses) != 1 or not losses.keys() <= outputs.keys():
            raise ValueError(
                f"`loss` must be one, where a model has several outputs in a dict by the name of its output. Received: "
                f"{self._loss} for the outputs {sorted(outputs)}; for several losses override `loss_terms`."
            )
        ((name, loss),) = losses.items()
        y = y[name] if isinstance(y, dict) else tree.flatten(y)[0]
        return {name: self._term(loss, y, outputs[name], weights_for(name, sample_weight))}

    def metric_terms(self, y, outputs) -> dict[str, WeightedMean]:
        """Nothing, because with a compiled loss only compiled metrics are reported."""
        return {}

    def _term(self, loss, y_true, y_pred, sample_weight) -> WeightedMean:
        if not isinstance(loss, keras.losses.Loss):
            loss = LossFunctionWrapper(loss, name=getattr(loss, "__name__", "loss"))
        values = self._values(loss, y_true, y_pred)  # [B, ...]
        if sample_weight is not None:
            values = values * as_factors(sample_weight, values)
        if loss.reduction == "sum":
            return WeightedMean(ops.sum(values), ops.zeros(()), 1.0)
        if loss.reduction == "mean_with_sample_weight" and sample_weight is not None:
            return WeightedMean(ops.sum(values), ops.sum(ops.cast(sample_weight, "float32")))
        return WeightedMean(ops.sum(values), ops.cast(ops.size(values), "float32"))

    def _values(self, loss: keras.losses.Loss, y_true, y_pred):
        """The loss per row, not reduced: Keras would divide by the rows of this replica and by the number of replicas.

        A scalar (a mean or a sum) is broadcast, which is only right for a full batch.
        """
        y_true, y_pred = (ops.convert_to_tensor(array, dtype=loss.dtype) for array in (y_true, y_pred))
        values = ops.cast(loss.call(y_true, y_pred), "float32")
        if len(values.shape):
            return values
        if self._is_divided or loss.reduction == "sum":
            raise ValueError(
                "A loss must return one value per row with several devices or `gradient_accumulation_steps`. "
                f"Received: loss {loss.name!r}, which returns a scalar; remove the mean over rows."
            )
        return ops.broadcast_to(values, ops.shape(y_pred)[:1])


class ModelMetrics(CompileMetrics):
    """All metrics that `fit` and `evaluate` report besides the loss: means of terms, and compiled metrics.

    Args:
        terms: names of loss and metric terms. Their means are updated by the step, for all replicas together.
        metrics: CompileMetrics, or None. The `metrics` and `weighted_metrics` given to `compile`.
    """

    def __init__(self, terms: Sequence[str], metrics: CompileMetrics | None):
        super().__init__(None, None)
        self.compiled, self.terms = metrics, {name: _mean_of_term(name) for name in terms}

    @property
    def built(self) -> bool:
        return self.compiled is None or self.compiled.built

    @built.setter
    def built(self, value):
        pass  # Keras' constructor sets it

    @property
    def metrics(self):
        compiled = self.compiled.metrics if self.compiled is not None else []
        names = {metric.name for metric in compiled}
        return [*(mean for name, mean in self.terms.items() if name not in names), *compiled]

    @property
    def variables(self):
        return [variable for metric in self.metrics for variable in metric.variables]

    def update_state(self, y_true, y_pred, sample_weight=None):
        if self.compiled is not None:
            self.compiled.update_state(y_true, y_pred, sample_weight)

    def reset_state(self):
        for metric in self.metrics:
            metric.reset_state()

    def result(self):
        means = {name: mean.result() for name, mean in self.terms.items()}
        return {**means, **(self.compiled.result() if self.compiled is not None else {})}


def _mean_of_term(name: str) -> keras.metrics.Mean:
    mean = keras.metrics.Mean(name=name)
    set_direction(mean, "up" if name.endswith("accuracy") else "down")
    return mean
