"""A small real pipeline for tests: text of a novel, a vocabulary and pretraining examples made from it."""

import pathlib
from typing import NamedTuple

from albert_tf.data import Objective, PrepareOptions, prepare
from albert_tf.tokenization import train_sentencepiece

REPOSITORY = pathlib.Path(__file__).parent.parent
NOVEL = REPOSITORY / "training/sample_data/novels/Stevenson_Treasure_Island_1883.txt"
VOCAB_SIZE, LENGTH = 400, 32


class SmallPipeline(NamedTuple):
    """Folders and files that later stages start from."""

    text: pathlib.Path
    vocabulary: pathlib.Path
    examples: pathlib.Path
    heldout: pathlib.Path


def make_small_pipeline(folder: pathlib.Path, objective: str = Objective.SENTENCE_ORDER) -> SmallPipeline:
    """Writes everything below `folder`."""
    chapters = NOVEL.read_text(encoding="utf-8").split("\n\n")
    pipeline = SmallPipeline(folder / "train.txt", folder / "vocabulary", folder / "examples", folder / "heldout")
    heldout_text = folder / "heldout.txt"
    pipeline.text.write_text("\n\n".join(chapters[:6]) + "\n", encoding="utf-8")
    heldout_text.write_text(chapters[6] + "\n", encoding="utf-8")
    train_sentencepiece([pipeline.text], pipeline.vocabulary, vocab_size=VOCAB_SIZE, heldout_files=heldout_text)
    for text, output in ((pipeline.text, pipeline.examples), (heldout_text, pipeline.heldout)):
        prepare(
            PrepareOptions(
                inputs=(text,),
                output_dir=output,
                tokenizer=pipeline.vocabulary,
                split_sentences=True,
                max_seq_length=LENGTH,
                dupe_factor=2,
                num_shards=2,
                objective=Objective(objective),
            )
        )
    return pipeline


def small_recipe(pipeline: SmallPipeline, **training) -> dict:
    """Values of a recipe for a few updates of a very small model, with dropout on."""
    return {
        "model": {
            "preset": "tiny",
            "vocab_size": VOCAB_SIZE,
            "embedding_size": 16,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "max_position_embeddings": LENGTH,
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
        },
        "data": {"examples": str(pipeline.examples), "heldout": str(pipeline.heldout)},
        "optimizer": {"name": "lamb", "learning_rate": 0.03, "num_warmup_steps": 5},
        "training": {
            **{"num_train_steps": 60, "batch_size": 16, "log_every": 10, "evaluate_every": 20, "save_every": 20},
            **training,
        },
    }
