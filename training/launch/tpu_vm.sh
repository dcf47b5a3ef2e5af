#!/usr/bin/env bash
# Makes a TPU VM, installs albert-tf there, runs a recipe, and brings the run back. Needs gcloud, logged in.
# Nobody has run this script on a TPU yet; `make test-tpu` shows only that the compiler of TPUs takes the step.
#
#   NAME=albert ZONE=us-west4-a TYPE=v5litepod-8 training/launch/tpu_vm.sh my_recipe.toml runs/mine examples heldout vocabulary
#
# TYPE is the accelerator type, such as v4-8, v5litepod-8 (v5e), v5p-8 or v6e-8, of a single host. IMAGE is the software of
# the machine; by default the one that Google names for the TYPE.
#
# After the recipe and the folder of the run come all files and folders that the recipe names, as it names them: they are
# copied to the same places there, so each must lie below the folder that you call from. The recipe says strategy = "tpu",
# and its batch_size is a multiple of the number of chips times gradient_accumulation_steps. The same command goes on with
# a run that was stopped. The machine stays, and costs, until: gcloud compute tpus tpu-vm delete $NAME --zone $ZONE
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: NAME=... ZONE=... TYPE=... $0 RECIPE RUN FILE_OR_FOLDER_OF_THE_RECIPE..." >&2
    exit 2
fi
recipe=$1 run=$2
shift 2
for path in "$recipe" "$@"; do
    case $path in
    /* | .. | ../* | */.. | */../*)
        echo "Paths must lie below this folder. Received: $path; copy it here or call from above it." >&2
        exit 2
        ;;
    esac
done
: "${NAME:?give the machine a NAME}" "${ZONE:?say in which ZONE}" "${TYPE:?say which TYPE, such as v5litepod-8}"
case $TYPE in
v5litepod-*) image=v2-alpha-tpuv5-lite ;;
v5p-*) image=v2-alpha-tpuv5 ;;
v6e-*) image=v2-alpha-tpuv6e ;;
*) image=tpu-ubuntu2204-base ;; # v4 and older
esac
tpu() { gcloud compute tpus tpu-vm "$@" --zone "$ZONE"; }
remote() { tpu ssh "$NAME" --command "$1"; }
project=$(cd "$(dirname "$0")/../.." && pwd)

tpu describe "$NAME" >/dev/null 2>&1 ||
    tpu create "$NAME" --accelerator-type "$TYPE" --version "${IMAGE:-$image}"
remote "mkdir -p albert/run"
tar -c --dereference -- "$recipe" "$@" | remote "tar -x -C albert"
[ ! -d "$run" ] || tpu scp --recurse "$run/." "$NAME:albert/run"
# The project's own files, without what git does not know.
git -C "$project" archive HEAD | remote "mkdir -p albert/project && tar -x -C albert/project"
# tensorflow-tpu, TensorFlow with the driver of TPUs, takes the place of the usual package. Its newest version was 2.20 when
# this was written, one behind the version that albert-tf is tested with.
version=${TENSORFLOW_TPU:-2.20}
# The machine's own Python may be too old.
remote "cd albert && python3 -m pip install --quiet uv &&
    python3 -m uv venv --quiet --allow-existing --seed --python 3.11 venv &&
    venv/bin/pip install --quiet ./project &&
    venv/bin/pip uninstall --yes --quiet tensorflow tensorflow-text &&
    venv/bin/pip install --quiet 'tensorflow-tpu==$version.*' \
        --find-links https://storage.googleapis.com/libtpu-tf-releases/index.html &&
    venv/bin/pip install --quiet --no-deps 'tensorflow-text==$version.*'"
status=0
remote "cd albert && TPU_NAME=local venv/bin/albert-tf pretrain $(printf %q "$recipe") --output run" || status=$?
mkdir -p "$run"
tpu scp --recurse "$NAME:albert/run/." "$run"
exit $status
