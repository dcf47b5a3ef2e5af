"""The tasks: a table of them, and for each a folder with its settings, its examples, how they are encoded, and how the
outputs of a model are decoded and evaluated. None of it needs Keras or TensorFlow.
"""

from albert_tf.tasks.table import HEADS, TASKS, Task, find_task, smallest_task

__all__ = ["HEADS", "TASKS", "Task", "find_task", "smallest_task"]
