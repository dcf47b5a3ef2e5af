"""Sends thousands of generated requests to `albert-tf serve`; `make fuzz-rest` runs it.

Usage: python -m tools.fuzz.rest SCHEMATHESIS [EXAMPLES], with the path of the program and the examples per operation.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

from albert_tf.export import export_saved_model
from tests.toy_task import write_classifier, write_pretrained

# A text that is valid JSON may still lack [MASK], and an id may be outside the vocabulary.
LEFT_OUT = "positive_data_acceptance"
STATUSES = ("200", "400", "404", "405", "408", "413", "429", "500", "504")
TEXT = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"b64": {"type": "string"}}}]}
SCALARS = {"string": TEXT, "int32": {"type": "integer"}, "float32": {"type": "number"}}


def main(schemathesis: str, examples: str = "250") -> int:
    """Returns the exit code of the program, or 1 if the server failed on a request or on its end."""
    program = pathlib.Path(schemathesis).resolve()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "models")
        export_saved_model(write_classifier(pathlib.Path(folder, "classifier")), root, "classifier")
        export_saved_model(write_classifier(pathlib.Path(folder, "pairs"), pairs=True), root, "pairs")
        export_saved_model(write_pretrained(pathlib.Path(folder, "pretrained")), root, "pretrained")
        command = [sys.executable, "-m", "albert_tf", "serve", str(root), "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        address = re.search(r"http://[\d.:]+", server.stdout.readline())[0]
        try:
            pathlib.Path(folder, "openapi.json").write_text(json.dumps(document(read(f"{address}/v1/models"))))
            fuzz = [program, "run", "openapi.json", "--url", address, "--max-examples", examples]
            code = subprocess.run([*fuzz, "--exclude-checks", LEFT_OUT], cwd=folder).returncode  # it leaves files
            lines = read(f"{address}/metrics").decode().splitlines()
            counters = [line for line in lines if line.startswith("albert_tf_requests_total")]
        finally:
            server.terminate()
        print("\n".join(counters))
        return code or int(server.wait(60) != 0 or any("INTERNAL" in line for line in counters))


def read(url: str) -> bytes:
    """The answer to a request without a body."""
    with urllib.request.urlopen(url) as reply:
        return reply.read()


def document(listed: bytes) -> dict:
    """Describes the requests to models, as `/v1/models` lists them, in OpenAPI."""
    paths = {path: {"get": operation()} for path in ("/v1/models", "/healthz", "/readyz")}
    for model in json.loads(listed)["models"]:
        for path in (f"/v1/models/{model['name']}", f"/v1/models/{model['name']}/versions/{model['version']}"):
            paths |= {path: {"get": operation()}, f"{path}/metadata": {"get": operation()}}
            bodies = [body for name, one in model["signatures"].items() for body in predict_bodies(name, one["inputs"])]
            paths[f"{path}:predict"] = {"post": operation({"anyOf": bodies})}
    return {"openapi": "3.1.0", "info": {"title": "albert-tf serve", "version": "1"}, "paths": paths}


def predict_bodies(name: str, inputs: dict) -> list[dict]:
    """The row format and the column format of a signature."""
    rows = fields(**{key: lists(SCALARS[one["dtype"]], len(one["shape"]) - 1) for key, one in inputs.items()})
    columns = fields(**{key: lists(SCALARS[one["dtype"]], len(one["shape"])) for key, one in inputs.items()})
    signature = {"signature_name": {"const": name}}
    return [fields(**signature, instances=lists(rows)), fields(**signature, inputs=columns)]


def fields(**properties: dict) -> dict:
    return {"type": "object", "properties": properties, "required": list(properties)}


def lists(items: dict, depth: int = 1) -> dict:
    return {"type": "array", "items": lists(items, depth - 1), "minItems": 1} if depth else items


def operation(body: dict | None = None) -> dict:
    described = {"responses": {status: {"description": "An answer."} for status in STATUSES}}
    if body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return described


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
