"""Prediction from raw text, and export to SavedModels, which run without `albert_tf`, and to ONNX files."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.export.folder import ModelFolder, load_folder
    from albert_tf.export.hub import HubEncoder, HubReport, export_hub
    from albert_tf.export.litert import write_litert
    from albert_tf.export.loaded import RestoredModel, load_saved_model
    from albert_tf.export.onnx_folder import OnnxReport, export_onnx
    from albert_tf.export.prediction import choose, classify, embed, fill_mask, sentence_order
    from albert_tf.export.results import ClassPrediction, MaskPrediction, is_saved_model
    from albert_tf.export.saved_model import ExportReport, export_saved_model
    from albert_tf.export.spans import AnswerPrediction, Entity, answer_questions, find_entities

_MODULE_OF = {
    "AnswerPrediction": "spans",
    "ClassPrediction": "results",
    "Entity": "spans",
    "ExportReport": "saved_model",
    "HubEncoder": "hub",
    "HubReport": "hub",
    "MaskPrediction": "results",
    "ModelFolder": "folder",
    "OnnxReport": "onnx_folder",
    "RestoredModel": "loaded",
    "answer_questions": "spans",
    "choose": "prediction",
    "classify": "prediction",
    "embed": "prediction",
    "export_hub": "hub",
    "export_onnx": "onnx_folder",
    "export_saved_model": "saved_model",
    "fill_mask": "prediction",
    "find_entities": "spans",
    "is_saved_model": "results",
    "load_folder": "folder",
    "load_saved_model": "loaded",
    "sentence_order": "prediction",
    "write_litert": "litert",
}

__all__ = [
    "AnswerPrediction",
    "ClassPrediction",
    "Entity",
    "ExportReport",
    "HubEncoder",
    "HubReport",
    "MaskPrediction",
    "ModelFolder",
    "OnnxReport",
    "RestoredModel",
    "answer_questions",
    "choose",
    "classify",
    "embed",
    "export_hub",
    "export_onnx",
    "export_saved_model",
    "fill_mask",
    "find_entities",
    "is_saved_model",
    "load_folder",
    "load_saved_model",
    "sentence_order",
    "write_litert",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
