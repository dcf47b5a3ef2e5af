"""Export to SavedModels, which run without `albert_tf`, to ONNX, TF Hub and LiteRT; and what predicts from raw text.

The names that predict are those of `albert_tf.inference`: `classify(model, texts)` is `model.classify(texts)`.
"""

from typing import TYPE_CHECKING, Any

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.export.hub import HubEncoder, HubReport, export_hub
    from albert_tf.export.litert import write_litert
    from albert_tf.export.onnx_folder import OnnxReport, export_onnx
    from albert_tf.export.saved_model import ExportReport, export_saved_model
    from albert_tf.inference import (
        AnswerPrediction,
        ClassPrediction,
        Entity,
        MaskPrediction,
        ModelFolder,
        is_saved_model,
        load_folder,
        load_saved_model,
    )
    from albert_tf.inference import LoadedModel as RestoredModel
    from albert_tf.inference.predictor import Predictor

    answer_questions = Predictor.answer_questions
    choose = Predictor.choose
    classify = Predictor.classify
    embed = Predictor.embed
    fill_mask = Predictor.fill_mask
    find_entities = Predictor.find_entities
    sentence_order = Predictor.sentence_order

_MODULE_OF = {
    "ExportReport": "saved_model",
    "HubEncoder": "hub",
    "HubReport": "hub",
    "OnnxReport": "onnx_folder",
    "export_hub": "hub",
    "export_onnx": "onnx_folder",
    "export_saved_model": "saved_model",
    "write_litert": "litert",
}
_PREDICTORS = ("answer_questions", "choose", "classify", "embed", "fill_mask", "find_entities", "sentence_order")

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

_get_own, _ = lazy_names(__name__, _MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in __all__ or name in _MODULE_OF:
        return _get_own(name)
    from albert_tf import inference

    if name in _PREDICTORS:
        return getattr(inference.Predictor, name)
    return getattr(inference, {"RestoredModel": "LoadedModel"}.get(name, name))


def __dir__() -> list[str]:
    return __all__
