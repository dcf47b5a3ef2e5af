"""Workers give the same results in the same order in this process and in others, and a death is told."""

import os

import pytest

from albert_tf.data.workers import Workers


def scaled(context, item, report):
    report(item)
    return context * item


def failing(context, item, report):
    raise ValueError(f"item {item}")


def dying(context, item, report):
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_in_order_and_all_progress(processes):
    reported = []
    with Workers(10, processes) as workers:
        results = list(workers.map(scaled, range(20), reported.append))
    assert results == [10 * item for item in range(20)]
    assert sum(reported) == sum(range(20))


@pytest.mark.parametrize("processes", [1, 2])
def test_errors_of_functions_come_out(processes):
    with Workers(None, processes) as workers, pytest.raises(ValueError, match="item 0"):
        list(workers.map(failing, range(5), print))


def test_a_worker_that_dies_is_told():
    with Workers(None, 2) as workers, pytest.raises(RuntimeError, match="one of 2 died"):
        list(workers.map(dying, range(5), print))
