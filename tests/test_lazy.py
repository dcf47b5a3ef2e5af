"""Proves that every name of a package that imports on first use can be imported, and that others are refused."""

import importlib

import pytest

# Each thread is the first to need Keras or TensorFlow, half of them the latter alone.
IN_THREADS = """
import os, sys, threading
import albert_tf
os.chdir(sys.argv[1])
os.mkdir("damaged")
open("damaged/saved_model.pb", "w").close()
def load():
    try:
        albert_tf.pipeline("damaged", engine="tensorflow")
    except ValueError:
        pass
uses = [load, lambda: albert_tf.AlbertEncoder, lambda: albert_tf.data.pretraining_dataset, lambda: albert_tf.layers]
uses += [lambda: albert_tf.AlbertTokenizer.english().as_layer(), lambda: albert_tf.optimizers.Lamb]
barrier = threading.Barrier(len(uses))
def start(use):
    barrier.wait()
    use()
    print("used")
threads = [threading.Thread(target=start, args=(use,)) for use in uses]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
PACKAGES = ("checkpoints", "data", "export", "inference", "models", "optimizers", "tokenization", "trainer")


@pytest.mark.parametrize("package", ["albert_tf", *(f"albert_tf.{name}" for name in PACKAGES)])
def test_names_are_those_for_type_checkers(package):
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'TYPE'"):
        getattr(module, "TYPE")  # noqa: B009


@pytest.mark.exhaustive
def test_threads_may_be_the_first_to_use_names(run_python, tmp_path):
    assert run_python("-c", IN_THREADS, tmp_path).stdout.count("used") == 6
