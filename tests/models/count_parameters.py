"""Run as a script: builds every preset without giving variables values, and prints what there is and what it took."""

import json
import math
import resource

import keras

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining
from albert_tf.config import PRESETS

# Once small, so that what Keras loads on first use is not counted.
AlbertForPreTraining(AlbertConfig.from_preset("tiny"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
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
megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps({"counts": counts, "paths": paths, "megabytes": megabytes}))
