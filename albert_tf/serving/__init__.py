"""Serving of exported models over HTTP and gRPC, with the interfaces of TensorFlow Serving."""
