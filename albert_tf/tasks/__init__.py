"""The tasks: a table of them, and for each a folder with its settings, its examples, how they are encoded, and how the
outputs of a model are decoded and evaluated. None of it needs Keras or TensorFlow.
"""
