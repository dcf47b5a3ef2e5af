"""How models train: the loss, `compile`, and the hooks by which Keras' `fit` and `evaluate` run our own step."""

import contextlib
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from albert_tf.keras_internals import DotNotTrackScope, model_supports_jit
from albert_tf.layers.kernels import for_layers, for_own_step, runs_on
from albert_tf.models.checked_model import CheckedModel
from albert_tf.models.compiled import CompiledLoss, ModelMetrics, on_logits, on_probabilities, without_accuracy
from albert_tf.models.distillation import Distillation, Imitation
from albert_tf.models.inputs import is_overridden
from albert_tf.models.layer_calls import check_scan, remat_span
from albert_tf.models.losses import WeightedMean


class TrainableModel(CheckedModel):
    """A model that minimises its `loss_terms`, or the loss given to `compile`.

    Attributes:
        imitated: how a student imitates the outputs of a teacher, by their names.
    """

    imitated: Mapping[str, Imitation] = {}

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._compiled_loss = None
        self.distillation: Distillation | None = None

    # === Loss and metrics ===

    def loss_terms(self, y, outputs, sample_weight=None) -> dict[str, WeightedMean]:
        """The terms whose sum `fit` minimises unless `compile` is given a loss; raises ValueError if there are none."""
        raise ValueError(
            f"{type(self).__name__} has no loss of its own; call compile(loss=...) or use a model for a task."
        )

    def reported_terms(self) -> tuple[str, ...]:
        """Names of all loss and metric terms. For names ending in `accuracy`, higher is better."""
        return ()

    def metric_terms(self, y, outputs) -> dict[str, WeightedMean]:
        """Metrics that `fit` and `evaluate` report besides losses; as in Keras, they ignore `sample_weight`."""
        return {}

    def term_source(self) -> Any:
        """The object whose `loss_terms` and `metric_terms` apply: the compiled loss, or else this model."""
        return self._compiled_loss or self

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The mean loss of these rows, plus losses from `add_loss` and regularizers.

        Our own step calls it only where a subclass overrides it, which then returns the mean over the rows that it
        gets, on several replicas too; other models' terms are divided after all replicas and microbatches.
        """
        terms = self.term_source().loss_terms(y, y_pred, sample_weight)
        loss = sum([term.mean() for term in terms.values()] + [ops.sum(loss) for loss in self.losses])
        # Keras' own step sums losses over replicas.
        return loss if self.has_own_step else loss / _replicas(self)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Logs of one batch. Our own step updates the terms itself, for all replicas together."""
        if not self.has_own_step:
            source = self.term_source()
            self.update_terms({**source.loss_terms(y, y_pred, sample_weight), **source.metric_terms(y, y_pred)})
        is_single = isinstance(y_pred, dict) and len(y_pred) == 1
        return super().compute_metrics(x, y, *y_pred.values() if is_single else (y_pred,), sample_weight)

    def update_terms(self, terms: dict[str, WeightedMean]) -> None:
        """Updates the reported running means with one batch."""
        means = self.reported_metrics.terms
        for name, term in terms.items():
            if name in means:
                means[name].update_state(term.mean(), sample_weight=term.weight + term.epsilon)

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        loss_weights=None,
        metrics=None,
        weighted_metrics=None,
        run_eagerly=False,
        steps_per_execution=1,
        jit_compile="auto",
        *args,
        gradient_accumulation_steps: int = 1,
        remat: str | int = "none",
        scan_layers: bool = False,
        teacher: "TrainableModel | None" = None,
        **kwargs,
    ):
        """As `keras.Model.compile`; without `loss` the model minimises the loss of its task.

        Losses are computed from logits: a loss given by name is configured for logits, and a loss configured for
        probabilities is an error. Metrics of Keras that want probabilities get them, unless configured for logits.
        Without `loss`, "accuracy" is that of the task, which ignores labels of -100.

        Args:
            gradient_accumulation_steps: int. Number of microbatches into which `fit` splits each device's rows of a
                batch. They are computed sequentially and followed by one update with the gradient of the full batch,
                which saves memory. It must divide the number of rows per device.
            jit_compile: as in Keras, under every strategy, but that "auto" means False on CPUs; TPUs always compile.
                On CPUs without XLA for the whole step, GELU and layer normalisation have their own gradients, and are
                small XLA programs where rows have one length. XLA has other random numbers, so dropout differs.
            remat: str or int. Activations that `fit` recomputes in the backward pass instead of keeping them: `"none"`,
                those of each layer call (`"block"`), or those of this many consecutive layer calls at once.
            scan_layers: bool. Whether the layers are a loop in the graph, so that it does not grow with depth and is
                traced and compiled in the time of one layer. For deep networks whose layers share all weights.
            teacher: a model of the same class whose outputs and hidden states are imitated in `fit`, beside the loss;
                see `models/distillation.py`. It is neither trained nor saved; `evaluate` gives the loss alone.

        Raises:
            ValueError: an argument is invalid, is not supported by the backend or the devices, or the optimizer
                accumulates gradients itself.
        """
        if keras.backend.backend() == "tensorflow" and (jit_compile == "auto" or runs_on("tpu")):
            jit_compile = runs_on("gpu") and not run_eagerly and model_supports_jit(self)
        self.gradient_accumulation_steps = count = self._checked_microbatches(gradient_accumulation_steps, optimizer)
        encoder: Any = getattr(self, "encoder", self)
        self.remat, encoder.remat_span = remat, remat_span(remat)
        encoder.scan_layers = bool(scan_layers)
        if scan_layers:
            check_scan(encoder)
        self.distillation = None if teacher is None else Distillation(self, teacher)
        losses = keras.tree.map_structure(on_logits, loss)
        if loss_weights is not None:
            raise ValueError(
                f"`loss_weights` must be None. Received: loss_weights={loss_weights!r}; to weigh the terms of the "
                "model's own loss, override `loss_terms` in a subclass."
            )
        if loss is None and "accuracy" in self.reported_terms():
            metrics = without_accuracy(metrics)
        with self.strategy_scope():
            metrics, weighted_metrics = (
                keras.tree.map_structure(lambda metric: on_probabilities(metric, self.imitated.values()), given)
                for given in (metrics, weighted_metrics)
            )
        self.loss = self.reported_metrics = self.step_monitor = None  # Keras keeps the first two of an earlier call
        options = (run_eagerly, steps_per_execution, jit_compile, *args)
        super().compile(optimizer, losses, None, metrics, weighted_metrics, *options, **kwargs)
        encoder.training_kernels = for_own_step() if self.has_own_step and not self.jit_compile else for_layers()
        self.discard_compiled_loss()
        self._compiled_loss = None
        if loss is not None:
            self._compiled_loss = CompiledLoss(losses, is_divided=count * _replicas(self) > 1)
        with self.strategy_scope(), DotNotTrackScope():
            self.reported_metrics = ModelMetrics(self.term_source().reported_terms(), self.reported_metrics)

    def strategy_scope(self) -> contextlib.AbstractContextManager:
        """The context in which variables are made for all devices that this model was made for."""
        strategy = getattr(self, "distribute_strategy", None)  # only TensorFlow's trainer has one
        return contextlib.nullcontext() if strategy is None else strategy.scope()

    def _checked_microbatches(self, count: int, optimizer) -> int:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be an integer of at least 1. Received: "
                f"gradient_accumulation_steps={count!r}."
            )
        if not self.has_own_step:
            if count > 1:
                raise ValueError(
                    "`gradient_accumulation_steps` must be 1 on backends other than TensorFlow, and if "
                    f"{type(self).__name__} overrides train_step or test_step. Received: "
                    f"gradient_accumulation_steps={count}; use the optimizer's argument of that name."
                )
        elif getattr(getattr(optimizer, "inner_optimizer", optimizer), "gradient_accumulation_steps", None):
            raise ValueError("The optimizer must not have `gradient_accumulation_steps`; pass it to compile instead.")
        return count

    def get_compile_config(self):
        config = super().get_compile_config()
        if not config or self.distillation is not None:  # a file holds no teacher, so compile it again to go on
            return {}
        encoder: Any = getattr(self, "encoder", self)
        switches = {"gradient_accumulation_steps": self.gradient_accumulation_steps, "remat": self.remat}
        return {**config, **switches, "scan_layers": encoder.scan_layers}

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    # === Training ===

    @property
    def has_own_step(self) -> bool:
        """Whether `fit` and `evaluate` run albert_tf's step: on TensorFlow, unless a subclass overrides it."""
        is_overridden_step = is_overridden(self, "train_step") or is_overridden(self, "test_step")
        return keras.backend.backend() == "tensorflow" and not is_overridden_step

    def data_of(self, batches):
        if keras.backend.backend() != "tensorflow":
            return super().data_of(batches)
        from albert_tf import training_step

        return training_step.dataset_of(batches)

    def callback_list(self, method: str, callbacks=None, verbose="auto", epochs=1, **_):
        if not self.has_own_step or isinstance(callbacks, keras.callbacks.CallbackList):
            return callbacks
        from albert_tf.training_step import QueuedCallbacks

        epochs = min(epochs, keras.config.max_epochs() or epochs)  # by which `fit` is limited for debugging
        bar = {"add_progbar": verbose != 0, "verbose": verbose, "epochs": epochs, "steps": None}
        return QueuedCallbacks(callbacks, model=self, add_history=method == "fit", **bar)

    def make_train_function(self, force=False):
        """Keras' hook for the step of `fit`; see `albert_tf.training_step`."""
        if not self.has_own_step:
            return super().make_train_function(force)
        from albert_tf import training_step

        training_step.check_rows(self.rows_of_last_batch, self.gradient_accumulation_steps)
        if self.train_function is None or force:
            self.train_function = training_step.make_train_function(self)
        else:
            training_step.warn_of_changed_variables(self)
        return self.train_function

    def make_test_function(self, force=False):
        """Keras' hook for the step of `evaluate`."""
        if not self.has_own_step:
            return super().make_test_function(force)
        if self.test_function is None or force:
            from albert_tf import training_step

            self.test_function = training_step.make_test_function(self)
        return self.test_function

    def make_predict_function(self, force=False):
        """Keras' hook for the step of `predict`."""
        if keras.backend.backend() != "tensorflow" or not self.jit_compile:
            return super().make_predict_function(force)
        if self.predict_function is None or force:
            from albert_tf import training_step

            self.predict_function = training_step.for_each_shape(self)
        return self.predict_function


def _replicas(model) -> int:
    return getattr(getattr(model, "distribute_strategy", None), "num_replicas_in_sync", 1)  # TensorFlow's trainer
