"""Training vocabularies."""
