"""Proves that the page about a run shows the run's own numbers and loads nothing, and what TensorBoard gets."""

import html.parser
import json
import re
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from albert_tf.report import write_report
from albert_tf.report.curves import curves_svg
from albert_tf.trainer import parse_recipe, pretrain
from albert_tf.trainer.callbacks import TensorBoardLog
from albert_tf.trainer.run_folder import read_metrics
from tests.small_pipeline import small_recipe

EVERY = {"num_train_steps": 12, "log_every": 3, "evaluate_every": 6, "save_every": 6}


@pytest.fixture(scope="module")
def values(pipeline):
    recipe = small_recipe(pipeline, **EVERY)
    recipe["optimizer"] |= {"log_trust_ratios": True, "num_warmup_steps": 1}
    return recipe


@pytest.fixture(scope="module")
def run(values, tmp_path_factory):
    """The folder of a finished run, with a name that HTML has to escape."""
    folder = tmp_path_factory.mktemp("report") / "<run> & co"
    pretrain(parse_recipe(values), folder, show_progress=False)
    return folder


class Page(html.parser.HTMLParser):
    """The tables' facts by name, tags, attributes and text."""

    def __init__(self, text: str):
        super().__init__()
        self.facts = dict(re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", text))
        self.attributes, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(run):
    return Page(write_report(run).file.read_text(encoding="utf-8"))


def test_nothing_is_loaded(page):
    names = {name for name, _ in page.attributes}
    assert not {"script", "link", "img", "iframe", "image", "object", "embed"} & set(page.tags)
    assert not names & {"src", "srcset", "href", "data"}
    assert all(value.startswith("#") for name, value in page.attributes if name == "xlink:href")
    assert not any("://" in (value or "") for _, value in page.attributes)
    assert not any(re.search(r"url\((?!#)", value or "") for _, value in page.attributes)


def test_names_are_escaped(page, run):
    assert run.name in page.texts
    assert "run" not in page.tags


def test_speed_results_and_configuration_are_those_of_the_run(page, run):
    later = read_metrics(run / "metrics.jsonl")[1:]
    assert page.facts["tokens per second"] == f"{np.median([entry['tokens_per_second'] for entry in later]):,.0f}"
    assert page.facts["seconds per step"] == f"{np.median([entry['seconds_per_step'] for entry in later]):.4g}"
    share = np.median([entry["input_wait_share"] for entry in later])
    assert page.facts["input wait, fraction of a step"] == f"{share:.2%}"
    results = json.loads((run / "results.json").read_text())
    assert all(page.facts[name] == f"{value:.6g}" for name, value in results.items())
    assert (page.facts["training.batch_size"], page.facts["optimizer.name"]) == ("16", "lamb")
    assert "12 of 12 updates." in page.texts


def test_curves_go_through_the_logged_values(run):
    entries = read_metrics(run / "metrics.jsonl")
    svg = curves_svg(entries)
    for name in ("loss", "val_loss", "masked_lm_accuracy", "learning_rate", "input_wait_share"):
        path = re.search(rf'<g id="curve-{name}">\s*<path d="([^"]*)"', svg)[1]
        drawn = np.array(re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path), float)
        logged = np.array([(entry["step"], entry[name]) for entry in entries if name in entry])
        assert drawn.shape == logged.shape
        for axis, upwards in ((0, 1), (1, -1)):  # a picture counts downwards
            slope, offset = np.polyfit(logged[:, axis], drawn[:, axis], 1)
            assert slope * upwards > 0
            np.testing.assert_allclose(slope * logged[:, axis] + offset, drawn[:, axis], atol=1e-3)


def test_trust_ratios_are_summed_up(run):
    entry = read_metrics(run / "metrics.jsonl")[0]
    ratios = [value for name, value in entry.items() if name.startswith("trust_ratio/")]
    assert len(ratios) > 10
    svg = curves_svg([{"step": 1.0, "trust_ratio/a": 1.0, "trust_ratio/b": 3.0, "trust_ratio/c": 2.0}])
    assert re.findall(r'id="curve-trust_ratio/(\w+)"', svg) == ["smallest", "median", "largest"]


def test_a_run_that_has_just_begun_has_a_page(values, tmp_path):
    recipe = parse_recipe(values).model_dump(mode="json")
    (tmp_path / "recipe.json").write_text(json.dumps(recipe))
    report = write_report(tmp_path, tmp_path / "page.html")
    assert (report.step, report.total, report.speed, report.results) == (0, 12, None, {})
    text = report.file.read_text(encoding="utf-8")
    assert "No interval has been logged yet" in text
    assert "The run is not finished" in text


def test_what_cannot_be_written_is_refused(run, tmp_path):
    with pytest.raises(ValueError, match=r"not a run folder \(no recipe\.json\)"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match=r"`output` must not be a file that is read.*metrics\.jsonl; give another"):
        write_report(run, run / "metrics.jsonl")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("recipe.json", "[1]", "holds list where an object is expected"),
        ("recipe.json", "{", "is not valid JSON"),
        ("metrics.jsonl", "loss 3\n", "line 1, is not valid JSON"),
        ("metrics.jsonl", '{"step": 1, "loss": 2}\n[]\n', "line 2, holds list"),
        ("metrics.jsonl", '{"step": 1, "loss": [2]}\n', "line 1, has .* a value that is not a number"),
        ("metrics.jsonl", '{"loss": 2}\n', "line 1, has no step"),
        ("results.json", "3", "holds int"),
        ("metrics.json", "null", "holds NoneType"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(tmp_path, name, content, message):
    (tmp_path / "recipe.json").write_text('{"training": {"num_train_steps": "ten"}}')
    assert write_report(tmp_path, tmp_path / "page.html").total is None
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{tmp_path}/{name}.*{message}"):
        write_report(tmp_path)


def test_a_page_needs_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"Curves need matplotlib, .*; run: pip install '.*\[report\]'"):
        write_report(run, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


# === TensorBoard ===


def test_logs_are_written_without_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((2, 3)), np.ones(2), callbacks=[TensorBoardLog(tmp_path)], verbose=0)
    monkeypatch.undo()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert "train/loss" in events.Tags()["tensors"]


@pytest.fixture(scope="module")
def events(run):
    accumulator = EventAccumulator(str(run / "logs"), size_guidance={"tensors": 0})
    accumulator.Reload()
    return accumulator


def test_tensorboard_gets_every_scalar_over_updates(run, events):
    entries = read_metrics(run / "metrics.jsonl")
    tags = ["train/loss", "held_out/val_masked_lm_loss", "train/learning_rate", "gradients/gradient_norm"]
    tags += ["speed/tokens_per_second", "speed/input_wait_share", "speed/seconds_per_step"]
    names = {tag.replace("/val_", "/"): tag.partition("/")[2] for tag in tags}
    names |= {name: name for name in entries[0] if name.startswith("trust_ratio/")}
    for tag, name in names.items():
        assert events.SummaryMetadata(tag).plugin_data.plugin_name == "scalars"
        logged = [(entry["step"], entry[name]) for entry in entries if name in entry]
        written = [(event.step, tf.make_ndarray(event.tensor_proto)) for event in events.Tensors(tag)]
        np.testing.assert_allclose(written, logged, rtol=1e-6)


@pytest.mark.exhaustive
def test_the_progress_line_says_how_fast_and_how_long(values, tmp_path, capsys):
    training = {**values["training"], "num_train_steps": 6}
    pretrain(parse_recipe({**values, "training": training}), tmp_path / "run")
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("pretrain ")]
    pattern = r"pretrain \d+/6  loss \d\.\d+  \d+\.\dk tokens/s  \S+ s/step  input wait \d+\.\d%(  \d+ s left)?"
    assert len(lines) >= 2  # one after ten seconds, too, which may be that of the first step, before any was timed
    assert lines[-1].startswith("pretrain 6/6 ")
    assert lines[-1].endswith("  0 s left")
    assert all(re.fullmatch(pattern, line) for line in lines), lines
