"""Measures windows of questions and passages beside Model Garden's: questions per second of one core.

    python -m tests.benchmarks.question_windows train-v1.1.json 30k-clean.model --passages 200

Theirs is `squad_lib_sp.py`, a fork of google-research/albert's `squad_utils.py`, in the environment of
`make parity-peers`. Both sides read the same questions in turns; each makes padded ids, masks and types, the token of
most context, and positions of answers, as for training. Processor time counts, which other work on the machine
disturbs less than wall time. At the end the windows are compared.
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
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).parents[2]
LENGTH, STRIDE, QUESTION = 384, 128, 64


def ours(file: Path, model: Path):
    """Returns our seconds, and a list of windows (ids, answer, which tokens they show best) by question."""
    import numpy as np

    from albert_tf.data.finetuning.questions import encode_questions, read_questions
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


def model_garden(file: Path, model: Path):
    """Returns the same of Model Garden's code."""
    from absl import logging
    from official.nlp.data import squad_lib_sp
    from official.nlp.tools.tokenization import FullSentencePieceTokenizer

    logging.set_verbosity(logging.ERROR)

    class Examples(list):
        """Remembers the example in work, because features for training do not say whose they are."""

        def __iter__(self):
            for self.current in super().__iter__():
                yield self.current

    examples = Examples(squad_lib_sp.read_squad_examples(file, is_training=True, version_2_with_negative=False))
    found = {example.qas_id: [] for example in examples}
    begun = time.process_time()
    tokenizer = FullSentencePieceTokenizer(str(model))
    squad_lib_sp.convert_examples_to_features(
        *(examples, tokenizer, LENGTH, STRIDE, QUESTION),
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


def write_sample(source: Path, passages: int | None, target: Path) -> int:
    """Writes some passages with the first answer of each question, as training files have; returns the questions."""
    pages = json.loads(source.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for page in pages for paragraph in page["paragraphs"]]
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
    parser.add_argument("--passages", type=int, help="so many, drawn at random")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=ROOT / ".venv-parity-model_garden/bin/python", help="theirs")
    parser.add_argument("--side", choices=("ours", "model_garden"), help="run this one, and write what it made")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.side:
        options.output.write_bytes(pickle.dumps(globals()[options.side](options.questions, options.model)))
        return
    with tempfile.TemporaryDirectory() as folder:
        sample, output = Path(folder) / "sample.json", Path(folder) / "windows.pickle"
        count = write_sample(options.questions, options.passages, sample)
        seconds, found = {"ours": [], "model_garden": []}, {}
        for _ in range(options.rounds):
            for side, python in (("ours", sys.executable), ("model_garden", options.python)):
                command = [python, __file__, sample, options.model, "--side", side, "--output", output]
                subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
                own, found[side] = pickle.loads(output.read_bytes())
                seconds[side].append(own)
                print(f"{side}: {count:,} questions in {own:.2f} s of processor, {count / own:,.1f}/s", flush=True)
    ratios = [theirs / own for own, theirs in zip(*seconds.values())]
    print(f"times as fast is ours: {statistics.median(ratios):,.0f} ({min(ratios):,.0f} to {max(ratios):,.0f})")
    print(*(f"{number:,} {what}" for what, number in compare(found["ours"], found["model_garden"]).items()), sep=", ")


if __name__ == "__main__":
    main()
