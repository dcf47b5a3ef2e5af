"""Run as a script: builds every preset without giving variables values, and prints what there is.

A process of its own, because Keras keeps such variables in mind and would give them values at the next occasion.
"""

import json
import math

import keras

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining
from albert_tf.config import PRESETS


def main():
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
    print(json.dumps({"counts": counts, "paths": paths}))


if __name__ == "__main__":
    main()
