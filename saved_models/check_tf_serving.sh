#!/usr/bin/env bash
# Serves a small export with TensorFlow Serving in Docker, under the configuration of this folder, and compares its
# answers over REST and gRPC with those of `albert-tf predict`. Needs tensorflow-serving-api.
#
#   saved_models/check_tf_serving.sh            # or: TF_SERVING_TAG=2.19.1 saved_models/check_tf_serving.sh
#
# Exit status: 0 if all answers are equal to 1e-5, 1 if not, 2 if Docker is missing.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
python="${PYTHON:-$here/../.venv/bin/python}"
image="tensorflow/serving:${TF_SERVING_TAG:-latest}"
export REST_PORT="${REST_PORT:-18501}" GRPC_PORT="${GRPC_PORT:-18500}" TF_CPP_MIN_LOG_LEVEL=3

if ! command -v docker >/dev/null || ! docker info >/dev/null 2>&1; then
  echo "check_tf_serving.sh: Docker is not installed or not running; start it, or run this where it is." >&2
  exit 2
fi

work="$(mktemp -d)"
container=""
trap '[ -z "$container" ] || docker stop "$container" >/dev/null; rm -rf "$work"' EXIT

"$python" - "$work/model" <<'PYTHON'
import sys
from albert_tf import AlbertConfig, AlbertForSequenceClassification, AlbertTokenizer
tokenizer = AlbertTokenizer.english()
config = AlbertConfig.from_preset("tiny").replace(vocab_size=len(tokenizer), initializer_range=0.2)
AlbertForSequenceClassification(config, labels=["no", "yes"]).save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
PYTHON
printf 'text\nA short text.\nÜnïcödé, 1,000 words and 둘\nthe last text of three\n' >"$work/texts.tsv"
"$python" -m albert_tf predict "$work/model" --data "$work/texts.tsv" --output "$work/expected.jsonl"
"$python" -m albert_tf export "$work/model" --name task --output "$work/models" >/dev/null
cp "$here"/*.config "$work/models"
chmod -R a+rX "$work"

container="$(docker run --detach --rm --publish "127.0.0.1:$REST_PORT:8501" --publish "127.0.0.1:$GRPC_PORT:8500" \
  --volume "$work/models:/models:ro" "$image" --model_config_file=/models/models.config --enable_batching=true \
  --batching_parameters_file=/models/batching.config --monitoring_config_file=/models/monitoring.config)"
for attempt in $(seq 60); do
  curl --silent --fail --output /dev/null "http://127.0.0.1:$REST_PORT/v1/models/task/metadata" && break
  if [ "$attempt" = 60 ]; then
    docker logs "$container" >&2 || true
    echo "check_tf_serving.sh: $image did not load the model within 60 seconds; its log is above." >&2
    exit 1
  fi
  sleep 1
done

"$python" - "$work" "$image" <<'PYTHON'
import csv, json, os, sys, urllib.request
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

with open(f"{sys.argv[1]}/texts.tsv", encoding="utf-8") as file:
    texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
with open(f"{sys.argv[1]}/expected.jsonl", encoding="utf-8") as file:
    expected = [list(json.loads(line)["probabilities"].values()) for line in file]

body = json.dumps({"inputs": {"text": texts}}).encode()
url = f"http://127.0.0.1:{os.environ['REST_PORT']}/v1/models/task:predict"
with urllib.request.urlopen(url, data=body, timeout=60) as response:
    over_rest = json.load(response)["outputs"]["probabilities"]

request = predict_pb2.PredictRequest(inputs={"text": tf.make_tensor_proto(texts)})
request.model_spec.name = "task"
with grpc.insecure_channel(f"127.0.0.1:{os.environ['GRPC_PORT']}") as channel:
    response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=60)
over_grpc = tf.make_ndarray(response.outputs["probabilities"])

differences = {name: np.abs(np.array(given) - expected).max() for name, given in (("REST", over_rest), ("gRPC", over_grpc))}
for name, difference in differences.items():
    print(f"{sys.argv[2]} over {name}: largest difference from albert-tf predict {difference:.1e}")
sys.exit(int(not max(differences.values()) <= 1e-5))
PYTHON
