"""Proves that the page of an ONNX folder is complete and loads nothing from elsewhere; `make parity-web` opens it."""

import json
import re

import pytest

from albert_tf.export import export_onnx
from albert_tf.export.web_page import PLAYGROUND

FILES = {"index.html", "playground.js", "in_browser.js", "package.json"}


def test_the_page_is_beside_the_model(folders, tmp_path):
    report = export_onnx(folders["classifier"], tmp_path, "m", precisions=("float32",), web_page=True)
    assert set(json.loads((report.folder / "model.json").read_text())["files"]) >= FILES
    page = (report.folder / "index.html").read_text()
    assert re.findall(r'src="(.*?)"', page) == ["in_browser.js", "playground.js"]
    assert 'data-pipeline="text-classification"' in page
    for name in FILES - {"playground.js"}:
        assert "://" not in (report.folder / name).read_text(), name
    script = (report.folder / "in_browser.js").read_text()
    setup = json.loads((report.folder / "package.json").read_text())["scripts"]["setup"]
    for name in ("transformers.min.js", "ort-wasm-simd-threaded"):
        assert name in script
        assert name in setup


def test_only_tasks_of_transformers_js_have_a_page(folders, tmp_path):
    with pytest.raises(ValueError, match=r"transformers\.js runs .* Received: token_classification; .*--format onnx"):
        export_onnx(folders["tags"], tmp_path, "m", web_page=True)
    with pytest.raises(ValueError, match="Received: question_answering with the beam head"):
        export_onnx(folders["questions_beam"], tmp_path, "m", web_page=True)
    assert not any(tmp_path.iterdir())


def test_other_onnx_folders_have_none(folders, tmp_path):
    folder = export_onnx(folders["classifier"], tmp_path, "m", precisions=("float32",)).folder
    assert not FILES & {path.name for path in folder.iterdir()}
    assert {path.name for path in PLAYGROUND.iterdir()} == FILES
