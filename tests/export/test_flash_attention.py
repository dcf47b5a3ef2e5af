"""Exports for GPUs with cuDNN's attention, which is emulated where there is no GPU."""

import numpy as np
import pytest

from albert_tf import pipeline
from albert_tf.export import export_saved_model, saved_model
from albert_tf.layers import kernels
from tests.layers.test_cudnn import emulated  # noqa: F401

TEXTS = ["One short text.", "", "many words " * 40, "five"]
OPTIONS = {"precision": "bfloat16", "xla": True, "flash_attention": True}


@pytest.mark.exhaustive
def test_each_shape_calls_cudnn(folders, tmp_path, monkeypatch, emulated):  # noqa: F811
    monkeypatch.setattr(saved_model, "lacks_flash_attention", lambda: "")
    report = export_saved_model(folders["classifier"], tmp_path, "fast", **OPTIONS)
    assert set(emulated) == {"__cudnn$fmhaScaleBiasSoftmax"}
    restored = pipeline(report.folder)(TEXTS)
    expected = pipeline(folders["classifier"])(TEXTS)
    for found, wanted in zip(restored, expected, strict=True):
        scores = list(found.probabilities.values())
        np.testing.assert_allclose(scores, list(wanted.probabilities.values()), atol=saved_model.BFLOAT16_TOLERANCE)


@pytest.mark.parametrize("changes", [{"precision": "float32"}, {"xla": False}])
def test_what_it_needs(folders, tmp_path, changes):
    with pytest.raises(ValueError, match="needs precision='bfloat16' and xla=True"):
        export_saved_model(folders["classifier"], tmp_path, "fast", **{**OPTIONS, **changes})


@pytest.mark.skipif(not kernels.lacks_flash_attention(), reason="there is a GPU that has it")
def test_a_gpu_has_to_check_it(folders, tmp_path):
    with pytest.raises(ValueError, match="is checked on a GPU that has it, but there is no GPU; leave it out"):
        export_saved_model(folders["classifier"], tmp_path, "fast", **OPTIONS)
    assert not any(tmp_path.iterdir())
