"""Export to SavedModels, which run without `albert_tf`, to ONNX, TF Hub and LiteRT."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.export.hub import export_hub
    from albert_tf.export.litert import LiteRTReport, export_litert
    from albert_tf.export.onnx_folder import OnnxReport, export_onnx
    from albert_tf.export.saved_model import ExportReport, export_saved_model

__all__ = [
    "ExportReport",
    "LiteRTReport",
    "OnnxReport",
    "export_hub",
    "export_litert",
    "export_onnx",
    "export_saved_model",
]
__getattr__, __dir__ = lazy_names(__name__)
