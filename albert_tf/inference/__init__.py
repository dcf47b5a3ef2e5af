"""From texts to predictions: one encode and one decode for each task, and what computes the network between them."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.inference.folder import ModelFolder, load_folder
    from albert_tf.inference.loading import is_saved_model, load_model, load_onnx, load_saved_model
    from albert_tf.inference.network import Network
    from albert_tf.inference.predictor import LoadedModel, Predictor
    from albert_tf.tasks.predictions import (
        AnswerPrediction,
        ClassPrediction,
        Entity,
        LabelsPrediction,
        MaskPrediction,
    )
    from albert_tf.tasks.settings import Settings

_MODULE_OF = {
    "AnswerPrediction": ".tasks.predictions",
    "ClassPrediction": ".tasks.predictions",
    "Entity": ".tasks.predictions",
    "LabelsPrediction": ".tasks.predictions",
    "LoadedModel": "predictor",
    "MaskPrediction": ".tasks.predictions",
    "ModelFolder": "folder",
    "Network": "network",
    "Predictor": "predictor",
    "Settings": ".tasks.settings",
    "is_saved_model": "loading",
    "load_folder": "folder",
    "load_model": "loading",
    "load_onnx": "loading",
    "load_saved_model": "loading",
}

__all__ = [
    "AnswerPrediction",
    "ClassPrediction",
    "Entity",
    "LabelsPrediction",
    "LoadedModel",
    "MaskPrediction",
    "ModelFolder",
    "Network",
    "Predictor",
    "Settings",
    "is_saved_model",
    "load_folder",
    "load_model",
    "load_onnx",
    "load_saved_model",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
