"""Exports for GPUs with cuDNN's attention, which is emulated where there is no GPU."""

import numpy as np
import pytest

from albert_tf import pipeline
from albert_tf.export import export_saved_model, saved_model, serve_base
from albert_tf.layers import kernels
from tests.layers.test_tensorflow_gpu import emulated  # noqa: F401

TEXTS = ["One short text.", "", "many words " * 40, "five"]
OPTIONS = {"precision": "bfloat16", "flash_attention": True}


@pytest.mark.exhaustive
def test_each_shape_calls_cudnn(folders, tmp_path, monkeypatch, emulated):  # noqa: F811
    monkeypatch.setattr(serve_base, "lacks_flash_attention", lambda: "")
    report = export_saved_model(folders["classifier"], tmp_path, "fast", **OPTIONS)
    assert set(emulated) == {"__cudnn$fmhaScaleBiasSoftmax"}
    restored = pipeline(report.folder)(TEXTS)
    expected = pipeline(folders["classifier"])(TEXTS)
    for found, wanted in zip(restored, expected, strict=True):
        scores = list(found.probabilities.values())
        np.testing.assert_allclose(scores, list(wanted.probabilities.values()), atol=saved_model.BFLOAT16_TOLERANCE)


@pytest.mark.skipif(not kernels.lacks_flash_attention(), reason="there is a GPU that has it")
@pytest.mark.parametrize(("precision", "lack"), [("float32", "precision='float32'"), ("bfloat16", "there is no GPU")])
def test_a_gpu_has_to_check_it(folders, tmp_path, precision, lack):
    with pytest.raises(ValueError, match=f"needs precision='bfloat16', and a GPU that has it, but {lack}"):
        export_saved_model(folders["classifier"], tmp_path, "fast", precision=precision, flash_attention=True)
    assert not any(tmp_path.rglob("*.pb"))
