"""Formats of other libraries; each module reads files of one into arrays by our variable paths."""
