r"""Peak memory of inference and of a training step: plain, with activations computed again, and with microbatches.

python -m tests.benchmarks.memory [--presets base_v2] [--ways inference plain] [--rows 8] [--length 128]

What fits in a machine:
python -m tests.benchmarks.memory --presets base_v2 large_v2 xlarge_v2 --ways inference plain 'remat="block"' \
    --rows 1 --length 512

Each way runs in a process of its own. Printed are the resident memory of the process at its peak in three steps, how
much of that was added to what it had with the model and its optimizer made, and the time of the fastest step.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import time

INFERENCE = "inference"
WAYS = {
    INFERENCE: {},
    "plain": {},
    'remat="block"': {"remat": "block"},
    "remat=4": {"remat": 4},
    "4 parts": {"gradient_accumulation_steps": 4},
    '4 parts, remat="block"': {"gradient_accumulation_steps": 4, "remat": "block"},
}


def measure(options: argparse.Namespace) -> dict[str, float]:
    """One way, in this process."""
    from albert_tf import AlbertConfig, AlbertForPreTraining
    from albert_tf.optimizers import Lamb
    from tests.benchmarks.random_batches import random_batches

    (preset,), (way,) = options.presets, options.ways
    config = AlbertConfig.from_preset(preset)
    model = AlbertForPreTraining(config)
    model.compile(Lamb(1e-3), jit_compile=options.jit, **WAYS[way])
    data = random_batches(config.vocab_size, options.rows, options.length)
    if way == INFERENCE:
        batch = {name: value.numpy() for name, value in next(iter(data))[0].items()}
        return peak(lambda: model.predict(batch, verbose=0))
    model.optimizer.build(model.trainable_variables)
    return peak(lambda: model.fit(data, steps_per_epoch=1, shuffle=False, verbose=0))


def peak(step) -> dict[str, float]:
    """Megabytes, at the peak of three steps and of them those added by the steps, and seconds of the fastest."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before, seconds = _resident("VmRSS"), []
    for _ in range(3):
        begun = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begun)
    highest = _resident("VmHWM")
    return {"peak": highest, "added": highest - before, "seconds": min(seconds)}


def in_own_process(module: str, *arguments: str) -> dict[str, float]:
    """What `python -m module --worker` with these arguments measures."""
    command = [sys.executable, "-m", module, "--worker", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _resident(field: str) -> float:
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def main() -> None:
    """Prints one line for each preset and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["base_v2"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--worker", action="store_true", help="measure in this process")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options)))
        return
    shape = ["--rows", str(options.rows), "--length", str(options.length), *(["--jit"] if options.jit else [])]
    for preset, way in itertools.product(options.presets, options.ways):
        found = in_own_process("tests.benchmarks.memory", "--presets", preset, "--ways", way, *shape)
        sizes = f"{found['peak']:7.0f} MB, {found['added']:7.0f} MB added"
        print(f"{preset:10} {way:24} {sizes} {found['seconds']:7.2f} s", flush=True)


if __name__ == "__main__":
    main()
