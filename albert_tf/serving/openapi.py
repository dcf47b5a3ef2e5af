"""The OpenAPI document of a server, with the inputs of each model."""

from collections.abc import Mapping
from typing import Any

from albert_tf.inference.signatures import Signature
from albert_tf.serving.answers import DEFAULT_SIGNATURE
from albert_tf.serving.versions import ServedVersion
from albert_tf.tasks.outputs import TensorSpec

_ERRORS = {
    "400": "The request does not fit the model.",
    "401": "The API key is missing or wrong.",
    "403": "The server does not answer for this host, or the request is from a page of another site.",
    "404": "The model, version or signature is not served.",
    "408": "The body arrived too slowly.",
    "413": "The body is too large.",
    "429": "The queue is full.",
    "500": "The model failed.",
    "504": "The answer took too long.",
}
_TEXT = {
    "oneOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"b64": {"type": "string", "contentEncoding": "base64"}},
            "required": ["b64"],
            "additionalProperties": False,
        },
    ]
}
_SCALARS = {
    "string": _TEXT,
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "float32": {"type": "number"},
}


def describe(served: Mapping[str, ServedVersion], needs_key: bool) -> dict[str, Any]:
    """The document.

    Args:
        served: the models by name.
        needs_key: whether requests must have an API key.
    """
    paths: dict[str, Any] = {"/v1/models": {"get": _operation("The models.")}}
    paths |= {path: {"get": _operation(text)} for path, text in (("/healthz", "Alive."), ("/readyz", "Ready."))}
    for name, model in served.items():
        for path in (f"/v1/models/{name}", f"/v1/models/{name}/versions/{model.version.number}"):
            paths |= _model_paths(path, model.engine.signatures)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "albert-tf serve", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": {
                "Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
    return document | ({"security": [{"key": []}]} if needs_key else {})


def _model_paths(path: str, signatures: Mapping[str, Signature]) -> dict[str, Any]:
    bodies = [body for name, signature in signatures.items() for body in _predict_bodies(name, signature)]
    paths = {
        path: {"get": _operation("State of the version.")},
        f"{path}/metadata": {"get": _operation("The signatures.")},
        f"{path}:predict": {"post": _operation("Calls a signature.", {"anyOf": bodies})},
    }
    default = signatures[DEFAULT_SIGNATURE]
    method = "classify" if "labels" in signatures else "regress" if set(default.outputs) == {"score"} else None
    if method is not None:
        example = _object(dict.fromkeys(default.inputs, _TEXT))
        body = _body({"examples": {"type": "array", "items": example, "minItems": 1}})
        paths[f"{path}:{method}"] = {"post": _operation("Labels or numbers of examples.", body)}
    return paths


def _predict_bodies(name: str, signature: Signature) -> list[dict[str, Any]]:
    """The row format and the column format of a signature; the values of a single input need no name."""
    rows = _object({key: _tensor(spec.shape[1:], spec) for key, spec in signature.inputs.items()})
    columns = _object({key: _tensor(spec.shape, spec) for key, spec in signature.inputs.items()})
    if len(signature.inputs) == 1:
        (spec,) = signature.inputs.values()
        rows = {"anyOf": [rows, _tensor(spec.shape[1:], spec)]}
        columns = {"anyOf": [columns, _tensor(spec.shape, spec)]}
    row_body = {"instances": {"type": "array", "items": rows, "minItems": 1}}
    signature_name = {"signature_name": {"const": name}}
    bodies = [_body(signature_name | row_body), _body(signature_name | {"inputs": columns})]
    if name == DEFAULT_SIGNATURE:
        for body in bodies:
            body["required"].remove("signature_name")
    return bodies


def _tensor(shape: tuple[int | None, ...], spec: TensorSpec) -> dict[str, Any]:
    schema = _SCALARS[spec.dtype]
    for _ in shape:
        schema = {"type": "array", "items": schema, "minItems": 1}
    return schema


def _body(properties: dict[str, Any]) -> dict[str, Any]:
    """Unknown keys of a body are ignored, as by TensorFlow Serving."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return _body(properties) | {"additionalProperties": False}


def _operation(summary: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    responses = {code: {"description": text, "content": error} for code, text in _ERRORS.items()}
    operation: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "The answer."}} | responses}
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return operation
