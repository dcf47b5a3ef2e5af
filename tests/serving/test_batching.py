"""Proves that rows of many requests share batches of similar length, and that each request gets its own answers."""

import asyncio

import numpy as np
import pytest

from albert_tf.serving.batching import Batcher
from albert_tf.serving.errors import QueueFullError
from albert_tf.serving.metrics import Metrics
from albert_tf.serving.options import ServerOptions
from tests.serving.toy_server import ToyEngine, run, shares


def texts(*values):
    return {"text": np.array([value.encode() for value in values], object)}


def batcher_of(engine, **options):
    return Batcher("toy", engine, ServerOptions(**options), Metrics())


def answered(requests, seconds=0.0, signature="serving_default", **options):
    """Answers of requests that are sent at once, exceptions included, and the engine."""

    async def scenario():
        engine = ToyEngine(seconds)
        batcher = batcher_of(engine, **options)
        sent = (batcher.run(signature, request) for request in requests)
        answers = await asyncio.gather(*sent, return_exceptions=True)
        waiting = batcher.waiting
        batcher.close()
        return answers, engine, waiting

    return run(scenario)


def sizes(engine):
    return [len(batch["text"]) for batch in engine.batches]


def test_requests_share_a_batch_and_get_their_own_rows():
    requests = [texts("aa", "bb"), texts("ab"), texts("aab", "xyz", "i")]
    answers, engine, _ = answered(requests)
    assert sizes(engine) == [6]
    for request, answer in zip(requests, answers):
        np.testing.assert_allclose(answer["probabilities"][:, 1], [shares(text) for text in request["text"]])
        assert answer["label"].dtype == object


def test_long_and_short_texts_do_not_share_a_batch():
    answers, engine, _ = answered([texts("a", "b" * 1000), texts("c" * 900, "d")])
    assert sorted(sizes(engine)) == [2, 2]
    assert all(np.ptp([len(text) for text in batch["text"]]) <= 100 for batch in engine.batches)
    assert [answer["score"].tolist() for answer in answers] == [[1, 1], [1, 1]]


def test_a_batch_has_so_many_rows_of_the_closest_lengths():
    _, engine, _ = answered([texts(*"abcdefg")], max_batch_size=3)
    assert sizes(engine) == [3, 3, 1]
    lengths = [70, 120, 71, 119, 72, 118]
    _, engine, _ = answered([texts(*("x" * length for length in lengths))], max_batch_size=3)
    assert [[len(text) for text in batch["text"]] for batch in engine.batches] == [[70, 71, 72], [120, 119, 118]]


def test_a_batch_holds_so_many_tokens():
    lengths = [100, 101, 102, 103, 1000, 10_000, 9_000, 8_000, 7_000]  # in bytes; 2,048 are the most that count
    _, engine, _ = answered([texts(*("x" * length for length in lengths))])
    # 1,024 tokens of four bytes; the four longest make two batches.
    assert sorted(len(text) for batch in engine.batches for text in batch["text"]) == sorted(lengths)
    assert sorted(sizes(engine)) == [1, 2, 2, 4]
    _, engine, _ = answered([texts(*("x" * 1000 for _ in range(9)))], max_batch_tokens=750)
    assert sizes(engine) == [3, 3, 3]


def test_a_bad_text_fails_its_own_request_alone():
    answers, engine, _ = answered([texts("a"), texts("b", "bad"), *(texts("c") for _ in range(14))])
    assert isinstance(answers[1], ValueError)
    assert [answer["score"].tolist() for answer in (answers[0], *answers[2:])] == [[1]] * 15
    assert len(engine.batches) <= 1 + 2 * 4  # a search by halves


def test_a_crash_or_a_wrong_number_of_rows_is_an_error_and_the_next_request_is_answered():
    async def scenario():
        engine = ToyEngine()
        engine._tokens = lambda input_ids: {"sum": np.zeros(1, np.int32)}
        batcher = batcher_of(engine)
        with pytest.raises(RuntimeError, match="secret"):
            await batcher.run("serving_default", texts("crash"))
        with pytest.raises(RuntimeError, match="answered 2 rows with other numbers of rows"):
            await batcher.run("tokens", {"input_ids": np.ones((2, 1), np.int32)})
        answer = await batcher.run("serving_default", texts("a"))
        batcher.close()
        return answer

    assert run(scenario)["score"].tolist() == [1]


def test_the_queue_is_bounded():
    answers, _, _ = answered([texts("a", "b"), texts("c", "d"), texts("e")], max_queue=3)
    assert [type(answer) for answer in answers] == [dict, QueueFullError, dict]
    with pytest.raises(ValueError, match=r"must have at most 3 rows\. Received: 4; split it"):
        raise answered([texts(*"abcd")], max_queue=3)[0][0]


def test_a_late_answer_is_a_timeout_and_its_rows_leave_the_queue():
    answers, engine, waiting = answered([texts("a"), texts("b" * 200)], seconds=0.2, timeout=0.1)
    assert all(isinstance(answer, TimeoutError) for answer in answers)
    assert "0.1 seconds" in str(answers[0])
    assert (len(engine.batches), waiting) == (1, 0)


def test_rows_of_a_cancelled_request_leave_the_queue():
    async def scenario():
        batcher = batcher_of(ToyEngine(0.2))
        tasks = [asyncio.create_task(batcher.run("serving_default", texts("x" * size))) for size in (1, 200)]
        await asyncio.sleep(0.05)
        assert batcher.waiting == 1
        tasks[1].cancel()
        await asyncio.wait(tasks)
        waiting = batcher.waiting
        batcher.close()
        return waiting

    assert run(scenario) == 0


def test_shapes_are_kept_apart():
    requests = [{"input_ids": np.ones((2, length), np.int32)} for length in (3, 5, 3)]
    answers, engine, _ = answered(requests, signature="tokens")
    assert [answer["sum"].tolist() for answer in answers] == [[3, 3], [5, 5], [3, 3]]
    assert sorted(batch["input_ids"].shape for batch in engine.batches) == [(2, 5), (4, 3)]


def test_padding_does_not_depend_on_the_batch():
    long = "x" * 200 + "ABC"
    answers, engine, _ = answered([texts("Ab", long), texts("none"), texts("Xy", "ABCD", "q")], signature="entities")
    assert len(engine.batches) == 2
    assert answers[0]["entity_text"].tolist() == [[b"A", b"", b""], [b"A", b"B", b"C"]]
    assert answers[0]["entity_start"].tolist() == [[0, -1, -1], [200, 201, 202]]
    assert answers[1]["entity_text"].shape == (1, 0)
    assert answers[2]["entity_start"].tolist() == [[0, -1, -1, -1], [0, 1, 2, 3], [-1, -1, -1, -1]]


def test_squares_of_several_batches_are_padded_on_both_axes():
    values = ("aa", "b" * 200, "")
    (answer,), engine, _ = answered([texts(*values)], signature="attention")
    assert sizes(engine) == [2, 1]
    together = ToyEngine().run("attention", texts(*values))
    for name, array in together.items():
        np.testing.assert_array_equal(answer[name], array, err_msg=name)
    (alone, _), _, _ = answered([texts("aa"), texts("b" * 100)], signature="attention")
    assert (alone["tokens"].shape, alone["attention"].shape) == ((1, 2), (1, 1, 2, 2))


def test_an_answer_that_would_be_too_large_ends_with_its_first_batch():
    """It is refused by the size of its largest row, which all rows would be padded to, and not by other requests."""
    requests = [texts(*["a" * 10] * 50), texts("a" * 20), texts("a" * 20, *["b"] * 49), texts(*["c"] * 50)]
    answers, engine, waiting = answered(requests, signature="attention", max_answer=20_000, max_batch_size=4)
    refused = [isinstance(answer, ValueError) for answer in answers]
    assert refused == [True, False, True, False]
    assert "would have 24,000 bytes" in str(answers[0])  # for 10 tokens, 8 of each string and 4 of each of 100 numbers
    assert "--max-answer-mb" in str(answers[0])
    assert answers[3]["attention"].shape == (50, 1, 1, 1)
    assert waiting == 0
    assert len(engine.batches) <= 2 + 1 + 2 + 13
