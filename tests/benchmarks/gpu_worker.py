"""One side of `gpu.py`: builds a classifier in bfloat16 and prints a line of JSON for each kind of work and shape.

Letters: B batch, L sequence.
"""

import argparse
import collections
import functools
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np

from tests.benchmarks.gpu_commands import COMMANDS
from tests.benchmarks.speed_worker import keras_hub_classifier

WARM_UP = 2  # rounds; PyTorch compiles in the first and is still slow in the second
PREDICTIONS = 20  # masked tokens of a row
SHARED = (  # fields of the config that transformers names alike
    *("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("max_position_embeddings", "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"),
)
FLASH = ("sdpa", "flash", "fmha")  # in the names of kernels of fused attention


def main() -> None:
    """Times each shape, with half the batch again and again where memory does not suffice."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("side", choices=(*SIDES, "peak"))
    parser.add_argument("--config", type=json.loads, required=True, help="fields of AlbertConfig")
    parser.add_argument("--work", nargs="+", default=[], help="such as training:64x512")
    parser.add_argument("--steps", type=int, default=20, help="calls that are timed together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if options.side == "peak":
        say(peak())
        return
    for task in options.work:
        work, _, shape = task.partition(":")
        batch, length = map(int, shape.split("x"))
        if work in COMMANDS:
            measured = COMMANDS[work](options.config, batch, length, options)
            say({"work": work, "batch": batch, "length": length, "note": "", **measured._asdict()})
            continue
        run, note, begun = None, "", time.perf_counter()
        while batch:
            try:
                run, extra = SIDES[options.side](options.config, work, *random_batch(options, batch, length), options)
                seconds = [run() for _ in range(options.rounds + WARM_UP)]
                break
            except Exception as error:
                if not is_out_of_memory(error) or batch == 1:
                    raise
                run = None
                batch, note = batch // 2, "out of memory with a larger batch; "
        seconds, setup = seconds[WARM_UP:], time.perf_counter() - begun - options.steps * sum(seconds[WARM_UP:])
        row = {"work": work, "batch": batch, "length": length, "seconds": seconds, "setup": setup}
        say({**row, "tokens": batch * length, "note": note + "; ".join(extra)})
        if options.profile:
            try:
                profile(run, f"{work} {batch} x {length}")
            except Exception as error:
                print(f"# {work} {batch} x {length}: no profile, {error!r}", flush=True)


def say(row: dict) -> None:
    """Prints a row for the parent process."""
    print("row", json.dumps(row), flush=True)


def random_batch(options, batch: int, length: int):
    """Ids [B, L] and labels [B] of full rows."""
    ids = np.random.default_rng(0).integers(5, options.config["vocab_size"], (batch, length)).astype("int32")
    return ids, np.arange(batch, dtype="int32") % 2


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device had too little memory."""
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()


# === Keras on JAX and TensorFlow ===


def ours(config, work, ids, labels, options, **ways):
    """The model of this package; on TensorFlow with XLA, and with cuDNN's attention where there is a GPU for it."""
    return _ours(config, work, {"input_ids": ids, "attention_mask": np.ones_like(ids)}, labels, options, **ways)


def ours_without_mask(config, work, ids, labels, options):
    """The model of this package, told that all rows are full."""
    return _ours(config, work, {"input_ids": ids}, labels, options)


def ours_plain(config, work, ids, labels, options):
    """The model of this package with logits, softmax and products of attention as separate operations."""
    from albert_tf.layers.kernels import Plain

    return ours(config, work, ids, labels, options, kernels=Plain())


def ours_in_a_loop(config, work, ids, labels, options):
    """The model of this package with its layers as a loop."""
    return ours(config, work, ids, labels, options, scan_layers=True)


def _ours(config, work, inputs, labels, options, kernels=None, **ways):
    import albert_tf

    config = albert_tf.AlbertConfig(**config)
    if work == "pretraining":
        model = albert_tf.AlbertForPreTraining(config, dtype="mixed_bfloat16")
        optimizer, (rows, length) = albert_tf.optimizers.Lamb(1e-4), inputs["input_ids"].shape
        shape = rows, min(PREDICTIONS, length)
        positions = np.tile(np.arange(shape[1], dtype="int32"), (rows, 1))
        inputs = {**inputs, "masked_lm_positions": positions}
        labels = {"masked_lm_ids": inputs["input_ids"][:, : shape[1]], "sentence_order_labels": labels}
        labels["masked_lm_weights"] = np.ones(shape, "float32")
    else:
        model = albert_tf.AlbertForSequenceClassification(config, num_labels=2, dtype="mixed_bfloat16")
        optimizer = albert_tf.optimizers.AdamW(1e-5)
    if work != "inference":
        model.compile(optimizer, **ways)
    if kernels is not None:
        model.encoder.training_kernels = model.encoder.inference_kernels = kernels
    if work == "inference":
        return keras_calls(model, inputs, options)
    return keras_steps(model.fit, inputs, labels, options), ()


def keras_hub(config, work, ids, labels, options):
    """KerasHub's classifier of the same sizes."""
    import keras

    model = keras_hub_classifier(None, "mixed_bfloat16", config)
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    if work == "training":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.AdamW(1e-5, weight_decay=0.01), loss=loss)
        # KerasHub's own prepares texts before, for which it needs TensorFlow or Grain.
        fit = functools.partial(keras.Model.fit, model)
        return keras_steps(fit, inputs, labels, options), ()
    return keras_calls(model, inputs, options)


def keras_steps(fit, inputs, labels, options) -> Callable[[], float]:
    """An epoch of `fit`; returns the seconds of a step."""
    import keras

    steps, rows = options.steps, len(inputs[next(iter(inputs))])
    tile = lambda array: np.tile(array, (steps,) + (1,) * (array.ndim - 1))  # noqa: E731
    inputs, labels = keras.tree.map_structure(tile, inputs), keras.tree.map_structure(tile, labels)

    def run():
        timer = Timer()
        fit(inputs, labels, batch_size=rows, shuffle=False, verbose=0, callbacks=[timer.callback])
        return timer.seconds / steps

    return run


class Timer:
    """The time from the first step of an epoch to the value of the last loss."""

    def __init__(self):
        import keras

        self.callback = keras.callbacks.LambdaCallback(on_epoch_begin=self._begin, on_epoch_end=self._end)
        self.seconds = self._begun = 0.0

    def _begin(self, epoch, logs=None):
        self._begun = time.perf_counter()

    def _end(self, epoch, logs=None):
        if not np.isfinite(float(logs["loss"])):
            raise RuntimeError(f"The loss became {float(logs['loss'])}.")
        self.seconds = time.perf_counter() - self._begun


def keras_calls(model, inputs, options):
    """Calls of a jitted model with its inputs and weights on the device, and what its program contains."""
    import keras

    if keras.backend.backend() == "tensorflow":
        return tensorflow_calls(model, inputs, options)
    import jax

    values = [[v.value for v in some] for some in (model.trainable_variables, model.non_trainable_variables)]
    inputs = jax.device_put(inputs)
    function = jax.jit(lambda values, inputs: model.stateless_call(*values, inputs, training=False)[0])
    compiled = function.lower(values, inputs).compile()
    kernels = compiled.as_text().count("__cudnn$fmha")

    def run():
        begun = time.perf_counter()
        for _ in range(options.steps):
            outputs = compiled(values, inputs)
        jax.block_until_ready(outputs)
        return (time.perf_counter() - begun) / options.steps

    return run, (f"{kernels} calls of cuDNN's attention",)


def tensorflow_calls(model, inputs, options):
    """The same for TensorFlow."""
    import tensorflow as tf

    inputs = {name: tf.constant(array) for name, array in inputs.items()}
    function = tf.function(lambda inputs: model(inputs, training=False), jit_compile=True)
    operations = function.get_concrete_function(inputs).graph.get_operations()
    kernels = sum(operation.type == "XlaCallModule" for operation in operations)

    def run():
        begun = time.perf_counter()
        for _ in range(options.steps):
            outputs = function(inputs)
        tf.nest.flatten(outputs)[0].numpy()  # waits for the device
        return (time.perf_counter() - begun) / options.steps

    return run, (f"{kernels} calls of cuDNN's attention",)


# === PyTorch ===


def torch(config, work, ids, labels, options):
    """transformers' classifier with PyTorch's fused attention, compiled."""
    import torch
    import transformers

    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = {name: config[name] for name in config if name in SHARED}
    settings = transformers.AlbertConfig(**settings, num_labels=2, attn_implementation="sdpa")
    model = transformers.AlbertForSequenceClassification(settings).to(device)
    inputs = {"input_ids": torch.tensor(ids).long().to(device)}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    training = work == "training"
    model = model.train() if training else model.eval().to(torch.bfloat16)
    compiled, how = _compiled(model, device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5, fused=device == "cuda")
    targets = torch.tensor(labels).long().to(device)

    def infer():
        with torch.inference_mode():
            return compiled(**inputs).logits

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = compiled(**inputs, labels=targets).loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    def run():
        begun = time.perf_counter()
        for _ in range(options.steps):
            outputs = step() if training else infer()
        if not np.isfinite(outputs.float().cpu().numpy()).all():  # waits for the device
            raise RuntimeError("The outputs are not finite.")
        return (time.perf_counter() - begun) / options.steps

    return run, (f"attention {settings._attn_implementation}", how)


def _compiled(model, device):
    """The model compiled where that works, and a note."""
    import torch

    try:
        torch.compile(lambda x: (x + 1).sin())(torch.ones(8, device=device))
    except Exception as error:
        return model, f"not compiled: {' '.join(str(error).split())[:150]}"
    return torch.compile(model, dynamic=False), "compiled"


SIDES = {
    **{side.__name__: side for side in (ours, ours_without_mask, ours_plain, keras_hub, torch)},
    **{"ours_tf": ours, "ours_tf_plain": ours_plain, "ours_tf_in_a_loop": ours_in_a_loop, "keras_hub_tf": keras_hub},
}


# === The card ===


def peak() -> dict:
    """The rate of a bfloat16 product of two matrices [8192, 8192]; on a CPU of smaller ones."""
    import jax

    device = jax.devices()[0]
    size = 512 if device.platform == "cpu" else 8192
    keys = jax.random.split(jax.random.key(0))
    left, right = (jax.random.normal(key, (size, size), "bfloat16") for key in keys)
    product = jax.jit(lambda left, right: left @ right)
    product(left, right).block_until_ready()
    seconds = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(20):
            result = product(left, right)
        result.block_until_ready()
        seconds.append((time.perf_counter() - begun) / 20)
    flops = 2 * size**3 / float(np.median(seconds))
    versions = f"JAX {jax.__version__}, Python {sys.version.split()[0]}"
    return {"device": device.device_kind, "size": size, "flops": flops, "versions": versions}


def profile(run: Callable[[], float], title: str) -> None:
    """Prints the kernels that take most of the time, for JAX."""
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            run()
        times = collections.Counter()
        for name, nanoseconds in _kernels(pathlib.Path(folder)):
            times[name] += nanoseconds
    total = sum(times.values()) or 1
    fused = sum(time for name, time in times.items() if any(word in name.lower() for word in FLASH))
    print(f"# {title}: kernels took {total / 1e6:.1f} ms, {fused / total:.1%} of it in fused attention", flush=True)
    for name, nanoseconds in times.most_common(25):
        print(f"  {nanoseconds / total:6.1%} {nanoseconds / 1e6:9.2f} ms  {name[:110]}", flush=True)


def _kernels(folder: pathlib.Path) -> Iterator[tuple[str, float]]:
    """Names and nanoseconds of what ran on the GPU, or on the CPU where there is none."""
    import jax

    for file in folder.rglob("*.xplane.pb"):
        planes = list(jax.profiler.ProfileData.from_file(str(file)).planes)
        on_gpu = [plane for plane in planes if "GPU" in plane.name]
        for plane in on_gpu or planes:
            for line in plane.lines:
                if line.name.startswith("Stream") or not on_gpu:
                    for event in line.events:
                        yield event.name, event.duration_ns


if __name__ == "__main__":
    main()
