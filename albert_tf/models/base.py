"""What all models of this room share: made from a config, trained by `fit` on any strategy, saved and loaded whole."""

import contextlib
import pathlib
from typing import Any, Self

import keras

from albert_tf import checkpoints
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.layers.base import not_quantizable
from albert_tf.models import variable_paths
from albert_tf.models.checked_model import CheckedModel
from albert_tf.models.losses import Term, on_logits
from albert_tf.models.remat import applications_at_once


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

    def build_parts(self, *parts: keras.layers.Layer) -> None:
        """Makes the variables of these layers; called at the end of `__init__`."""
        for part in parts:
            if not part.built:
                part.build(None)
        self.built = True

    # === Loss and metrics ===

    def loss_terms(self, y, outputs, sample_weight=None) -> dict[str, Term]:
        """What `fit` minimises where `compile` names no loss: the sum of the means of these terms."""
        raise ValueError(
            f"{type(self).__name__} must be given a loss to train. Received: none; call compile(loss=...) or use a "
            "model for a task."
        )

    def reported_terms(self) -> tuple[str, ...]:
        """Names of all loss and metric terms."""
        return ()

    def metric_terms(self, y, outputs, sample_weight=None) -> dict[str, Term]:
        """What `fit` and `evaluate` report beside the losses where `compile` names no loss."""
        return {}

    @property
    def uses_compiled_loss(self) -> bool:
        """Whether `compile(loss=...)` replaces the model's own loss."""
        return getattr(self, "_compile_loss", None) is not None

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of one batch: the compiled one if there is one, else the sum of the model's own terms."""
        if self.uses_compiled_loss:
            return super().compute_loss(x, y, _only_output(y_pred), sample_weight, training=training)
        return sum(term.mean() for term in self.loss_terms(y, y_pred, sample_weight).values())

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Logs of one batch; on TensorFlow our own step has added the terms up before, over all replicas."""
        if keras.backend.backend() != "tensorflow" and not self.uses_compiled_loss:
            losses = self.loss_terms(y, y_pred, sample_weight)
            for name, term in {**losses, **self.metric_terms(y, y_pred, sample_weight)}.items():
                self.update_term(name, term)
        return super().compute_metrics(x, y, _only_output(y_pred), sample_weight)

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        *args,
        gradient_accumulation_steps: int = 1,
        remat: str | int = "none",
        **kwargs,
    ):
        """As `keras.Model.compile`; without `loss` the model minimises the loss of its own task.

        Cross entropies are taken from logits: by name they are what is meant, and one of probabilities is an error.

        Args:
            gradient_accumulation_steps: int. Into how many parts `fit` splits each device's share of a batch. They are
                taken one after the other within a step, with one update by the gradient of the whole batch, so that
                numbers stay the same and memory falls. It must divide the rows of each device.
            remat: str or int. Which activations `fit` computes again on the way back rather than keep: `"none"`, those
                of each block application (`"block"`), or those of so many applications together. Numbers stay the same.
        """
        if _has_many_devices(self):
            kwargs = {**kwargs, "jit_compile": _without_xla(kwargs.get("jit_compile", "auto"))}
        super().compile(optimizer, keras.tree.map_structure(on_logits, loss), *args, **kwargs)
        encoder: Any = getattr(self, "encoder", self)
        self.remat, encoder.recomputed_together = remat, applications_at_once(remat)
        self.step_record = None  # what `fit` keeps of its last step to look at, on TensorFlow
        self.gradient_accumulation_steps = _checked_parts(gradient_accumulation_steps, self.optimizer)
        names = () if self.uses_compiled_loss else self.reported_terms()
        with _scope_of(self):
            self.term_metrics = {name: keras.metrics.Mean(name=name) for name in names}

    def get_compile_config(self):
        """Keras' hook for a model that is saved with how it was compiled."""
        config = super().get_compile_config()
        if not config:  # a model that was never compiled
            return config
        return {**config, "gradient_accumulation_steps": self.gradient_accumulation_steps, "remat": self.remat}

    def compile_from_config(self, config):
        """Keras' hook for a loaded model: compiled as it was, with room for the optimizer's state."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def update_term(self, name: str, term: Term) -> None:
        """Adds one batch to the running mean that is reported under `name`."""
        self.term_metrics[name].update_state(term.mean(), sample_weight=term.weight)

    def update_loss(self, loss, rows) -> None:
        """Adds one batch of so many rows to the running mean of the loss."""
        self._loss_tracker.update_state(loss, sample_weight=rows)

    # === Training ===

    def make_train_function(self, force=False):
        """Keras' hook for the step of `fit`; on TensorFlow the step that is right under every strategy."""
        if keras.backend.backend() != "tensorflow":
            return super().make_train_function(force)
        if self.train_function is None or force:
            from albert_tf.models import training_step

            self.train_function = training_step.make_train_function(self)
        return self.train_function

    def make_test_function(self, force=False):
        """Keras' hook for the step of `evaluate`, the same way."""
        if keras.backend.backend() != "tensorflow":
            return super().make_test_function(force)
        if self.test_function is None or force:
            from albert_tf.models import training_step

            self.test_function = training_step.make_test_function(self)
        return self.test_function

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Keras' hook that builds compiled losses and metrics; its own averages a batch over hosts, and fails there."""
        needs_batch = self.uses_compiled_loss or self._compile_metrics is not None
        if iterator is not None and needs_batch and self._distribute_strategy is not None:
            from albert_tf.models import training_step

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
        checkpoints.refuse_another_size(checkpoint)
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


def _checked_parts(count: int, optimizer) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(
            "`gradient_accumulation_steps` must be an integer of at least 1. Received: "
            f"gradient_accumulation_steps={count!r}; 1 takes each batch whole."
        )
    if keras.backend.backend() != "tensorflow":
        if count > 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be 1 on backends other than TensorFlow. Received: "
                f"gradient_accumulation_steps={count}; give the optimizer Keras' argument of that name."
            )
    elif getattr(getattr(optimizer, "inner_optimizer", optimizer), "gradient_accumulation_steps", None):
        raise ValueError(
            "An optimizer must not accumulate gradients by itself here. Received: an optimizer with "
            "gradient_accumulation_steps; give that argument to compile."
        )
    return count


def _has_many_devices(model) -> bool:
    strategy = getattr(model, "distribute_strategy", None)
    return strategy is not None and strategy.num_replicas_in_sync > 1


def _without_xla(jit_compile):
    """Keras' own choice would be XLA on GPUs, which compiles a program for one device only."""
    if jit_compile not in ("auto", False):
        raise ValueError(
            f"`jit_compile` must be False or 'auto' where several devices share a batch. Received: {jit_compile!r}."
        )
    return False


def _scope_of(model):
    strategy = getattr(model, "distribute_strategy", None)  # TensorFlow's trainer alone has one
    return strategy.scope() if strategy is not None else contextlib.nullcontext()
