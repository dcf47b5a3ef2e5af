"""Reports about runs: HTML pages."""

from albert_tf.report.page import RunReport, write_report

__all__ = ["RunReport", "write_report"]
