"""`albert-tf quickstart`: the whole road on a few novels, from raw text to a served model."""

import pathlib
import time
from typing import Annotated, Any, NamedTuple

import typer

from albert_tf.cli.pretrain import end_if_stopped

NAME = "quickstart"
TRAIN_PASSAGES, DEV_PASSAGES = 200, 100  # for each author
MAX_LENGTH = 64
PLOT = "losses.png"


class _Folders(NamedTuple):
    """Where the quickstart writes."""

    corpus: pathlib.Path
    vocabulary: pathlib.Path
    examples: pathlib.Path
    pretraining: pathlib.Path
    finetuning: pathlib.Path
    saved_models: pathlib.Path

    @classmethod
    def below(cls, output: pathlib.Path) -> "_Folders":
        """All in one folder, each under its own name."""
        return cls(*(output / name for name in cls._fields))


def run(
    output: Annotated[pathlib.Path, typer.Option(help="Folder for everything.")] = pathlib.Path("runs/quickstart"),
    data: Annotated[pathlib.Path, typer.Option(help="Folder of novels.")] = pathlib.Path("training/sample_data/novels"),
    recipe: Annotated[pathlib.Path, typer.Option(help="Recipe of the pretraining.")] = pathlib.Path(
        "training/recipes/quickstart.toml"
    ),
) -> None:
    """Trains a vocabulary, pretrains, fine-tunes, exports and predicts, on novels that ship with the project.

    Example: albert-tf quickstart --output runs/quickstart
    """
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    begun = time.monotonic()
    folders = _Folders.below(output)
    write_texts(data, folders)
    make_examples(recipe, folders)
    pretrained = pretrain_model(recipe, folders)
    classifiers = finetune_classifiers(folders)
    exported = export_classifier(folders)
    show_results(pretrained, classifiers, exported, folders, time.monotonic() - begun)
    show_predictions(exported, folders)


def write_texts(data: pathlib.Path, folders: _Folders) -> None:
    """Splits the novels by chapters into what is learnt from and what is held out."""
    from albert_tf.cli.novels import read_chapters, write_corpus, write_passages

    _say("reading the novels")
    chapters = read_chapters(data)
    parts = {"train": [c for c in chapters if not c.is_heldout], "heldout": [c for c in chapters if c.is_heldout]}
    for name, part in parts.items():
        write_corpus(part, folders.corpus / name)
    write_passages(parts["train"], folders.corpus / "passages_train.tsv", TRAIN_PASSAGES, seed=0)
    write_passages(parts["heldout"], folders.corpus / "passages_dev.tsv", DEV_PASSAGES, seed=0)


def make_examples(recipe: pathlib.Path, folders: _Folders) -> None:
    """Trains the vocabulary and writes pretraining examples."""
    from albert_tf.data import PrepareOptions, prepare
    from albert_tf.tokenization import train_sentencepiece
    from albert_tf.trainer import load_recipe

    _say("training a vocabulary")
    vocab_size = load_recipe(recipe).config.vocab_size
    files = {part: sorted((folders.corpus / part).glob("*.txt")) for part in ("train", "heldout")}
    train_sentencepiece(files["train"], folders.vocabulary, vocab_size, heldout_files=files["heldout"])
    for part, passes in (("train", 20), ("heldout", 1)):
        _say(f"writing {part} examples")
        options = PrepareOptions(
            inputs=(folders.corpus / part,),
            output_dir=folders.examples / part,
            tokenizer=folders.vocabulary,
            split_sentences=True,
            max_seq_length=64,
            # What a small model learns soonest from: many single words to guess, rather than few runs of words.
            masked_lm_prob=0.25,
            ngram=1,
            dupe_factor=passes,
            num_shards=4 if part == "train" else 1,
        )
        report = prepare(options)
        _say(f"  {report.manifest.statistics.examples:,} examples, {report.tokens_per_second:,.0f} tokens/s")


def pretrain_model(recipe: pathlib.Path, folders: _Folders):
    """Pretrains on masked words and sentence order."""
    from albert_tf.trainer import load_recipe, plot_losses, pretrain

    _say("pretraining")
    data = {name: folders.examples / part for name, part in (("examples", "train"), ("heldout", "heldout"))}
    report = pretrain(load_recipe(recipe, **data, tokenizer=folders.vocabulary), folders.pretraining)
    end_if_stopped(report)
    plot_losses(report.metrics_file, folders.pretraining / PLOT, report.results["unigram_entropy"])
    return report


def finetune_classifiers(folders: _Folders) -> dict[str, Any]:
    """Fine-tunes the pretrained network, and the same network from scratch, on who wrote a passage."""
    from albert_tf.trainer import FinetuneOptions, finetune

    reports = {}
    for name, from_scratch in (("pretrained", False), ("from scratch", True)):
        _say(f"fine-tuning, {name}")
        options = FinetuneOptions(
            pretrained=folders.pretraining / "model",
            train=folders.corpus / "passages_train.tsv",
            dev=folders.corpus / "passages_dev.tsv",
            output=folders.finetuning / name.replace(" ", "_"),
            label_column="author",
            from_scratch=from_scratch,
            epochs=5,
            learning_rate=1e-3,
            max_length=MAX_LENGTH,
            keep="last",
        )
        reports[name] = finetune(options, show_progress=True)
    return reports


def export_classifier(folders: _Folders):
    """Writes the fine-tuned model as a SavedModel, raw text in, named scores out."""
    from albert_tf.export import export_saved_model

    _say("exporting")
    return export_saved_model(folders.finetuning / "pretrained", folders.saved_models, name="authors")


def show_results(pretrained, classifiers: dict[str, Any], exported, folders: _Folders, seconds: float) -> None:
    """Prints what came out."""
    import rich

    from albert_tf.cli.tables import plain_table

    held_out, tuned, scratch = pretrained.results, classifiers["pretrained"], classifiers["from scratch"]
    table = plain_table("quickstart", "on held-out chapters", "value")
    rows = {
        "masked-LM loss, nats": f"{held_out['masked_lm_loss']:.3f}",
        "  entropy of the same tokens one by one": f"{held_out['unigram_entropy']:.3f}",
        "masked-LM accuracy": f"{held_out['masked_lm_accuracy']:.3f}",
        "sentence-order accuracy (chance .5)": f"{held_out['sentence_order_accuracy']:.3f}",
        "author of a passage, accuracy": f"{tuned.scores.accuracy:.3f}",
        "  same network without pretraining": f"{scratch.scores.accuracy:.3f}",
        "  always the commonest author": f"{tuned.majority_share:.3f}",
        "exported model against Keras, largest difference": f"{exported.largest_difference:.1e}",
        "seconds in all": f"{seconds:.0f}",
    }
    for label, value in rows.items():
        table.add_row(label, value)
    rich.print(table)
    _say(f"losses: {folders.pretraining / PLOT}")


def show_predictions(exported, folders: _Folders) -> None:
    """Prints one prediction of each kind."""
    from albert_tf.export import classify, fill_mask, load_folder, sentence_order

    pretrained, classifier = load_folder(folders.pretraining / "model"), load_folder(folders.finetuning / "pretrained")
    masked = "He put his hand in his [MASK] and drew out a letter."
    guess = fill_mask(pretrained, [masked])[0]
    shares = ", ".join(f"{piece} {share:.2f}" for piece, share in zip(guess.pieces, guess.probabilities))
    _say(f"masked word     {masked}\n                {shares}")
    first, second = "The old man opened the door and looked out.", "There was nobody there, and he shut it again."
    share = sentence_order(pretrained, [first], [second])[0]
    _say(f"sentence order  {first} | {second}\n                in this order with probability {share:.2f}")
    passage = '"My dear Watson," said he, "the hound was upon the moor before you came."'
    label = classify(classifier, [passage])[0]
    _say(f"author          {passage}\n                {label.label} {label.score:.2f}")
    _say(f"serve it        python saved_models/predict.py {exported.folder.parent} {passage!r}")


def _say(text: str) -> None:
    typer.echo(text)
