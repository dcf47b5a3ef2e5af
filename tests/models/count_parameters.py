"""Run as a script: builds every preset without giving variables values, and prints what there is and what it took.

A process of its own, because Keras keeps such variables in mind and would give them values at the next occasion.
"""

import json
import math
import resource

import keras

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining
from albert_tf.config import PRESETS


def memory_peak():
    """In MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    # Once small, so that what Keras loads on first use is not counted.
    AlbertForPreTraining(AlbertConfig.from_preset("tiny"))
    before = memory_peak()
    counts, paths = {}, []
    for preset in PRESETS:
        config = AlbertConfig.from_preset(preset)
        with keras.StatelessScope(initialize_variables=False):
            models = {"encoder": AlbertEncoder(config), "pretraining": AlbertForPreTraining(config)}
        counts[preset] = {
            name: sum(math.prod(variable.shape) for variable in model.variables_by_path().values())
            for name, model in models.items()
        }
        paths = list(models["pretraining"].variables_by_path())
    print(json.dumps({"counts": counts, "paths": paths, "megabytes": memory_peak() - before}))


if __name__ == "__main__":
    main()
