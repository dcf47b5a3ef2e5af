"""New words (`make new-words`): names that a vocabulary splits, as tokens of their own, and what that is worth.

A small model is pretrained on all novels but one, and pretraining is continued on that one, once with its names as the
vocabulary splits them and once with the names as added tokens.
"""

import collections
import math
import pathlib
import re
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from novels import Chapter, read_chapters, write_corpus
from steps import REPOSITORY, Folders, pretrain_model, run_demo, step, train_vocabulary, write_examples

from albert_tf import AlbertForPreTraining, AlbertTokenizer, data, pipeline, trainer
from albert_tf.cli.tables import print_table
from albert_tf.data.documents import split_sentences
from albert_tf.files.json import read_toml

BOOK = "Haggard_King_Solomons_Mines_1885"
MIN_COUNT, MIN_PIECES = 8, 3
NUM_TRAIN_STEPS, LEARNING_RATE = 1000, 1e-3
MAX_CHARACTERS = 150  # which fit into the model


def new_words(
    output: Annotated[pathlib.Path, typer.Option(help="Folder to write.")] = pathlib.Path("runs/new_words"),
    novels: Annotated[pathlib.Path, typer.Option("--data", help="Folder of novels.")] = (
        REPOSITORY / "training/sample_data/novels"
    ),
    book: Annotated[str, typer.Option(help="The novel to continue with.")] = BOOK,
    recipe: Annotated[pathlib.Path, typer.Option(help="Pretraining recipe.")] = (
        REPOSITORY / "training/recipes/quickstart.toml"
    ),
    steps: Annotated[int, typer.Option(help="Updates of continued pretraining.")] = NUM_TRAIN_STEPS,
) -> None:
    """Continues pretraining on a novel with and without added tokens; prints how well masked names are predicted."""
    folders = Folders.below(output)
    chapters = read_chapters(novels)
    parts: dict[str, list[Chapter]] = {"train": [], "heldout": [], "new_train": [], "new_heldout": []}
    for chapter in chapters:
        parts["new_" * (chapter.book == book) + ("heldout" if chapter.is_heldout else "train")].append(chapter)
    for name, part in parts.items():
        write_corpus(part, folders.corpus / name)
    texts = {name: sorted((folders.corpus / name).glob("*.txt")) for name in parts}
    others = {name: texts[name] for name in ("train", "heldout")}
    train_vocabulary(others, folders, trainer.load_recipe(recipe).config.vocab_size)
    write_examples(folders, others, split_sentences=True, max_seq_length=64)
    model = pretrain_model(recipe, folders).model_folder

    tokens = folders.corpus / "tokens.txt"
    names = find_names(parts["new_train"], AlbertTokenizer.from_pretrained(folders.vocabulary))
    tokens.write_text("\n".join(names) + "\n", encoding="utf-8")
    sentences = [sentence for sentence in _sentences(parts["new_heldout"]) if len(sentence) <= MAX_CHARACTERS]
    found = [place for sentence in sentences for place in find_places(sentence, names)]
    resized = add_rows(model, names, folders.finetuning / "before")
    rows = [("as pieces, before", *score(model, found)), ("as added tokens, before", *score(resized, found))]
    for title, added in (("as pieces", None), ("as added tokens", tokens)):
        folder = continue_pretraining(recipe, model, texts["new_train"], folders, added, steps)
        rows.append((f"{title}, after {steps:,} updates", *score(folder, found)))
    columns = ("names", "nats per name", "tokens per sentence")
    print_table(f"{len(found)} masked names of held-out chapters, of {len(names)} names", columns, rows)


def add_rows(model: pathlib.Path, names: list[str], folder: pathlib.Path) -> pathlib.Path:
    """Writes the model with rows for names, as they are before training."""
    tokenizer = AlbertTokenizer.from_pretrained(model)
    tokenizer.add_tokens(names)
    AlbertForPreTraining.from_pretrained(model, vocab_size=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def find_names(chapters: list[Chapter], tokenizer: AlbertTokenizer) -> list[str]:
    """Names that occur often and are split into several pieces, the most frequent first."""
    words = collections.Counter(
        word for sentence in _sentences(chapters) for word in re.findall(r"(?<!^)\b[A-Z][a-z]+\b", sentence)
    )
    return [
        word
        for word, count in words.most_common()
        if count >= MIN_COUNT and len(tokenizer.tokenize(word)) >= MIN_PIECES
    ]


def find_places(sentence: str, names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Each name in a sentence, with the text before and after it."""
    for match in re.finditer(rf"\b({'|'.join(names)})\b", sentence):
        yield sentence[: match.start()], match[0], sentence[match.end() :]


def continue_pretraining(
    recipe: pathlib.Path,
    model: pathlib.Path,
    texts: list[pathlib.Path],
    folders: Folders,
    tokens: pathlib.Path | None,
    steps: int,
) -> pathlib.Path:
    """Continues pretraining on texts; returns the folder of the model."""
    name = "pieces" if tokens is None else "added"
    with step(f"writing examples, {name}"):
        options: dict[str, Any] = {"masked_lm_prob": 0.25, "ngram": 1, "max_seq_length": 64, "num_shards": 4}
        options |= {"split_sentences": True, "dupe_factor": 20, "tokenizer": model, "add_tokens": tokens}
        folder = folders.examples / name
        data.prepare(data.PrepareOptions(inputs=tuple(texts), output_dir=folder, **options))
    values = read_toml(recipe)
    values["model"] = {"weights": str(model), **({} if tokens is None else {"add_tokens": str(tokens)})}
    values["data"] = {"examples": str(folder)}
    values["optimizer"] |= {"learning_rate": LEARNING_RATE, "num_warmup_steps": steps // 10}
    values["training"] |= {"num_train_steps": steps, "evaluate_every": steps, "save_every": steps}
    return trainer.pretrain(trainer.parse_recipe(values), folders.finetuning / name).model_folder


def score(folder: pathlib.Path, places: list[tuple[str, str, str]]) -> tuple[str, str]:
    """The mean negative log probability of names, all pieces of which are masked, and the length of sentences."""
    predictor, tokenizer = pipeline(folder), AlbertTokenizer.from_pretrained(folder)
    names = [tokenizer.tokenize(name) for _, name, _ in places]
    masked = [f"{before}{'[MASK]' * len(pieces)}{after}" for (before, _, after), pieces in zip(places, names)]
    losses = [
        -math.log(mask.probabilities[mask.pieces.index(piece)])
        for pieces, masks in zip(names, predictor(masked, top=len(tokenizer)))
        for piece, mask in zip(pieces, masks)
    ]
    lengths = map(len, tokenizer.encode_batch(["".join(place) for place in places]))
    return f"{sum(losses) / len(places):.2f}", f"{sum(lengths) / len(places):.1f}"


def _sentences(chapters: list[Chapter]) -> Iterator[str]:
    for chapter in chapters:
        yield from split_sentences(" ".join(chapter.paragraphs))


if __name__ == "__main__":
    run_demo(new_words)
