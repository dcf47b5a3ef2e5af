"""Vocabulary files (WordPiece and word-end pieces), in Python and in a TensorFlow graph."""
