"""Proves that clients of TensorFlow Serving's REST interface are answered, and mistakes with the right status."""

import asyncio
import json
import shutil

import numpy as np
import pytest

from albert_tf import pipeline
from albert_tf.inference.signatures import Signature
from albert_tf.serving.batching import MAX_ROW_TOKENS
from albert_tf.serving.engine import load_engine
from albert_tf.tasks.outputs import TensorSpec
from tests.serving.toy_server import ToyEngine, run, toy_server, write_version

MODEL = "/v1/models/task"


def asked(tmp_path, *requests, server_options=None, **keywords):
    """The replies to requests `(method, path)`, sent one after the other with the same keywords."""
    write_version(tmp_path / "task", 3)

    async def scenario():
        async with toy_server(tmp_path, **(server_options or {})) as server:
            return [await server.client.request(*request, **keywords) for request in requests]

    return run(scenario)


def test_state_and_signatures_are_told(tmp_path):
    replies = asked(
        tmp_path, ("GET", MODEL), ("GET", f"{MODEL}/versions/3"), ("GET", f"{MODEL}/metadata"), ("GET", "/v1/models")
    )
    available = {"version": "3", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert replies[0].json() == replies[1].json() == {"model_version_status": [available]}
    metadata = replies[2].json()
    assert metadata["model_spec"] == {"name": "task", "signature_name": "", "version": "3"}
    described = metadata["metadata"]["signature_def"]["signature_def"]["tokens"]
    assert described["inputs"]["input_ids"] == {
        "dtype": "DT_INT32",
        "tensor_shape": {"dim": [{"size": "-1", "name": ""}] * 2, "unknown_rank": False},
        "name": "input_ids:0",
    }
    assert described["method_name"] == "tensorflow/serving/predict"
    (model,) = replies[3].json()["models"]
    assert (model["name"], model["version"], model["engine"]) == ("task", "3", "toy")


@pytest.mark.parametrize("path", [MODEL, f"{MODEL}/versions/3"])
def test_rows_columns_and_signatures_are_answered(tmp_path, path):
    write_version(tmp_path / "task", 3)

    async def scenario():
        async with toy_server(tmp_path) as server:

            async def post(method, body):
                reply = await server.client.post(f"{path}:{method}", json=body)
                return reply.status_code, reply.json()

            row = {"label": "vowels", "score": 0.75, "probabilities": [0.25, 0.75]}
            assert await post("predict", {"instances": ["aaab"]}) == (200, {"predictions": [row]})
            assert await post("predict", {"inputs": ["aaab"]}) == (
                200,
                {"outputs": {"label": ["vowels"], "score": [0.75], "probabilities": [[0.25, 0.75]]}},
            )
            tokens = {"signature_name": "tokens", "instances": [[1, 2], [3, 4]]}
            assert await post("predict", tokens) == (200, {"predictions": [3, 7]})
            assert await post("predict", {"signature_name": "labels", "inputs": {}}) == (
                200,
                {"outputs": ["consonants", "vowels"]},
            )

    run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "complaint"),
    [
        ("POST", f"{MODEL}:predict", b'{"instances": ["bad"]}', 400, "The text is bad."),
        ("POST", f"{MODEL}:predict", b'{"instances": ["crash"]}', 500, "the log of the server says why"),
        ("POST", f"{MODEL}:predict", b"no JSON", 400, "JSON Parse error"),
        ("POST", f"{MODEL}:predict", b'{"instances": [{"b64": "/w=="}]}', 400, "`text` must be valid UTF-8"),
        ("POST", f"{MODEL}:predict", b'{"inputs": [[]], "signature_name": "tokens"}', 400, "no size of 0"),
        (
            "POST",
            f"{MODEL}:predict",
            b'{"inputs": {"text": ["a"], "text_pair": ["b", "c"]}, "signature_name": "pair"}',
            400,
            "equal numbers of rows",
        ),
        ("POST", f"{MODEL}:predict", b'{"instances": ["a"], "signature_name": "x"}', 404, 'name: "x" not found'),
        ("POST", f"{MODEL}/versions/4:predict", b"{}", 404, "Could not find version 4 of task"),
        ("POST", "/v1/models/none:predict", b"{}", 404, "Could not find any versions of model none"),
        ("POST", "/v1/models/..%2ftask:predict", b"{}", 404, "Malformed request"),
        ("GET", f"{MODEL}:predict", None, 405, "models answer POST /v1/models/NAME:predict"),
        ("POST", MODEL, b"", 405, "models answer POST /v1/models/NAME:predict"),
        ("POST", f"{MODEL}:classify", b"", 404, "models answer POST /v1/models/NAME:predict"),
        ("GET", "/etc/passwd", None, 404, "Malformed request"),
    ],
)
def test_mistakes_have_their_status_and_one_sentence(tmp_path, caplog, method, path, body, status, complaint):
    (reply,) = asked(tmp_path, (method, path), content=body)
    assert reply.status_code == status
    assert list(reply.json()) == ["error"]
    assert complaint in reply.json()["error"]
    assert "secret" not in reply.text
    assert ("secret" in caplog.text) == (status == 500)


def test_large_bodies_are_refused_with_and_without_a_length(tmp_path):
    async def chunks():
        for _ in range(3):
            yield b" " * 50

    for content in (b" " * 150, chunks()):
        (reply,) = asked(tmp_path, ("POST", f"{MODEL}:predict"), content=content, server_options={"max_body": 100})
        assert (reply.status_code, reply.json()) == (413, {"error": "The body must have at most 100 bytes."})
        shutil.rmtree(tmp_path / "task" / "3")


def test_slow_bodies_are_given_up(tmp_path):
    async def slow():
        yield b"{"
        await asyncio.sleep(5)

    (reply,) = asked(tmp_path, ("POST", f"{MODEL}:predict"), content=slow(), server_options={"read_timeout": 0.05})
    assert (reply.status_code, reply.json()["error"]) == (408, "The body did not arrive within 0.05 seconds.")


def test_a_row_that_would_exhaust_the_memory_is_refused(tmp_path):
    """Passages are computed in windows, and with each choice, so that one request could end the server."""
    text = TensorSpec("string", (None,))
    several, ids = TensorSpec("string", (None, None)), TensorSpec("int32", (None, None, None))

    class Reader(ToyEngine):
        signatures = {
            "serving_default": Signature({"context": text, "choices": several}, {"choice": text}),
            "tokens": Signature({"input_ids": ids, "attention_mask": ids}, {"probabilities": text}),
        }

        def run(self, signature, inputs):
            return {"choice": np.full(len(next(iter(inputs.values()))), b"fits", object)}

    def rows(context, *choices):
        return {"inputs": {"context": ["short", context], "choices": [choices, choices]}}

    def tokens(*shape):
        array = np.ones(shape, np.int32).tolist()
        return {"signature_name": "tokens", "inputs": {"input_ids": array, "attention_mask": array}}

    most = MAX_ROW_TOKENS
    fitting = [rows("x" * 4000, *["y"] * 16), tokens(1, 16, most // 16)]
    too_large = [rows("x" * 5000, *["y"] * 16), rows("", "y" * 40_000, "z"), tokens(1, 17, most // 16)]
    write_version(tmp_path / "task", 1)

    async def scenario():
        async with toy_server(tmp_path, Reader()) as server:
            return [await server.client.post(f"{MODEL}:predict", json=body) for body in (*fitting, *too_large)]

    replies = run(scenario)
    assert [reply.status_code for reply in replies] == [200] * len(fitting) + [400] * len(too_large)
    assert "Row 1 must have at most 16384 tokens" in replies[len(fitting)].json()["error"]


def test_a_full_queue_and_a_late_answer_have_their_status(tmp_path):
    write_version(tmp_path / "task", 1)

    async def scenario():
        options = {"max_queue": 4, "timeout": 0.2, "max_batch_size": 1}
        async with toy_server(tmp_path, ToyEngine(seconds=0.15), **options) as server:
            bodies = [{"instances": ["a"] * count} for count in (2, 2, 3, 5)]
            return await asyncio.gather(*(server.client.post(f"{MODEL}:predict", json=body) for body in bodies))

    replies = run(scenario)
    assert sorted(reply.status_code for reply in replies) == [400, 429, 504, 504]
    full = next(reply for reply in replies if reply.status_code == 429)
    assert full.headers["retry-after"] == "1"


def test_answers_that_clients_do_not_read_are_bounded(tmp_path, caplog):
    write_version(tmp_path / "task", 1)
    large, small = ({"signature_name": "attention", "instances": ["a" * size]} for size in (600, 6))
    scope = {"type": "http", "method": "POST", "path": f"{MODEL}:predict", "headers": [], "query_string": b""}
    sent, received = [], [{"type": "http.request", "body": json.dumps(large).encode()}]

    async def receive():
        return received.pop() if received else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def scenario():
        async with toy_server(tmp_path, max_answer=2 << 20, timeout=2) as server:
            body, unread = received[0], []
            for count in range(1, 4):
                received[:] = [body]
                unread.append(asyncio.create_task(server.app(scope.copy(), receive, send)))
                while len(sent) < 2 * count:
                    await asyncio.sleep(0.01)
            replies = [await server.client.post(f"{MODEL}:predict", json=body) for body in (large, small)]
            await asyncio.gather(*unread)
            return [*replies, await server.client.post(f"{MODEL}:predict", json=large)]

    replies = run(scenario)
    assert [reply.status_code for reply in replies] == [429, 200, 200]
    size = len(replies[2].content)
    assert size == int(replies[2].headers["content-length"]) > 1 << 20
    assert replies[0].json() == {"error": f"Clients are reading {3 * size:,} bytes of other answers; retry."}
    assert [len(message.get("body", "")) for message in sent] == [0, 1 << 16] * 3
    assert f"A client did not read its answer of {size} bytes within 2 seconds." in caplog.text


def test_the_key_is_needed_but_for_health_and_the_page(tmp_path):
    write_version(tmp_path / "task", 1)

    async def scenario():
        async with toy_server(tmp_path, api_key="k\u00e9y") as server:

            async def status(path, **headers):
                encoded = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
                return (await server.client.get(path, headers=encoded)).status_code

            for path in (MODEL, "/v1/models", "/metrics"):
                assert await status(path) == 401
                assert await status(path, authorization="Bearer wrong") == 401
                assert await status(path, x_api_key="wrong") == 401
            for path in ("/", "/playground.js", "/healthz", "/readyz"):
                assert await status(path) == 200
        async with toy_server(tmp_path, api_key="key") as server:
            assert await status(MODEL, authorization="Bearer key") == 200
            assert await status(MODEL, x_api_key="key") == 200

    run(scenario)


def test_counters_say_what_happened(tmp_path):
    write_version(tmp_path / "task", 1)

    async def scenario():
        async with toy_server(tmp_path) as server:
            for texts in (["a", "b"], ["c"], ["bad"]):
                await server.client.post(f"{MODEL}:predict", json={"instances": texts})
            return (await server.client.get("/metrics")).text

    lines = run(scenario).splitlines()
    labels = 'method="predict",model="task",protocol="rest"'
    assert f'albert_tf_requests_total{{code="OK",{labels}}} 2.0' in lines
    assert f'albert_tf_requests_total{{code="INVALID_ARGUMENT",{labels}}} 1.0' in lines
    assert f"albert_tf_request_seconds_count{{{labels}}} 3.0" in lines
    assert 'albert_tf_batch_rows_sum{model="task"} 4.0' in lines


def test_cut_and_empty_texts_are_counted_and_each_text_has_the_labels_of_the_model(folders, onnx_folders, tmp_path):
    write_version(tmp_path / "task", 1)
    texts = [f"text {number} " + "word " * (number % 7) for number in range(23)]
    expected = [one.labels for one in pipeline(folders["multi_label"])(texts)]

    async def answers(kind, *requests):
        async with toy_server(tmp_path, load_engine(onnx_folders[kind])) as server:
            bodies = [{"instances": texts} for texts in requests]
            replies = [(await server.client.post(f"{MODEL}:predict", json=body)).json() for body in bodies]
            return replies, (await server.client.get("/metrics")).text.splitlines()

    # For texts of 48 tokens, two of which are special.
    _, lines = run(lambda: answers("classifier", ["man " * 46, "man " * 47, "", "a"], ["man " * 99, "b"]))
    assert 'albert_tf_cut_texts_total{model="task"} 2.0' in lines
    assert 'albert_tf_empty_texts_total{model="task"} 1.0' in lines
    (together, alone), _ = run(lambda: answers("multi_label", texts, [texts[expected.index([])]]))
    assert all(row.keys() == {"labels", "probabilities"} for row in together["predictions"])
    assert [[name for name in row["labels"] if name] for row in together["predictions"]] == expected
    assert alone["predictions"][0]["labels"] == []


@pytest.mark.parametrize("reads_windows", [False, True])
def test_long_texts_are_refused_where_all_of_their_tokens_are_computed(reads_windows, tmp_path):
    write_version(tmp_path / "task", 1)
    engine = ToyEngine()
    engine.reads_windows = reads_windows

    async def scenario():
        async with toy_server(tmp_path, engine) as server:
            return await server.client.post(f"{MODEL}:predict", json={"instances": ["a" * 70_000]})

    assert run(scenario).status_code == (400 if reads_windows else 200)


def test_the_page_is_complete_and_loads_nothing_from_elsewhere(tmp_path):
    page, script = asked(tmp_path, ("GET", "/"), ("GET", "/playground.js"))
    assert page.headers["content-type"].startswith("text/html")
    assert "javascript" in script.headers["content-type"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for content in (page.text, script.text.replace("http://www.w3.org/2000/svg", "the name of SVG")):
        assert "http://" not in content
        assert "https://" not in content
    assert 'src="playground.js"' in page.text
    form = page.text.partition('<form id="key-form">')[2].partition("</form>")[0]
    assert '<input id="key" type="password"' in form
    assert 'byId("key-form").addEventListener("submit"' in script.text
