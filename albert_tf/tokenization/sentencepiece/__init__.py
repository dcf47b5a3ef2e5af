"""SentencePiece vocabularies, in Python and in a TensorFlow graph."""
