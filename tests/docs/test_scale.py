"""The page on scale: its arithmetic agrees with what was measured, and its page shows every table."""

import dataclasses
import re

import pytest

from docs import scale
from tests.small_pipeline import REPOSITORY

RESULTS = REPOSITORY / "tests/benchmarks/results"


def measured(file: str, size: str, shape: str) -> float:
    """Tokens a second of our training step on one GPU."""
    text = (RESULTS / file).read_text(encoding="utf-8")
    return float(re.search(rf"ours \| {size} \| training \| {shape} \|.*?\| ([\d,]+) \|", text)[1].replace(",", ""))


@pytest.mark.parametrize(
    ("file", "size", "shape"),
    [
        ("gpu_NVIDIA-H100_2026-11-26.md", "base", "64 x 512"),
        ("gpu_NVIDIA-H200_2026-11-26.md", "xxlarge", "16 x 512"),
    ],
)
def test_one_chip_is_as_fast_as_it_was_measured(file, size, shape):
    one = dataclasses.replace(scale.MACHINES["8 H100"], chips=1, efficiency=1.0)
    assert one.tokens_per_second(f"{size}_v2") == pytest.approx(measured(file, size, shape), rel=0.04)


def test_hours_and_cost_follow_from_tokens_per_second():
    titles, rows = scale.runs()
    cells = dict(zip(titles, next(row for row in rows if row[:2] == ("`base_v2`", "8 H100"))))
    speed = scale.MACHINES["8 H100"].tokens_per_second("base_v2")
    hours = 125_000 * 4096 * 512 / speed / 3600
    assert float(cells["published run"].removesuffix(" h")) == pytest.approx(hours, rel=0.01)
    assert float(cells["cost"].removeprefix("$").replace(",", "")) == pytest.approx(hours * 8 * 3, rel=0.01)
    assert float(cells["1 TB once"].removesuffix(" h")) == pytest.approx(
        1e12 / scale.BYTES_PER_TOKEN / speed / 3600, rel=0.01
    )
    assert len(rows) == len(scale.SIZES) * len(scale.MACHINES)


def test_shards_are_those_of_prepare(tmp_path):
    from albert_tf.data.preparation.pipeline import default_num_shards

    titles, rows = scale.corpora()
    for name, *cells in rows[:2]:
        file = tmp_path / name
        with file.open("wb") as sparse:
            sparse.truncate(int(scale.CORPORA[name]))
        assert dict(zip(titles[1:], cells))["shards"] == str(default_num_shards([file]))


@pytest.mark.parametrize(
    ("value", "shown"),
    [((0.0852,), "0.0852"), ((1234,), "1,230"), ((852,), "852"), ((2.43e12,), "2.43 T"), ((999.9e9, "B"), "1 TB")],
)
def test_numbers_have_three_digits(value, shown):
    assert scale.number(*value) == shown


def test_the_page_shows_the_assumptions():
    page = (REPOSITORY / "docs/scale.md").read_text(encoding="utf-8")
    for machine in scale.MACHINES.values():
        assert f"{machine.flops / 1e12:.0f} TFLOP/s" in page
        assert f"${machine.price:.2f}" in page
        assert f"{machine.efficiency:.0%}".replace("%", " %") in page
    for share in scale.SHARES.values():
        assert f"{share:.0%}".replace("%", " %") in page
