"""Measures windows of questions and passages beside the reference's: questions per second of one core.

    pip install --no-deps --target reference albert-tensorflow==1.1
    python -m tests.benchmarks.question_windows train-v1.1.json 30k-clean.model reference --passages 200

albert-tensorflow is google-research/albert of November 2019, with its `squad_utils.py`. Both sides read the same
questions in turns; each makes padded ids, masks and types, the token of most context, and positions of answers, as for
training. Processor time counts, which other work on the machine disturbs less than wall time. At the end the windows
are compared.
"""

import argparse
import json
import os
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).parents[2]
LENGTH, STRIDE, QUESTION = 384, 128, 64


def ours(file: Path, model: Path):
    """Returns our seconds, and a list of windows (ids, answer, which tokens they show best) by question."""
    import numpy as np

    from albert_tf.tasks.question_answering.files import read_questions
    from albert_tf.tasks.question_answering.questions import encode_questions
    from albert_tf.tokenization import AlbertTokenizer

    questions, tokenizer = read_questions(file), AlbertTokenizer.from_pretrained(model)
    encode_questions(tokenizer, questions[:1])  # loads what is loaded at first use
    begun = time.process_time()
    windows = encode_questions(tokenizer, questions, LENGTH, STRIDE, QUESTION)
    labels = windows.labels()
    best = [windows.best_windows(row)[1] for row in range(len(questions))]
    batches = [windows.batch(rows, LENGTH) for rows in np.array_split(np.arange(len(windows)), len(windows) // 32 + 1)]
    seconds = time.process_time() - begun
    ids = [row for batch in batches for row in batch["input_ids"]]
    found = {question.id: [] for question in questions}
    for row, (place, start, count) in enumerate(zip(windows.question, windows.start, windows.count)):
        own = found[questions[place].id]
        answer = labels["start_positions"][row], labels["end_positions"][row]
        own.append((ids[row].tolist(), answer, (best[place][start : start + count] == len(own)).tolist()))
    return seconds, found


def reference(file: Path, model: Path):
    """Returns the same of the reference's code."""
    squad_utils, tokenization = _import_reference()

    class Examples(list):
        """Remembers the example in work, because features for training do not say whose they are."""

        def __iter__(self):
            for self.current in super().__iter__():
                yield self.current

    examples = Examples(squad_utils.read_squad_examples(str(file), is_training=True))
    found = {example.qas_id: [] for example in examples}
    begun = time.process_time()
    squad_utils.convert_examples_to_features(
        examples,
        tokenization.FullTokenizer(vocab_file=None, spm_model_file=str(model)),
        *(LENGTH, STRIDE, QUESTION),
        is_training=True,
        output_fn=lambda feature: found[examples.current.qas_id].append(feature),
        do_lower_case=True,
    )
    seconds = time.process_time() - begun
    for name, features in found.items():
        found[name] = [
            (f.input_ids, (f.start_position, f.end_position), list(f.token_is_max_context.values())) for f in features
        ]
    return seconds, found


def _import_reference():
    """Imports it under TensorFlow 2: its features need no TensorFlow, but its modules import TensorFlow 1."""
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    contrib = types.ModuleType("tensorflow.contrib")
    for name in ("data", "layers", "tpu"):
        setattr(contrib, name, None)
    sys.modules.update({"tensorflow": tf, "tensorflow.contrib": contrib})
    from albert import squad_utils, tokenization

    return squad_utils, tokenization


def write_sample(source: Path, passages: int | None, target: Path) -> int:
    """Writes some passages with the first answer of each question, as training files have; returns the questions.

    Passages with other characters than ASCII are left out: under Python 3 the reference counts their bytes as
    characters, and fails.
    """
    pages = json.loads(source.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for page in pages for paragraph in page["paragraphs"]]
    paragraphs = [paragraph for paragraph in paragraphs if paragraph["context"].isascii()]
    paragraphs = random.Random(0).sample(paragraphs, min(passages or len(paragraphs), len(paragraphs)))
    for question in (question for paragraph in paragraphs for question in paragraph["qas"]):
        question["answers"] = question["answers"][:1]
    target.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    return sum(len(paragraph["qas"]) for paragraph in paragraphs)


def compare(one: dict, other: dict) -> Counter:
    """Counts questions and windows that differ, and in what."""
    counts = Counter(questions=len(one), windows=sum(map(len, one.values())))
    for name, windows in one.items():
        if len(windows) != len(other[name]):
            counts["questions with another number of windows" if other[name] else "questions they drop"] += 1
            continue
        for (ids, answer, best), (their_ids, their_answer, their_best) in zip(windows, other[name]):
            counts["windows with other ids"] += ids != their_ids
            counts["windows with the same ids, another answer"] += ids == their_ids and answer != their_answer
            counts["windows with the same ids, another best context"] += ids == their_ids and best != their_best
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, help="a file in SQuAD's format")
    parser.add_argument("model", type=Path, help="a SentencePiece model")
    parser.add_argument("reference", type=Path, help="the folder with albert-tensorflow")
    parser.add_argument("--passages", type=int, help="so many, drawn at random")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=("ours", "reference"), help="run this one, and write what it made")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.side:
        options.output.write_bytes(pickle.dumps(globals()[options.side](options.questions, options.model)))
        return
    with tempfile.TemporaryDirectory() as folder:
        sample, output = Path(folder) / "sample.json", Path(folder) / "windows.pickle"
        count = write_sample(options.questions, options.passages, sample)
        seconds, found = {"ours": [], "reference": []}, {}
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{options.reference.resolve()}"}
        for _ in range(options.rounds):
            for side in seconds:
                command = [sys.executable, __file__, sample, options.model, options.reference, "--side", side]
                subprocess.run([*command, "--output", output], check=True, env=environment)
                own, found[side] = pickle.loads(output.read_bytes())
                seconds[side].append(own)
                print(f"{side}: {count:,} questions in {own:.2f} s of processor, {count / own:,.1f}/s", flush=True)
    ratios = [theirs / own for own, theirs in zip(*seconds.values())]
    print(f"times as fast is ours: {statistics.median(ratios):,.0f} ({min(ratios):,.0f} to {max(ratios):,.0f})")
    print(*(f"{number:,} {what}" for what, number in compare(found["ours"], found["reference"]).items()), sep=", ")


if __name__ == "__main__":
    main()
