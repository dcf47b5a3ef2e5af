"""What a fine-tuning run starts from: the pretrained model, its tokenizer, and a teacher."""

from typing import Any

from albert_tf import checkpoints, models
from albert_tf.checkpoints.reading import holds_weights
from albert_tf.config import AlbertConfig
from albert_tf.inference.folder import load_folder
from albert_tf.models.base import AlbertBase
from albert_tf.models.distillation import check_teacher
from albert_tf.tasks.learned import LearnedTask
from albert_tf.tasks.table import TASKS
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.added_tokens_files import read_token_lines
from albert_tf.trainer.adapters import add_adapters, freeze
from albert_tf.trainer.task_options import ModelOptions

LARGE = 512  # hidden width from which a learning rate for small models is too high


def load_tokenizer(options: ModelOptions) -> AlbertTokenizer:
    """The pretrained model's tokenizer, with the tokens to add."""
    path = options.pretrained  # a folder, or the prefix of a checkpoint
    if not holds_weights(path):
        checkpoints.read(path)  # raises
    tokenizer = AlbertTokenizer.from_pretrained(path if path.is_dir() else path.parent)
    if options.add_tokens is not None:
        tokenizer.add_tokens(read_token_lines(options.add_tokens))
    return tokenizer


def make_model(options: ModelOptions, task: str, tokenizer: AlbertTokenizer, arguments: dict[str, Any]) -> AlbertBase:
    """The model to train; `arguments` are those of its constructor."""
    kind = getattr(models, next(row.model for row in TASKS if row.name == task))
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), options.dropout)
    values: dict[str, Any] = {**rates, "classifier_dropout_prob": options.head_dropout, "share": options.share}
    values["num_hidden_layers"] = options.num_hidden_layers
    changes = {name: value for name, value in values.items() if value is not None}
    changes |= {"vocab_size": len(tokenizer)} if options.add_tokens is not None else {}
    if options.from_scratch:
        file = checkpoints.read(options.pretrained)
        model = kind(file.config.replace(**changes), **kind.arguments_from_file(dict(file.settings), arguments))
    else:
        model = kind.from_pretrained(options.pretrained, new_head=True, preprocessor=None, **changes, **arguments)
    if options.lora_rank is not None:
        add_adapters(model, options.lora_rank)
    freeze(model, options.freeze)
    return model


def default_rate(config: AlbertConfig) -> float:
    """The learning rate for a model of this size; that of base models leaves small ones where they were."""
    return 1e-3 if config.hidden_size < LARGE else 3e-5


def max_length(task: LearnedTask, model: AlbertBase) -> int:
    """Maximum number of ids of an example; raises ValueError if model, tokenizer and settings do not match."""
    config, chosen = model.config, task.settings.max_length
    task.tokenizer.check_fits(config.vocab_size)
    if chosen is not None and chosen > config.max_position_embeddings:
        raise ValueError(
            f"`max_length` (--max-length) must not exceed the model's `max_position_embeddings`. Received: "
            f"max_length={chosen}, max_position_embeddings={config.max_position_embeddings}."
        )
    return chosen or getattr(model, "max_length", config.max_position_embeddings)


def load_teacher(options: ModelOptions, student: AlbertBase, tokenizer: AlbertTokenizer) -> AlbertBase | None:
    """The teacher, None if there is to be none.

    Raises:
        ValueError: it was not trained for the student's task, labels and vocabulary, or has another width.
    """
    if options.teacher is None:
        return None
    dtype = student.dtype_policy.name
    loaded = load_folder(options.teacher, dtype)
    teacher, labels = loaded.model, getattr(student, "labels", ())
    if labels and type(teacher) is type(student) and set(labels) == set(teacher.labels):  # in another order
        teacher = type(student).from_pretrained(options.teacher, dtype=dtype, labels=labels)
    check_teacher(student, teacher)
    if loaded.tokenizer.vocab_hash != tokenizer.vocab_hash:
        raise ValueError(
            f"`teacher` must have the vocabulary of the model. Received: teacher={options.teacher}; train one with it."
        )
    return teacher
