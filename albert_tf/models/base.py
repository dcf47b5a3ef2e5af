"""What all models share: made from a config, trained by `fit` under any strategy, saved and loaded."""

import contextlib
import pathlib
from typing import Any, Self

import keras
from keras import ops
from keras.src.utils.tracking import DotNotTrackScope

from albert_tf import checkpoints
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.layers.base import not_quantizable
from albert_tf.models import variable_paths
from albert_tf.models.checked_model import CheckedModel
from albert_tf.models.compiled import CompiledLosses, ModelMetrics, on_logits
from albert_tf.models.inputs import is_overridden
from albert_tf.models.losses import WeightedMean
from albert_tf.models.remat import remat_span


class AlbertBase(CheckedModel):
    """Base class of the encoder and of every task model.

    A subclass makes its layers in `__init__`, ends it with `build_parts` on those that hold variables, and says in
    `loss_terms` what `fit` minimises. All shapes follow from the config, so a model has its variables from the start.
    Checkpoints know a variable by where it is in the model, such as `encoder/embeddings/word_embeddings`, in whatever
    name scope the model was made. Optimizer rules and logs go by Keras' `variable.path`, which has the scope before it.

    Args:
        config: AlbertConfig.
    """

    # The class name that Hugging Face gives to this model in `config.json`.
    architecture = ""
    # What the paths of its variables begin with in checkpoints.
    root = ""

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(config, AlbertConfig):
            raise ValueError(
                f"`config` must be an AlbertConfig. Received: config={config!r}; for saved weights call "
                f"{type(self).__name__}.from_pretrained(folder)."
            )
        self.config = config
        self._compiled_losses = None

    def build_parts(self, *parts: keras.layers.Layer) -> None:
        """Makes the variables of these layers; called at the end of `__init__`."""
        for part in parts:
            if not part.built:
                part.build(None)
        self.built = True

    # === Loss and metrics ===

    def loss_terms(self, y, outputs, sample_weight=None) -> dict[str, WeightedMean]:
        """What `fit` minimises where `compile` names no loss: the sum of these means."""
        raise ValueError(
            f"{type(self).__name__} must be given a loss to train. Received: none; call compile(loss=...) or use a "
            "model for a task."
        )

    def reported_terms(self) -> tuple[str, ...]:
        """Names of all loss and metric terms; those that end with `accuracy` are better when they are larger."""
        return ()

    def metric_terms(self, y, outputs) -> dict[str, WeightedMean]:
        """What `fit` and `evaluate` report beside the losses; as in Keras, `sample_weight` has no part in it."""
        return {}

    def term_source(self) -> Any:
        """Whose `loss_terms` and `metric_terms` count: the losses given to `compile`, or else the model's own."""
        return self._compiled_losses or self

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The mean loss of these rows, and what `add_loss` and regularizers add.

        A subclass may override it; on several replicas, too, it returns the mean of the rows that it gets.
        """
        terms = self.term_source().loss_terms(y, y_pred, sample_weight)
        loss = sum([term.factor * term.mean() for term in terms.values()] + [ops.sum(loss) for loss in self.losses])
        # Keras' own step adds up the losses of all replicas.
        return loss if self.has_own_step else loss / _replicas(self)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Logs of one batch; albert_tf's own step updates the terms itself, for all replicas together."""
        if not self.has_own_step:
            source = self.term_source()
            self.update_terms({**source.loss_terms(y, y_pred, sample_weight), **source.metric_terms(y, y_pred)})
        return super().compute_metrics(x, y, _only_output(y_pred), sample_weight)

    def update_terms(self, terms: dict[str, WeightedMean]) -> None:
        """Adds one batch to the running means that are reported."""
        metrics: Any = self._compile_metrics
        for name, term in terms.items():
            if name in metrics.terms:
                metrics.terms[name].update_state(term.mean(), sample_weight=term.weight + term.epsilon)

    def update_loss(self, loss, rows) -> None:
        """Adds one batch of so many rows to the running mean of the loss."""
        self._loss_tracker.update_state(loss, sample_weight=rows)

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        loss_weights=None,
        metrics=None,
        weighted_metrics=None,
        *args,
        gradient_accumulation_steps: int = 1,
        remat: str | int = "none",
        **kwargs,
    ):
        """As `keras.Model.compile`; without `loss` the model minimises the loss of its own task.

        Losses are taken from logits: by name they are what is meant, and a loss of probabilities is an error.

        Args:
            gradient_accumulation_steps: int. Into how many microbatches `fit` splits each device's rows of a batch.
                They are computed one after the other, with one update by the gradient of the full batch: less memory,
                the same numbers. It must divide the rows of each device.
            remat: str or int. Which activations `fit` computes again in the backward pass instead of keeping them:
                `"none"`, those of each layer call (`"block"`), or those of so many layer calls together.
        """
        if _replicas(self) > 1:
            kwargs = {**kwargs, "jit_compile": _without_xla(kwargs.get("jit_compile", "auto"))}
        count = self._checked_microbatches(gradient_accumulation_steps, optimizer)
        encoder: Any = getattr(self, "encoder", self)
        self.remat, encoder.remat_span = remat, remat_span(remat)
        losses = keras.tree.map_structure(on_logits, loss)
        self.loss = self._compile_metrics = None  # Keras keeps those of an earlier call
        super().compile(optimizer, losses, loss_weights, metrics, weighted_metrics, *args, **kwargs)
        self.gradient_accumulation_steps, self.step_monitor = count, None
        # Keras' own object for losses divides by the number of replicas; it stays unused.
        self._compile_loss = self._compiled_losses = None
        if loss is not None:
            self._compiled_losses = CompiledLosses(losses, loss_weights, is_divided=count * _replicas(self) > 1)
        with _scope_of(self), DotNotTrackScope():
            self._compile_metrics = ModelMetrics(self.term_source().reported_terms(), self._compile_metrics)

    def _checked_microbatches(self, count: int, optimizer) -> int:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be an integer of at least 1. Received: "
                f"gradient_accumulation_steps={count!r}; 1 does not split batches."
            )
        if not self.has_own_step:
            if count > 1:
                raise ValueError(
                    "`gradient_accumulation_steps` must be 1 where Keras' own step runs: on backends other than "
                    f"TensorFlow, and where {type(self).__name__} has a train_step or test_step of its own. Received: "
                    f"gradient_accumulation_steps={count}; give the optimizer Keras' argument of that name."
                )
        elif getattr(getattr(optimizer, "inner_optimizer", optimizer), "gradient_accumulation_steps", None):
            raise ValueError(
                "An optimizer must not accumulate gradients by itself here. Received: an optimizer with "
                "gradient_accumulation_steps; give that argument to compile."
            )
        return count

    def get_compile_config(self):
        """Keras' hook for a model that is saved with how it was compiled."""
        config = super().get_compile_config()
        if not config:  # a model that was never compiled
            return config
        return {**config, "gradient_accumulation_steps": self.gradient_accumulation_steps, "remat": self.remat}

    def compile_from_config(self, config):
        """Keras' hook for a loaded model: compiled as it was, with variables for the optimizer's state."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    # === Training ===

    @property
    def has_own_step(self) -> bool:
        """Whether `fit` and `evaluate` run albert_tf's step: on TensorFlow, unless a subclass brings a step itself."""
        is_overridden_step = is_overridden(self, "train_step") or is_overridden(self, "test_step")
        return keras.backend.backend() == "tensorflow" and not is_overridden_step

    @property
    def has_own_loss(self) -> bool:
        """Whether a subclass computes the loss in a `compute_loss` of its own."""
        return is_overridden(self, "compute_loss")

    def make_train_function(self, force=False):
        """Keras' hook for the step of `fit`; on TensorFlow the step that is right under every strategy."""
        if not self.has_own_step:
            return super().make_train_function(force)
        from albert_tf import training_step

        if self.train_function is None or force:
            self.train_function = training_step.make_train_function(self)
        else:
            training_step.warn_of_changed_variables(self)
        return self.train_function

    def make_test_function(self, force=False):
        """Keras' hook for the step of `evaluate`, the same way."""
        if not self.has_own_step:
            return super().make_test_function(force)
        if self.test_function is None or force:
            from albert_tf import training_step

            self.test_function = training_step.make_test_function(self)
        return self.test_function

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Keras' hook that builds compiled metrics; its own averages a batch over hosts, which fails."""
        metrics: Any = self._compile_metrics
        if iterator is not None and not metrics.built and self._distribute_strategy is not None:
            from albert_tf import training_step

            data_batch = training_step.first_local_batch(self, iterator)
        super()._maybe_symbolic_build(data_batch=data_batch)

    # === Saving and loading ===

    def get_config(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "name": self.name, "dtype": self.dtype_policy.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**{**config, "config": AlbertConfig(**config["config"])})

    def variables_by_path(self) -> dict[str, Any]:
        """Every weight under the path by which checkpoints know it; states of random generators are left out."""
        return variable_paths.variables_by_path(self, self.root)

    def arrays_by_path(self) -> dict[str, Any]:
        """The values of all weights as checkpoints hold them: NumPy arrays by path, LoRA's updates merged."""
        return variable_paths.arrays_by_path(self, self.root)

    def quantize(self, mode=None, config=None, **kwargs):
        """Not available: Keras would put integers where the blocks read their kernels.

        Raises:
            ValueError: always.
        """
        raise not_quantizable(f"quantize(mode={mode!r})")

    def head_settings(self) -> dict[str, Any]:
        """What `config.json` says about the head beyond the config, as constructor arguments."""
        return {}

    @classmethod
    def from_pretrained(cls, path: str | pathlib.Path, new_head: bool = False, **kwargs) -> Self:
        """Loads a checkpoint; what kind it is, is found out by looking.

        Loading is total or it raises. Heads of other tasks that the file holds are set aside as wholes.

        Args:
            path: a folder written by `save_pretrained` or by Hugging Face transformers; one with Google's
                `albert_config.json` and a checkpoint, or the prefix of such a checkpoint; an unpacked module of TF Hub;
                a preset folder of KerasHub; a `.keras` or `.weights.h5` file.
            new_head: bool. Whether a head that the file does not have, or has for other labels, starts fresh; otherwise
                that is an error.
            **kwargs: constructor arguments, such as `labels`. The same labels in another order than the file's are
                followed by the classifier's columns; labels that the file has no names for get their names here.

        Returns:
            The model with its weights.

        Raises:
            ValueError: where a tensor is left over, a variable is not filled, or shapes differ.
        """
        checkpoint = checkpoints.read(path)
        checkpoints.check_size(checkpoint)
        model = cls(checkpoint.config, **cls.arguments_from_file(dict(checkpoint.settings), kwargs))
        checkpoints.assign(model.matching(checkpoint, new_head), model.variables_by_path(), new_head=new_head)
        return model

    def matching(self, checkpoint: Checkpoint, new_head: bool) -> Checkpoint:
        """The checkpoint with a head that means what this model's does; without it where that is to start fresh."""
        del new_head
        return checkpoint

    @classmethod
    def arguments_from_file(cls, settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """Constructor arguments: those given, and for the rest what the checkpoint says."""
        return {**cls.settings_from_file(settings), **given}

    @classmethod
    def settings_from_file(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Constructor arguments that a checkpoint's own `config.json` gives."""
        return {}

    def save_pretrained(self, folder: str | pathlib.Path) -> None:
        """Writes `config.json` and `model.safetensors` in the layout of Hugging Face transformers.

        Warns:
            UserWarning: where transformers would compute something else with these weights, as with KerasHub's
                masked-LM head; `from_pretrained` reads back exactly what was saved.
        """
        settings = {"architectures": [self.architecture], **self.head_settings()}
        checkpoints.save_huggingface(folder, self.config, self.arrays_by_path(), settings)


def _only_output(outputs):
    return next(iter(outputs.values())) if isinstance(outputs, dict) and len(outputs) == 1 else outputs


def _replicas(model) -> int:
    strategy = getattr(model, "distribute_strategy", None)  # only TensorFlow's trainer has one
    return strategy.num_replicas_in_sync if strategy is not None else 1


def _without_xla(jit_compile):
    """Keras' own choice would be XLA on GPUs, which compiles a program for one device only."""
    if jit_compile not in ("auto", False):
        raise ValueError(
            f"`jit_compile` must be False or 'auto' where several devices share a batch. Received: {jit_compile!r}."
        )
    return False


def _scope_of(model):
    strategy = getattr(model, "distribute_strategy", None)
    return strategy.scope() if strategy is not None else contextlib.nullcontext()
