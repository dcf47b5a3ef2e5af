"""Measures ALBERT-base beside other implementations: inference and a training step, full rows, all sides in turns.

    make bench-peers                      # with KerasHub and transformers, in environments of their own
    python tests/benchmarks/speed.py --rounds 9 --output tests/benchmarks/results

Every side is a process that waits while another one runs. Written are medians, their spread, and the ratio of medians
to ours in Keras with the same data type; "products" are the encoder's matrix products alone. Run nothing else beside
it.

Letters: B batch, L sequence.
"""

import argparse
import contextlib
import dataclasses
import datetime
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

WORKER = pathlib.Path(__file__).with_name("speed_worker.py")
ROOT = pathlib.Path(__file__).parents[2]
PYTHONS = {
    "keras_hub": ROOT / ".venv-parity-keras_hub/bin/python",
    "torch": ROOT / ".venv-parity-transformers/bin/python",
}
SHAPES = {"inference": ((1, 128), (8, 128), (4, 512)), "training": ((8, 128), (2, 512))}
DTYPES = ("float32", "bfloat16", "int8")
KERAS = ("products", "ours", "keras_hub", "torch")
SIDES = {
    "inference": {
        "float32": (*KERAS, "saved_model", "openvino", "onnxruntime"),
        "bfloat16": (*KERAS, "saved_model", "openvino"),
        "int8": ("openvino", "onnxruntime"),
    },
    "training": {"float32": KERAS, "bfloat16": KERAS},
}


@dataclasses.dataclass(frozen=True)
class Row:
    """The times of one side, in seconds."""

    side: str
    dtype: str
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def main() -> None:
    """Parses the command line, measures, prints, and writes the tables if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--work", choices=("inference", "training"), nargs="+", default=["inference", "training"])
    parser.add_argument("--dtypes", choices=DTYPES, nargs="+", default=DTYPES)
    parser.add_argument("--shapes", nargs="+", help="only these, such as 8x128")
    parser.add_argument("--output", type=pathlib.Path, help="folder for a file of results and its plot")
    parser.add_argument("--plot", type=pathlib.Path, help="only draw the plot of this file of results")
    options = parser.parse_args()
    if options.plot:
        plot(options.plot)
        return
    tables = [
        f"# base_v2 on {_processor()}, {datetime.date.today()}\n\nMilliseconds, {options.rounds} rounds in turns.\n"
    ]
    with tempfile.TemporaryDirectory() as folder:
        exported = export(pathlib.Path(folder))
        for work in options.work:
            for batch, length in SHAPES[work]:
                if options.shapes and f"{batch}x{length}" not in options.shapes:
                    continue
                rows = measure(work, batch, length, options.dtypes, options.rounds, exported)
                tables.append(table(f"{work}, {batch} x {length}", rows))
                print(tables[-1], flush=True)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        name = f"base_v2_{_processor().replace(' ', '-')}_{datetime.date.today()}.md"
        (options.output / name).write_text("\n".join(tables), encoding="utf-8")
        plot(options.output / name)


def export(folder: pathlib.Path) -> pathlib.Path:
    """Exports a classifier of base_v2 with random weights; returns the folder of the exports.

    They are `onnx` and, with constants in place of variables, `saved_model_float32` and `saved_model_bfloat16`.
    """
    script = """if True:
        import sys, albert_tf, numpy
        from albert_tf.export import export_onnx, export_saved_model
        config = albert_tf.AlbertConfig.from_preset("base_v2")
        model = albert_tf.AlbertForSequenceClassification(config, num_labels=2)
        for variable in model.weights:  # engines drop the biases of a new model, which are zeros
            variable.assign(variable + numpy.random.default_rng(0).normal(0, 0.02, variable.shape))
        model.save_pretrained(f"{sys.argv[1]}/model")
        albert_tf.AlbertTokenizer.english().save_pretrained(f"{sys.argv[1]}/model")
        export_onnx(f"{sys.argv[1]}/model", f"{sys.argv[1]}/exports", "onnx")
        for precision in ("float32", "bfloat16"):
            name = f"saved_model_{precision}"
            export_saved_model(f"{sys.argv[1]}/model", f"{sys.argv[1]}/exports", name, precision=precision, frozen=True)
    """
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder / "exports"


def measure(work, batch, length, dtypes, rounds, folder) -> list[Row]:
    """All sides of a table, in turns."""
    with contextlib.ExitStack() as stack:
        sides = [(side, dtype) for dtype in dtypes for side in SIDES[work].get(dtype, ())]
        workers = {
            (side, dtype): stack.enter_context(worker(side, work, batch, length, dtype, folder))
            for side, dtype in sides
            if PYTHONS.get(side, ROOT).exists()
        }
        rows = {key: Row(*key, []) for key in workers}
        for _ in range(rounds):
            for key, process in workers.items():
                print("go", file=process.stdin, flush=True)
                rows[key].seconds.append(float(process.stdout.readline()))
    return list(rows.values())


@contextlib.contextmanager
def worker(side, work, batch, length, dtype, folder) -> Iterator[subprocess.Popen]:
    """A process that has built its model."""
    command = [PYTHONS.get(side, sys.executable), WORKER, side, work, "--dtype", dtype, "--folder", folder]
    command = [*map(str, command), "--batch", str(batch), "--length", str(length)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            if process.stdout.readline().strip() != "ready":
                raise SystemExit(f"{side} failed; run it alone: {' '.join(command)}")
            yield process
        finally:
            process.kill()


def table(title: str, rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [f"## {title}\n", "| | median | lowest - highest | times as fast is ours |", "|---|---|---|---|"]
    ours = {row.dtype: row.median for row in rows if row.side == "ours"}
    for row in rows:
        low, high, reference = min(row.seconds), max(row.seconds), ours.get(row.dtype, ours.get("float32"))
        ratio = f"{row.median / reference:.2f}" if reference else ""
        lines.append(
            f"| {row.side} {row.dtype} | {row.median * 1e3:.0f} | {low * 1e3:.0f} - {high * 1e3:.0f} | {ratio} |"
        )
    return "\n".join([*lines, ""])


def plot(results: pathlib.Path) -> None:
    """Draws a file of results beside it, as SVG: how many times as fast as KerasHub in float32 each side is."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "speed", "svg.fonttype": "none"})  # the same, small file for the same numbers
    title, *parts = results.read_text(encoding="utf-8").split("\n## ")
    figure, axes = plt.subplots(1, len(parts), figsize=(2.4 * len(parts), 2.6), constrained_layout=True)
    for axis, part in zip(axes, parts, strict=True):
        name, *lines = part.splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:]] for line in lines if line.startswith("| ")][1:]
        medians = {side: float(median) for side, median, *_ in cells}
        sides = list(medians)[::-1]
        ratios = [medians["keras_hub float32"] / medians[side] for side in sides]
        colors = ["tab:blue" if side.startswith("ours") else "lightgrey" for side in sides]
        axis.bar_label(axis.barh(sides, ratios, color=colors), fmt="%.2f", fontsize=6)
        axis.axvline(1, color="grey", linewidth=0.5)
        axis.set_title(name, fontsize=8)
        axis.set_xlim(0, 1.2 * max(ratios))
        axis.tick_params(labelsize=6)
    figure.suptitle(f"times as fast as KerasHub in float32: {title.splitlines()[0].lstrip('# ')}", fontsize=8)
    figure.savefig(results.with_suffix(".svg"), metadata={"Date": None})


def _processor() -> str:
    """The processor's name and how many there are."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
