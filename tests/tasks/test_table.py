"""The table of tasks agrees with the models and with the names of checkpoints."""

import albert_tf
from albert_tf import AlbertConfig, models
from albert_tf.checkpoints.names import rows
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.table import HEADS, TASKS, find_task, smallest_task


def test_every_model_is_a_task_and_is_public():
    classes = {name for name in models.__all__ if issubclass(getattr(models, name), AlbertBase)}
    assert {task.model for task in TASKS} == classes - {"AlbertEncoder"}
    for task in TASKS:
        # transformers has no class for embeddings; `modules.json` says what the folder is.
        architecture = task.model if task.heads else "AlbertModel"
        assert getattr(albert_tf, task.model).architecture == architecture
        assert task.model in albert_tf.__all__


def test_every_model_fills_the_heads_of_its_row():
    config = AlbertConfig.from_preset("tiny").replace(vocab_size=64, num_hidden_layers=1)
    arguments = {
        "AlbertForSequenceClassification": {"num_labels": 2},
        "AlbertForTokenClassification": {"num_labels": 2},
    }
    for task in TASKS:
        chosen = {"head": "beam"} if task.heads == {"qa_beam"} else arguments.get(task.model, {})
        model: AlbertBase = getattr(models, task.model)(config, **chosen)
        parts = {path.split("/")[0] for path in model.variables_by_path()}
        assert parts == {"encoder", *task.heads}
        assert task.uses_pooler == ("encoder/pooler/kernel" in model.variables_by_path())


def test_heads_are_those_of_checkpoints():
    config = AlbertConfig.from_preset("tiny")
    optional = frozenset().union(*(task.optional_heads for task in TASKS))  # these are in files of their own
    assert {row.path.split("/")[0] for row in rows(config)} - {"encoder"} == HEADS - optional
    assert smallest_task("dense").name == "sentence_embedding"


def test_a_task_is_found_by_heads_and_architecture():
    assert find_task({"encoder"}) is None
    assert find_task({"encoder", "classifier"}).name == "sequence_classification"
    assert find_task({"encoder", "classifier"}, ["AlbertForTokenClassification"]).name == "token_classification"
    assert find_task({"encoder", "masked_lm", "sentence_order"}).name == "pretraining"
    assert find_task({"encoder", "classifier"}, ["AlbertForMaskedLM"]) is None
    assert find_task({"encoder"}, ["AlbertForSentenceEmbedding"]).name == "sentence_embedding"
    assert smallest_task("classifier").name == "token_classification"
