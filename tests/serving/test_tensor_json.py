"""Proves that tensors are written and read as TensorFlow Serving's REST interface does."""

import json
import re

import numpy as np
import pytest

from albert_tf.inference.signatures import Signature
from albert_tf.serving.tensor_json import format_predictions, parse_predict
from albert_tf.tasks.outputs import TensorSpec

TEXT, IDS = TensorSpec("string", (None,)), TensorSpec("int32", (None, None))
SINGLE = Signature({"text": TEXT}, {})
PAIR = Signature({"text": TEXT, "text_pair": TEXT}, {})
TOKENS = Signature({"input_ids": IDS}, {})
CHOICES = Signature({"context": TEXT, "choices": TensorSpec("string", (None, None))}, {})
NUMBERS = Signature({"x": TensorSpec("float32", (None,))}, {})


def parse(body, signature):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    inputs = parse_predict(content, {"serving_default": signature}).inputs
    return {name: array.tolist() for name, array in inputs.items()}


@pytest.mark.parametrize(
    ("body", "signature", "expected"),
    [
        ({"instances": ["a", "ü"]}, SINGLE, {"text": [b"a", "ü".encode()]}),
        ({"instances": [{"text": "a"}]}, SINGLE, {"text": [b"a"]}),
        ({"instances": [{"b64": "YQ=="}, "b"]}, SINGLE, {"text": [b"a", b"b"]}),
        ({"instances": [{"text": "a", "text_pair": {"b64": "ZA=="}}]}, PAIR, {"text": [b"a"], "text_pair": [b"d"]}),
        ({"inputs": ["a"]}, SINGLE, {"text": [b"a"]}),
        ({"inputs": {"text": ["a"], "text_pair": ["b"]}}, PAIR, {"text": [b"a"], "text_pair": [b"b"]}),
        ({"instances": [[1, 2], [3, 4]]}, TOKENS, {"input_ids": [[1, 2], [3, 4]]}),
        ({"inputs": [[1, 2]], "signature_name": ""}, TOKENS, {"input_ids": [[1, 2]]}),
        (
            {"instances": [{"context": "c", "choices": ["a", "b"]}]},
            CHOICES,
            {"context": [b"c"], "choices": [[b"a", b"b"]]},
        ),
        ({"inputs": {}}, Signature({}, {}), {}),
        ({"instances": [1, 0.5]}, NUMBERS, {"x": [1, 0.5]}),
    ],
)
def test_rows_and_columns_are_read(body, signature, expected):
    assert parse(body, signature) == expected


@pytest.mark.parametrize(
    ("body", "signature", "complaint"),
    [
        (b"{", SINGLE, "JSON Parse error"),
        (b"text", SINGLE, '; the body must be JSON such as {"instances": [...]}.'),
        (b'{"instances": ["\xff"]}', SINGLE, "JSON Parse error"),
        (b'{"instances": ["\\ud800"]}', SINGLE, "JSON Parse error"),
        (b'{"instances": [NaN]}', NUMBERS, "JSON Parse error"),
        (b'{"instances":' + b"[" * 5000 + b"]" * 5000 + b"}", SINGLE, "JSON Parse error"),
        ([], SINGLE, "The body is not a JSON object; the body must be"),
        ({}, SINGLE, "either `instances` or `inputs`. Received: neither"),
        ({"instances": [], "inputs": []}, SINGLE, "Received: instances, inputs"),
        ({"instances": ["a"], "signature_name": 1}, SINGLE, "`signature_name` must be a string"),
        ({"instances": "a"}, SINGLE, "must be a list with at least one value"),
        ({"instances": []}, SINGLE, "must be a list with at least one value"),
        ({"instances": [1]}, SINGLE, "`text` must contain strings. Received: 1."),
        ({"instances": ["a", ["b"]]}, SINGLE, "must contain strings. Received: a list."),
        ({"instances": [["a"], ["b"]]}, SINGLE, "must contain strings. Received: a list."),
        ({"instances": [{"b64": "YQ==", "c": 1}]}, SINGLE, "must be an object with text. Received: b64, c."),
        ({"instances": [{"b64": "?"}]}, SINGLE, "must contain valid base64"),
        ({"instances": [{"b64": "/w=="}]}, SINGLE, "`text` must be valid UTF-8. Received: b'\\xff'."),
        ({"inputs": {"text": ["a"], "text_pair": ["b", "c"]}}, PAIR, "equal numbers of rows"),
        ({"instances": ["a"]}, PAIR, "list of objects with text, text_pair"),
        ({"instances": [{"text": "a"}]}, PAIR, "instances[0] must be an object with text, text_pair"),
        (
            {"instances": [{"text": "a", "pair": "b"}]},
            SINGLE,
            "instances[0] must be an object with text. Received: text, p",
        ),
        ({"instances": [{"text": "a"}, "b"]}, SINGLE, "instances[1] must be an object"),
        ({"inputs": {"words": ["a"]}}, SINGLE, "must be text. Received: words"),
        ({"inputs": "a"}, SINGLE, "`text` must be a list of strings."),
        ({"inputs": ["a"]}, PAIR, "`inputs` must be an object"),
        ({"instances": [[1, 2], [3]]}, TOKENS, "a list of lists of integers of 32 bits, with rows of equal length."),
        ({"instances": [1]}, TOKENS, "must be a list of lists of integers"),
        ({"instances": [[1.5]]}, TOKENS, "integers of 32 bits. Received: 1.5"),
        ({"instances": [[2**31]]}, TOKENS, "Received: 2147483648"),
        ({"instances": [[1] * 4097]}, TOKENS, "at most 4096 columns. Received: [1, 4097]"),
        ({"instances": [[]]}, TOKENS, "no size of 0. Received: [1, 0]"),
        ({"instances": ["1"]}, NUMBERS, "`x` must contain numbers"),
    ],
)
def test_what_does_not_fit_is_one_sentence(body, signature, complaint):
    with pytest.raises(ValueError, match=f"^.*{re.escape(complaint)}.*$") as error:  # . is no line break
        parse(body, signature)
    assert "\n" not in str(error.value)


def test_answers_have_the_shape_of_the_request():
    text, numbers = np.array(["ü".encode(), b"b"], object), np.array([[0.1, 2], [3, 4]], np.float32)
    both = {"label": text, "probabilities": numbers}
    rows = [{"label": "ü", "probabilities": [0.1, 2.0]}, {"label": "b", "probabilities": [3.0, 4.0]}]
    assert json.loads(format_predictions(both, by_row=True)) == {"predictions": rows}
    assert json.loads(format_predictions(both, by_row=False)) == {
        "outputs": {"label": ["ü", "b"], "probabilities": [[0.1, 2.0], [3.0, 4.0]]}
    }
    assert format_predictions({"scores": numbers[:, :1]}, by_row=True) == b'{"predictions":[[0.1],[3.0]]}'
    assert format_predictions({"label": text[:1]}, by_row=False) == '{"outputs":["ü"]}'.encode()
    assert format_predictions({"label_bytes": text[1:]}, by_row=True) == b'{"predictions":[{"b64":"Yg=="}]}'
