"""The train and test steps of `model.fit` and `model.evaluate` on TensorFlow, under any tf.distribute strategy."""

from albert_tf.training_step.accumulation import check_rows
from albert_tf.training_step.array_data import dataset_of
from albert_tf.training_step.execution import for_each_shape
from albert_tf.training_step.queued_callbacks import QueuedCallbacks
from albert_tf.training_step.step import make_test_function, make_train_function, warn_of_changed_variables
from albert_tf.training_step.step_monitor import StepMonitor, StepSnapshot

__all__ = [
    "QueuedCallbacks",
    "StepMonitor",
    "StepSnapshot",
    "check_rows",
    "dataset_of",
    "for_each_shape",
    "make_test_function",
    "make_train_function",
    "warn_of_changed_variables",
]
