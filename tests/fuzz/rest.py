"""Sends thousands of generated requests to `albert-tf serve`, after its OpenAPI document; `make fuzz-rest` runs it.

Usage: python -m tests.fuzz.rest SCHEMATHESIS [EXAMPLES], with the path of the program and the examples per operation.
"""

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
            document = f"{address}/openapi.json"
            fuzz = [program, "run", document, "--max-examples", examples, "--exclude-checks", LEFT_OUT]
            code = subprocess.run(fuzz, cwd=folder).returncode  # it leaves files
            with urllib.request.urlopen(f"{address}/metrics") as reply:
                counters = [
                    line for line in reply.read().decode().splitlines() if line.startswith("albert_tf_requests_total")
                ]
        finally:
            server.terminate()
        print("\n".join(counters))
        return code or int(server.wait(60) != 0 or any("INTERNAL" in line for line in counters))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
