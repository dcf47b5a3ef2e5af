"""Serving of exported models over HTTP, with TensorFlow Serving's REST interface."""
