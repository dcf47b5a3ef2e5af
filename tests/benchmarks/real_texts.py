"""Measures whole sets of real texts beside other implementations: texts in, scores out, tokenization and padding too.

    python tests/benchmarks/real_texts.py sst2.tsv --max-length 128
    python tests/benchmarks/real_texts.py squad.tsv --max-length 384 --limit 64
    python tests/benchmarks/real_texts.py nsmc.tsv --max-length 128 --vocabulary nsmc/vocabulary

A file has a text in each line, or two with a tab between them. The model is a classifier of base_v2 with random
weights. The sides are processes that take turns; the other libraries run in the environments of `make bench-peers`.
"padded" is their usual way, all rows padded to the maximum; "sorted" pads to the longest row of a batch, with texts
sorted by length. With --training, an epoch of fine-tuning in bfloat16: ours as `finetune` does it, KerasHub by `fit`,
torch with shuffled batches, padded to the maximum, as transformers' run_glue.py does unless it is told otherwise, or to
their longest row, as it does with --pad_to_max_length False.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = pathlib.Path(__file__).parents[2]
KERAS_HUB, TORCH = (ROOT / f".venv-parity-{name}/bin/python" for name in ("keras_hub", "transformers"))
SIDES = {
    **{"ours": sys.executable, "ours, keras bfloat16": sys.executable},
    **{"ours, openvino": sys.executable, "ours, openvino bfloat16": sys.executable},
    **{"ours, openvino int8": sys.executable, "ours, onnxruntime int8": sys.executable},
    **{"keras_hub, padded": KERAS_HUB, "keras_hub, padded bfloat16": KERAS_HUB},
    **{"torch, padded": TORCH, "torch, sorted": TORCH, "torch, sorted bfloat16": TORCH},
}
TRAINING = {
    **{"ours, training": sys.executable, "keras_hub, training": KERAS_HUB},
    **{"torch, padded training": TORCH, "torch, training": TORCH},
}
BATCH_SIZE = 32


def main() -> None:
    """Measures all sides in turns, or is one of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--max-length", type=int, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--sides", nargs="+", choices={**SIDES, **TRAINING}, help="default: all, or all of --training")
    parser.add_argument("--vocabulary", help="folder of the tokenizer; default: the published English one")
    parser.add_argument("--side", choices={**SIDES, **TRAINING}, help="be this one, with the model in --folder")
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    lines = options.texts.read_text(encoding="utf-8").splitlines()[: options.limit]
    columns = [list(column) for column in zip(*(line.split("\t") for line in lines), strict=True)]
    if options.side:
        take_turns(options, columns)
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        write_model(pathlib.Path(folder), options.max_length, options.vocabulary or "", is_pair=len(columns) == 2)
        sides = TRAINING if options.training else SIDES
        chosen = {side: sides[side] for side in options.sides or sides}
        started = {
            side: stack.enter_context(start(side, python, folder))
            for side, python in chosen.items()
            if pathlib.Path(python).exists()
        }
        seconds = {side: [] for side in started}
        for _ in range(options.rounds):
            for side, process in started.items():
                print("go", file=process.stdin, flush=True)
                seconds[side].append(float(process.stdout.readline()))
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    first = next(iter(medians.values()))
    print(f"{len(lines)} rows of {options.texts.name}, at most {options.max_length} tokens, {options.rounds} rounds\n")
    print("| | texts/s | spread | times the first |\n|---|---|---|---|")
    for side, values in seconds.items():
        spread = (max(values) - min(values)) / medians[side]
        print(f"| {side} | {len(lines) / medians[side]:.1f} | {spread:.0%} | {first / medians[side]:.2f} |")


@contextlib.contextmanager
def start(side, python, folder):
    command = [python, __file__, *sys.argv[1:], "--side", side, "--folder", folder]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{side} did not start: {command}")
        yield process
        process.stdin.close()


def take_turns(options, columns) -> None:
    """Says "ready" after two batches, then prints the seconds of all texts for each line of standard input."""
    prepare = {"ours": ours, "keras_hub": keras_hub, "torch": torch}
    if options.training:
        prepare = {"ours": train_ours, "keras_hub": train_keras_hub, "torch": train_torch}
    run = prepare[options.side.split(",")[0]](options)
    run([column[: 2 * BATCH_SIZE] for column in columns])  # the second batch traces graphs
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        assert len(run(columns)) == len(columns[0])
        print(time.perf_counter() - begun, flush=True)


def write_model(folder: pathlib.Path, max_length: int, vocabulary: str, is_pair: bool) -> None:
    """Weights and tokenizer of a classifier, its ONNX files, and the recipe that says how texts are cut."""
    script = """if True:
        import json, pathlib, sys, albert_tf, numpy
        from albert_tf.export import export_onnx
        folder, length, is_pair, vocabulary = pathlib.Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
        kind = albert_tf.AlbertTokenizer
        tokenizer = kind.from_pretrained(vocabulary) if vocabulary else kind.english()
        config = albert_tf.AlbertConfig.from_preset("base_v2").replace(vocab_size=tokenizer.vocab_size)
        model = albert_tf.AlbertForSequenceClassification(config, num_labels=2)
        for variable in model.weights:  # engines drop the biases of a new model, which are zeros
            variable.assign(variable + numpy.random.default_rng(0).normal(0, 0.02, variable.shape))
        model.save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
        settings = {"max_length": length, "pair_column": "pair" if is_pair == "True" else None}
        settings["task"] = "sequence_classification"
        (folder / "model/model.json").write_text(json.dumps(settings))
        for precision in ("float32", "int8"):
            export_onnx(folder / "model", folder / "exports", precision, precisions=[precision])
    """
    command = [sys.executable, "-c", script, str(folder), str(max_length), str(is_pair), vocabulary]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})


def ours(options):
    import albert_tf

    _, _, engine = options.side.partition(", ")
    engine, _, precision = (engine or "keras").partition(" ")
    precision = precision or "float32"
    exported = "int8" if precision == "int8" else "float32"  # of which OpenVINO makes bfloat16 itself
    folder = options.folder / ("model" if engine == "keras" else f"exports/{exported}")
    predictor = albert_tf.pipeline(folder, engine=engine, precision=precision, batch_size=BATCH_SIZE)
    return lambda columns: predictor(*columns)


def keras_hub(options):
    model = load_keras_hub(options, "bfloat16" if options.side.endswith("bfloat16") else "float32")
    return lambda columns: model.predict(as_keras(columns), batch_size=BATCH_SIZE, verbose=0)


def load_keras_hub(options, dtype):
    import keras_hub
    from speed_worker import keras_hub_classifier

    proto = str(options.folder / "model/spiece.model")
    tokenizer = keras_hub.models.AlbertTokenizer(proto=proto)
    preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(tokenizer, sequence_length=options.max_length)
    return keras_hub_classifier(preprocessor, dtype)


def as_keras(columns):
    return columns[0] if len(columns) == 1 else tuple(columns)


def torch(options):
    import numpy as np
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder / "model")
    dtype = torch.bfloat16 if options.side.endswith("bfloat16") else torch.float32
    kind = transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(options.folder / "model", dtype=dtype).eval()
    is_sorted = "sorted" in options.side

    def run(columns):
        order = np.argsort([-sum(map(len, row)) for row in zip(*columns)]) if is_sorted else range(len(columns[0]))
        logits = np.empty([len(columns[0]), 2])
        for begin in range(0, len(order), BATCH_SIZE):
            rows = order[begin : begin + BATCH_SIZE]
            padding = "longest" if is_sorted else "max_length"
            given = [[column[row] for row in rows] for column in columns]
            batch = tokenizer(
                *given, padding=padding, truncation=True, max_length=options.max_length, return_tensors="pt"
            )
            with torch.inference_mode():
                logits[rows] = model(**batch).logits.float().numpy()
        return logits

    return run


def train_ours(options):
    import numpy as np

    import albert_tf
    from albert_tf.data.finetuning.batches import steps_per_epoch, training_dataset
    from albert_tf.data.finetuning.encoded import encode_texts

    tokenizer = albert_tf.AlbertTokenizer.from_pretrained(options.folder / "model")
    kind = albert_tf.AlbertForSequenceClassification
    model = kind.from_pretrained(options.folder / "model", dtype="mixed_bfloat16")
    model.compile(albert_tf.optimizers.AdamW(1e-5), jit_compile=False)

    class Examples:
        def __init__(self, encoded):
            self.encoded, self.lengths = encoded, encoded.lengths

        def training_batch(self, rows):
            return self.encoded.batch(rows), (rows % 2).astype(np.int32)

    def run(columns):
        texts, *pairs = columns
        examples = Examples(encode_texts(tokenizer, texts, pairs[0] if pairs else None, options.max_length))
        steps = steps_per_epoch(len(texts), BATCH_SIZE)
        model.fit(training_dataset(examples, BATCH_SIZE, seed=0), steps_per_epoch=steps, verbose=0)
        return texts

    return run


def train_keras_hub(options):
    import keras
    import numpy as np

    model = load_keras_hub(options, "mixed_bfloat16")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-5, weight_decay=0.01), loss=loss)

    def run(columns):
        model.fit(as_keras(columns), np.arange(len(columns[0])) % 2, batch_size=BATCH_SIZE, verbose=0)
        return columns[0]

    return run


def train_torch(options):
    import numpy as np
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder / "model")
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"), 0.0)
    kind = transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(options.folder / "model", **rates).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)
    padding = "max_length" if "padded" in options.side else "longest"

    def run(columns):
        order = np.random.default_rng(0).permutation(len(columns[0]))
        for begin in range(0, len(order), BATCH_SIZE):
            rows = order[begin : begin + BATCH_SIZE]
            given = [[column[row] for row in rows] for column in columns]
            batch = tokenizer(
                *given, padding=padding, truncation=True, max_length=options.max_length, return_tensors="pt"
            )
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(**batch, labels=torch.tensor(rows % 2)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return columns[0]

    return run


if __name__ == "__main__":
    main()
