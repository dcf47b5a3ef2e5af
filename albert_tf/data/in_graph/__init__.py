"""Making examples inside a TensorFlow graph, equal bit for bit to making them with NumPy."""
