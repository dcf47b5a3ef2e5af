"""Models in files: `from_pretrained`, `save_pretrained`, and more rows for more tokens."""

import pathlib
from typing import TYPE_CHECKING, Any, Self

import keras

from albert_tf.keras_internals import layers_within, reshape_variable
from albert_tf.models.training import TrainableModel
from albert_tf.models.variable_paths import weights_by_path

if TYPE_CHECKING:
    from albert_tf.checkpoints.checkpoint import Checkpoint


class PretrainedModel(TrainableModel):
    """A model that loads and writes checkpoints, which identify a variable by its path in the model."""

    # The class name of this model in Hugging Face's `config.json`.
    architecture = ""
    # Prefix of its variables' paths in checkpoints.
    root = ""

    def variables_by_path(self) -> dict[str, Any]:
        """All weights by their paths in checkpoints, without the states of random generators."""
        return {path: variable for path, (variable, _) in weights_by_path(self, self.root).items()}

    def arrays_by_path(self) -> dict[str, Any]:
        """The values of all weights as NumPy arrays by their paths in checkpoints, with LoRA updates merged."""
        arrays = {}
        for path, (variable, layer) in weights_by_path(self, self.root).items():
            name = path.rpartition("/")[2]
            if not getattr(layer, "lora_enabled", False) or not name.startswith(("lora_", "kernel")):
                arrays[path] = keras.ops.convert_to_numpy(variable)
            elif name == "kernel":  # the attribute is the sum of kernel and update
                arrays[path] = keras.ops.convert_to_numpy(layer.kernel)
        return arrays

    @classmethod
    def from_pretrained(
        cls, path: str | pathlib.Path, new_head: bool = False, *, revision: str | None = None, **kwargs
    ) -> Self:
        """Loads a checkpoint. The format is detected automatically.

        Every variable and every tensor must match, except that heads of other tasks in the file are ignored.

        Args:
            path: a folder written by `save_pretrained` or Hugging Face transformers; a folder with Google's
                `albert_config.json` and a checkpoint, or that checkpoint's prefix; an unpacked TF Hub module; a
                KerasHub preset folder; its `.keras` or `.weights.h5` file; or the name of a model on huggingface.co,
                such as "albert/albert-base-v2", which needs `albert-tf[hub]`. A path that exists is always taken.
            new_head: bool. Whether a head that the file lacks, or has for other labels, is initialised, not an error.
            revision: of a name, its branch, tag or commit. None: the newest.
            **kwargs: constructor arguments, such as `labels`, or `preprocessor`, by default of the folder's tokenizer;
                and fields of AlbertConfig that differ from the file's, such as `hidden_dropout_prob`. With
                `share="none"`, layers start with the shared weights and no longer share them. With a larger
                `max_position_embeddings`, position embeddings are repeated, and with `attention="block_local"` costs
                are linear in the length. With `vocab_size=len(tokenizer)` there are rows for tokens added to the
                vocabulary, drawn from normal distributions with the mean and deviation of the others. If `labels` are
                in another order, so are the columns.

        Raises:
            ValueError: a tensor is not used, a variable is not filled, or shapes differ.
        """
        from albert_tf import checkpoints
        from albert_tf.checkpoints.checkpoint import assign, check_size, with_positions, with_sharing
        from albert_tf.checkpoints.vocabulary import with_vocabulary
        from albert_tf.files.hub import model_folder
        from albert_tf.models.task_settings import restore_settings

        path = model_folder(path, revision)
        checkpoint = checkpoints.read(path)
        check_size(checkpoint)
        changes = {name: kwargs.pop(name) for name in checkpoint.config.to_dict() if name in kwargs}
        config = checkpoint.config.replace(**changes)
        checkpoint = with_positions(with_sharing(with_vocabulary(checkpoint, config), config), config)
        make: Any = cls
        model = make(config, **cls.arguments_from_file(dict(checkpoint.settings), kwargs))
        restore_settings(model, path, given=kwargs)
        assign(model.matching(checkpoint, new_head), model.variables_by_path(), new_head=new_head)
        return model

    def resize_token_embeddings(self, new_num_tokens: int) -> None:
        """Adds rows for tokens that were added to the vocabulary, as `from_pretrained(vocab_size=...)` does.

        Args:
            new_num_tokens: int. The new `vocab_size`, `len(tokenizer)`.

        Raises:
            ValueError: there would be fewer rows than now, or the model was compiled already.
        """
        from albert_tf.checkpoints.vocabulary import PATHS, with_more

        weights = weights_by_path(self, self.root)
        tables = {path: keras.ops.convert_to_numpy(weights[path][0]) for path in PATHS if path in weights}
        tables = with_more(tables, self.config.vocab_size, new_num_tokens)
        if self.compiled:
            raise ValueError(
                "The vocabulary must be resized before the model is compiled, because the optimizer has a state for "
                "each row; resize it first, or load the weights with from_pretrained(folder, vocab_size=...)."
            )
        with self.strategy_scope():
            for path, table in tables.items():
                variable, layer = weights[path]
                reshape_variable(layer, variable, table)
        config = self.config.replace(vocab_size=new_num_tokens)
        for layer in (self, *layers_within(self)):
            if hasattr(layer, "config"):
                layer.config = config
        self.predict_function = None  # it reads the former rows

    def head_settings(self) -> dict[str, Any]:
        """Entries of `config.json` that describe the head."""
        return {}

    def matching(self, checkpoint: "Checkpoint", new_head: bool) -> "Checkpoint":
        """The checkpoint with its head adapted to this model or left out; raises ValueError if it does not fit."""
        del new_head
        return checkpoint

    @classmethod
    def arguments_from_file(cls, settings: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """Constructor arguments: `arguments` override those from the checkpoint."""
        return {**cls.settings_from_file(settings), **arguments}

    @classmethod
    def settings_from_file(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Constructor arguments from a checkpoint's `config.json`."""
        return {}

    def save_pretrained(self, folder: str | pathlib.Path) -> None:
        """Writes `config.json`, `model.safetensors` and the tokenizer (see `Preprocessor.save`) as transformers does.

        What they do not tell, `task_settings` and how the preprocessor reads texts, is in `model.json`; from there it
        comes back, also to `albert_tf.pipeline` and exports.

        Warns:
            UserWarning: transformers would compute different outputs with these weights, as with KerasHub's masked-LM
                head. `from_pretrained` restores them exactly.
        """
        from albert_tf.checkpoints.huggingface import save_huggingface
        from albert_tf.models.task_settings import write_settings

        settings = {"architectures": [self.architecture], **self.head_settings()}
        save_huggingface(folder, self.config, self.arrays_by_path(), settings)
        if self.preprocessor is not None:
            self.preprocessor.save(folder, self.config.vocab_size)
        write_settings(self, folder)
