"""Callbacks of `fit` and `evaluate` that let steps be queued on an accelerator."""

import math
import time

import keras

_SECONDS_BETWEEN_READS = 1.0


class QueuedCallbacks(keras.callbacks.CallbackList):
    """Reads the logs of a step only where a callback takes them; Keras does after every step, and so waits for it.

    The progress bar counts every step, and shows the logs once a second.
    """

    def __init__(self, callbacks, **options):
        super().__init__(callbacks, **options)
        self._is_counted, self._read_at = False, -math.inf

    def on_train_begin(self, logs=None):
        self._count_steps()
        super().on_train_begin(logs)

    def on_test_begin(self, logs=None):
        self._count_steps()
        super().on_test_begin(logs)

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs if self._takes_logs("on_train_batch_end") else None)

    def on_test_batch_end(self, batch, logs=None):
        super().on_test_batch_end(batch, logs if self._takes_logs("on_test_batch_end") else None)

    def _count_steps(self) -> None:
        """Tells callbacks the number of steps, which is known once Keras has opened the data."""
        if not self._is_counted:
            self._is_counted = True
            self.set_params({**self.params, "steps": self.model.num_batches})

    def _takes_logs(self, method: str) -> bool:
        takers = [callback for callback in self.callbacks if _has_own(callback, method)]
        if not all(isinstance(taker, keras.callbacks.ProgbarLogger) for taker in takers):
            return True
        if not takers or time.monotonic() < self._read_at + _SECONDS_BETWEEN_READS:
            return False
        self._read_at = time.monotonic()
        return True


def _has_own(callback, method: str) -> bool:
    """Whether a callback overrides one of these methods, in its class or, as a LambdaCallback, on itself."""
    base = keras.callbacks.Callback
    methods = (method, "on_batch_end")
    return any(getattr(getattr(callback, name), "__func__", None) is not getattr(base, name) for name in methods)
