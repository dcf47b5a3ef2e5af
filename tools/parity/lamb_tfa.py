"""Takes the steps that `lamb_ours.py` recorded with the LAMB of tensorflow-addons, and compares the two.

    .venv-parity-tfa/bin/python tools/parity/lamb_tfa.py runs/parity/lamb.npz

Runs in an environment of its own, without albert_tf. The relative difference is that of a variable divided by its
largest magnitude at the same step; the exit status is 1 where it is above 2e-5 anywhere.
"""

import json
import sys
import warnings

import numpy as np

TOLERANCE = 2e-5


def make_optimizer(lamb, schedule, learning_rate, decay_steps, weight_decay, exclude_from_layer_adaptation, **rest):
    """Their optimizer for one setting."""
    if decay_steps:
        learning_rate = schedule(learning_rate, decay_steps, end_learning_rate=0.0)
    if exclude_from_layer_adaptation == []:
        # tensorflow-addons takes an empty list for None; a pattern that finds nothing says what was meant.
        exclude_from_layer_adaptation = ["^$"]
    return lamb(
        learning_rate, weight_decay=weight_decay, exclude_from_layer_adaptation=exclude_from_layer_adaptation, **rest
    )


def compare(optimizer, title, names, arrays, variable_class) -> dict:
    """The largest differences over all variables and steps, and where the relative one is."""
    variables = [variable_class(arrays[f"start/{name}"], name=name) for name in names]
    largest = {"absolute": 0.0, "relative": 0.0, "where": ""}
    for step in range(len(arrays[f"gradient/{names[0]}"])):
        optimizer.apply_gradients([(arrays[f"gradient/{n}"][step], v) for n, v in zip(names, variables)])
        for name, variable in zip(names, variables):
            theirs, ours = variable.numpy().astype("float64"), arrays[f"{title}/{name}"][step]
            absolute = np.max(np.abs(theirs - ours))
            relative = absolute / max(np.max(np.abs(theirs)), np.finfo("float32").tiny)
            largest["absolute"] = max(largest["absolute"], absolute)
            if not relative <= largest["relative"]:  # also where it is not a number
                largest.update(relative=relative, where=f"{name}, step {step + 1}")
    return largest


def main(path: str) -> int:
    """Compares every setting and prints one table; the exit status."""
    warnings.simplefilter("ignore")  # tensorflow-addons says at import that it is no longer maintained
    import tensorflow as tf
    import tensorflow_addons as tfa

    with np.load(path) as file:
        arrays = dict(file)
    names = arrays.pop("names").tolist()
    print(f"tensorflow {tf.__version__}, tensorflow-addons {tfa.__version__}")
    print(f"{'setting':30}{'absolute':>12}{'relative':>12}  relative one found at")
    worst = 0.0
    for title, settings in json.loads(str(arrays.pop("settings"))).items():
        optimizer = make_optimizer(tfa.optimizers.LAMB, tf.keras.optimizers.schedules.PolynomialDecay, **settings)
        largest = compare(optimizer, title, names, arrays, tf.Variable)
        print(f"{title:30}{largest['absolute']:12.1e}{largest['relative']:12.1e}  {largest['where']}")
        worst = largest["relative"] if not largest["relative"] <= worst else worst
    print(
        f"largest relative difference {worst:.1e}, allowed {TOLERANCE:.0e}: {'pass' if worst <= TOLERANCE else 'FAIL'}"
    )
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
