"""A machine that is taken away says so with SIGTERM: the run saves its state at the end of the step, and stops."""

import signal
import threading


class PreemptionNotice:
    """Takes note of SIGTERM while it is open.

    Example:

    >>> with PreemptionNotice() as notice:
    ...     notice.received
    False
    """

    def __init__(self):
        self.received = False

    def __enter__(self) -> "PreemptionNotice":
        # Python lets the main thread alone take signals; elsewhere a run can only be killed.
        self._takes_signals = threading.current_thread() is threading.main_thread()
        if self._takes_signals:
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_) -> None:
        if self._takes_signals:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, *_) -> None:
        self.received = True
