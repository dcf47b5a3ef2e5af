"""Reports about runs: HTML pages and plots, imported on first use."""

from typing import TYPE_CHECKING

from albert_tf.lazy import lazy_names

if TYPE_CHECKING:
    from albert_tf.report.curves import plot_losses
    from albert_tf.report.page import RunReport, write_report

_MODULE_OF = {"RunReport": "page", "plot_losses": "curves", "write_report": "page"}

__all__ = ["RunReport", "plot_losses", "write_report"]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
