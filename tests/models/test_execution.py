"""Running steps: the buffers of a process in which TensorFlow has told the C library to return them are reused."""

import platform

import pytest

PROGRAM = """
import resource
import numpy as np
import tensorflow as tf
from albert_tf import AlbertForMaskedLM
from tests.models.small import CONFIG, make_pretraining_batch

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(1 << 19)  # 4 MiB, 1,024 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

inputs, labels = make_pretraining_batch()
batch = inputs, {name: labels[name] for name in ("masked_lm_ids", "masked_lm_weights")}
spec = tf.nest.map_structure(lambda array: tf.TensorSpec(array.shape, array.dtype), batch)
dataset = tf.data.Dataset.from_generator(lambda: iter([batch] * 2), output_signature=spec)
list(dataset)
faults()
returned = faults()
model = AlbertForMaskedLM(CONFIG)
model.compile("sgd")
model.fit(dataset, verbose=0)
faults()
print(returned, faults())
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_training_from_a_generator_reuses_large_buffers(run_python):
    returned, reused = map(int, run_python("-c", PROGRAM).stdout.split())
    assert reused < 50, f"{reused} page faults for 50 buffers of 1,024 pages; {returned} before training"
