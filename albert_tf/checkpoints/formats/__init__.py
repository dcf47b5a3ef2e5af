"""Readers of other libraries' formats, as arrays by variable path."""
