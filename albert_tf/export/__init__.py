"""Export to SavedModels, which run without `albert_tf`, to ONNX, TF Hub and LiteRT.

What predicts is in `albert_tf.inference`; its names can still be imported from here, where `classify(model, texts)` is
`model.classify(texts)`.
"""

from typing import TYPE_CHECKING, Any

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.export.hub import HubEncoder, HubReport, export_hub
    from albert_tf.export.litert import LiteRTReport, export_litert, write_litert
    from albert_tf.export.onnx_folder import OnnxReport, export_onnx
    from albert_tf.export.saved_model import ExportReport, export_saved_model

_MODULE_OF = {
    "ExportReport": "saved_model",
    "HubEncoder": "hub",
    "HubReport": "hub",
    "LiteRTReport": "litert",
    "OnnxReport": "onnx_folder",
    "export_hub": "hub",
    "export_litert": "litert",
    "export_onnx": "onnx_folder",
    "export_saved_model": "saved_model",
    "write_litert": "litert",
}
# These are at home in `albert_tf.inference`; a function's first argument is the model, whose method it is.
_OF_INFERENCE = (
    *("AnswerPrediction", "ClassPrediction", "Entity", "MaskPrediction", "ModelFolder"),
    *("is_saved_model", "load_folder", "load_saved_model"),
)
_METHODS = ("answer_questions", "choose", "classify", "embed", "fill_mask", "find_entities", "sentence_order")

__all__ = [
    "ExportReport",
    "HubEncoder",
    "HubReport",
    "LiteRTReport",
    "OnnxReport",
    "export_hub",
    "export_litert",
    "export_onnx",
    "export_saved_model",
    "write_litert",
]

_get_exporter, __dir__ = lazy_names(__name__, _MODULE_OF)


def __getattr__(name: str) -> Any:
    from albert_tf import inference

    if name in _METHODS:
        return getattr(inference.Predictor, name)
    return getattr(inference, name) if name in _OF_INFERENCE else _get_exporter(name)
