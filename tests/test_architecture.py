"""Proves the order of the packages by reading the source: who may import whom, and how long a file may be."""

import ast
import functools
import pathlib
from collections.abc import Iterator

import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / "albert_tf"
LEVELS = {
    "lazy": -1,
    **dict.fromkeys(("config", "costs", "keras_internals", "tasks.table", "files"), 0),
    "registration": 0.5,
    **dict.fromkeys(("tokenization", "layers", "optimizers", "metrics", "checkpoints"), 1),
    "data": 2,
    "models": 2.25,
    "tasks": 2.5,
    **dict.fromkeys(("training_step", "inference"), 3),
    **dict.fromkeys(("trainer", "export"), 4),
    **dict.fromkeys(("report", "serving"), 5),
    "cli": 6,
    "__main__": 7,
}
# Keras calls a model's hooks for the steps of `fit`; there, inside functions, the base class looks upwards.
HOOKS = {("albert_tf.models.training", "albert_tf.training_step")}
# Keras alone, so that these run on all its backends; but for the dropout layer, which asks for its replica's number,
# for the faster forms on a CPU and on GPUs, and for the order in which TensorFlow adds up gradients.
KERAS_ONLY = ("config.py", "costs.py", "keras_internals.py", "layers/", "models/", "optimizers/", "tasks/")
ABOUT_TENSORFLOW = (
    *("layers/dropout.py", "layers/kernels/__init__.py", "layers/kernels/tensorflow_cpu.py"),
    "layers/kernels/tensorflow_gpu.py",
    "models/layer_calls.py",
)
# The one module that knows what of Keras is private; private names elsewhere are the package's own, or Python's.
ABOUT_KERAS = "keras_internals.py"
OF_PYTHON = {"_asdict", "_fields", "_replace", "_exit"}
MAX_FILE, MAX_FUNCTION = 400, 50
# Whoever raises these says why in the commit.
MAX_PACKAGE, MAX_TESTS = 35_466, 33_833

# Modules of 100 lines and more whose tests are in files of other names; a list that only becomes shorter.
TESTED_ELSEWHERE = """
checkpoints/formats/tensorflow.py checkpoints/names.py checkpoints/sentence_modules.py cli/tables.py
data/finetuning/forms.py export/onnx_folder.py export/onnx_graph.py export/serve_base.py
export/serve_question_answering.py export/serve_tags.py export/windows.py inference/loading.py
keras_internals.py layers/attention.py layers/base.py layers/heads.py layers/kernels/plain.py
layers/kernels/tensorflow_cpu.py layers/kernels/tensorflow_gpu.py layers/qa_head.py models/losses.py
models/preprocessor.py models/pretrained.py models/pretraining.py optimizers/adamw.py serving/engine.py
tasks/masked_lm/task.py tasks/question_answering/task.py tasks/sentence_embedding/task.py
tasks/sequence_classification/evaluation.py tasks/sequence_classification/settings.py
tasks/sequence_classification/task.py tasks/token_classification/task.py
tokenization/interface.py tokenization/splitting_graph.py tokenization/wordpiece/cleanup.py
tokenization/wordpiece/vocabulary.py trainer/callbacks.py trainer/checkpoint_files.py trainer/evaluation.py
trainer/fit_loop.py trainer/optimizer_recipe.py trainer/run_folder.py trainer/run_state.py
training_step/accumulation.py training_step/execution.py training_step/step.py training_step/step_monitor.py
"""


@functools.cache
def sources(package: pathlib.Path) -> dict[str, ast.Module]:
    """Every module of a package, parsed, by its path below it."""
    return {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def module_name(path: str, package: str) -> str:
    parts = pathlib.PurePosixPath(path).with_suffix("").parts
    return ".".join((package, *parts)).removesuffix(".__init__")


def imported(tree: ast.AST, importer: str = "", is_package: bool = False) -> Iterator[str]:
    """Every name that the code imports, inside functions too; not what is for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = importer.split(".")[: len(importer.split(".")) - node.level + is_package]
                base = ".".join([*above, base]).rstrip(".")
            yield from (f"{base}.{alias.name}" for alias in node.names)
        else:
            yield from imported(node, importer, is_package)


@functools.cache
def graph(package: pathlib.Path) -> dict[str, set[str]]:
    """Which modules each module imports; a name of a lazy package counts as the module that defines it."""
    trees = sources(package)
    paths = {module_name(path, package.name): path for path in trees}
    lazy = {name: _lazy_names(name, trees[path]) for name, path in paths.items() if path.endswith("__init__.py")}
    return {
        name: {
            module
            for target in imported(trees[path], name, path.endswith("__init__.py"))
            for module in _modules_behind(target, trees[path], set(paths), lazy)
        }
        - {name, ""}
        for name, path in paths.items()
    }


def _modules_behind(target: str, tree: ast.Module, modules: set[str], lazy: dict[str, dict[str, str]]) -> set[str]:
    owner = _owner(target, modules)
    names = lazy.get(owner, {})
    if target != owner:
        used = {target.removeprefix(f"{owner}.")}
    else:  # the package itself is imported: look at what is used of it
        alias = owner.rpartition(".")[2]
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == alias
        }
    return {owner, *(names[name] for name in used & names.keys())}


def _lazy_names(package: str, tree: ast.Module) -> dict[str, str]:
    """Where the names of a package that imports lazily are defined, by name: what it imports for type checkers."""
    found = {}
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    found |= {alias.asname or alias.name: node.module for alias in node.names}
    return {name: module for name, module in found.items() if module.startswith(f"{package}.")}


def _owner(name: str, modules: set[str]) -> str:
    """The module that a name is, or stands in; "" where it is not of this package."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def package_of(module: str) -> str:
    """The package, or the module of it that has a level of its own."""
    _, *parts = module.split(".")
    return ".".join(parts[:2]) if ".".join(parts[:2]) in LEVELS else "".join(parts[:1])


def unknown_packages(package: pathlib.Path) -> list[str]:
    return sorted({package_of(module) for module in graph(package)} - {""} - set(LEVELS))


def imports_upwards(package: pathlib.Path) -> list[str]:
    """Imports of a higher level, or of another package of the same one, or of the top, which offers all of them."""
    return [
        f"{module} -> {target}"
        for module, targets in graph(package).items()
        for target in sorted(targets)
        if package_of(module) and (module, target) not in HOOKS
        if not _may_import(package_of(module), package_of(target))
    ]


def _may_import(package: str, other: str) -> bool:
    if (package, other) in (("costs", "config"), ("config", "files")):
        return True
    return package == other or LEVELS.get(other, len(LEVELS)) < LEVELS.get(package, 0)


def cycles(package: pathlib.Path) -> list[str]:
    """One line for each module that is reached from itself. A package's own __init__ only lists what is in it."""
    edges = graph(package)
    inits = {module for module in edges if any(other.startswith(f"{module}.") for other in edges)}
    edges = {module: targets - inits for module, targets in edges.items() if module not in inits}
    return [module for module in edges if module in _reached(edges, edges[module])]


def _reached(edges: dict[str, set[str]], start: set[str]) -> set[str]:
    seen, waiting = set(), list(start)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += edges.get(module, ())
    return seen


def tensorflow_where_keras_suffices(package: pathlib.Path) -> list[str]:
    return [
        path
        for path, tree in sources(package).items()
        if path.startswith(KERAS_ONLY) and path not in ABOUT_TENSORFLOW
        if any(name.split(".")[0] in ("tensorflow", "tensorflow_text", "tf_keras") for name in imported(tree))
    ]


def private_names_of_keras(package: pathlib.Path) -> list[str]:
    """Imports of `keras.src`, and private names that are Keras': in the module about them, or defined nowhere here."""
    trees = sources(package)
    names = {path: set(_private_names(tree)) for path, tree in trees.items()}
    own = OF_PYTHON | {name for path, tree in trees.items() if path != ABOUT_KERAS for name in _defined(tree)}
    of_keras = names.get(ABOUT_KERAS, set()) - set(_defined(trees.get(ABOUT_KERAS, ast.Module([], []))))
    return [
        f"{path}: {name}"
        for path, tree in trees.items()
        if path != ABOUT_KERAS
        for name in sorted(
            {name for name in imported(tree) if name.startswith("keras.src")}
            | {name for name in names[path] if name in of_keras or name not in own}
        )
    ]


def _private_names(tree: ast.Module) -> Iterator[str]:
    """Private names of attributes, methods and keywords, and those that are looked up by a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names = [method.name for method in node.body if isinstance(method, ast.FunctionDef)]
        elif isinstance(node, ast.Call):
            is_look_up = ast.unparse(node.func).rpartition(".")[2] in ("getattr", "setattr", "hasattr", "get")
            strings = [argument.value for argument in node.args if isinstance(argument, ast.Constant) and is_look_up]
            names = [*strings, *(keyword.arg for keyword in node.keywords)]
        else:
            names = [node.attr] if isinstance(node, ast.Attribute) else []
        yield from filter(_is_private, names)


def _is_private(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.startswith("_") and not name.startswith("__")


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names of its functions, classes and variables, and of the attributes of `self` that it sets."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def long_files(package: pathlib.Path) -> list[str]:
    lines = {path: len((package / path).read_text(encoding="utf-8").splitlines()) for path in sources(package)}
    return [f"{path}: {count}" for path, count in lines.items() if count > MAX_FILE]


def long_functions(package: pathlib.Path) -> list[str]:
    return [
        f"{path}:{node.lineno} {node.name}: {length}"
        for path, node in nodes(package, ast.FunctionDef, ast.AsyncFunctionDef)
        if (length := _length_without_docstring(node, has_options=path.startswith("cli/"))) > MAX_FUNCTION
    ]


def _length_without_docstring(node: ast.FunctionDef, has_options: bool) -> int:
    """The lines of a function; of a command without those of its signature, which are its options."""
    first = node.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
    begin = first.lineno if has_options and node.name == "run" else node.lineno
    return node.end_lineno - begin + 1 - docstring


def nodes(package: pathlib.Path, *kinds: type) -> Iterator[tuple[str, ast.AST]]:
    for path, tree in sources(package).items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kinds))


def catch_all_names(package: pathlib.Path) -> list[str]:
    return [path for path in sources(package) if pathlib.PurePosixPath(path).name in ("utils.py", "common.py")]


def stubs(package: pathlib.Path) -> list[str]:
    raised = nodes(package, ast.Raise)
    return [f"{path}:{node.lineno}" for path, node in raised if "NotImplementedError" in ast.unparse(node)]


# For each rule, a small package that breaks it and one word of the complaint.
@pytest.mark.parametrize(("folder", "most"), [(PACKAGE, MAX_PACKAGE), (PACKAGE.parent / "tests", MAX_TESTS)])
def test_the_code_does_not_grow_unnoticed(folder, most):
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))
    assert most - 1000 < lines <= most


BREACHES = {
    unknown_packages: ({"attic/a.py": ""}, "attic"),
    imports_upwards: (
        {"models/a.py": "", "layers/b.py": "def f():\n    from albert_tf.models import a"},
        "albert_tf.layers.b -> albert_tf.models.a",
    ),
    cycles: ({"data/a.py": "from . import b", "data/b.py": "from albert_tf.data.a import x"}, "albert_tf.data.a"),
    tensorflow_where_keras_suffices: ({"layers/a.py": "def f():\n    import tensorflow as tf"}, "layers/a.py"),
    private_names_of_keras: (
        {
            "keras_internals.py": "def public(model):\n    return model._compile_metrics",
            "models/a.py": "class A:\n    def f(self):\n        self._compile_metrics = None",
        },
        "models/a.py: _compile_metrics",
    ),
    long_files: ({"data/a.py": "x = 1\n" * (MAX_FILE + 1)}, "401"),
    long_functions: ({"data/a.py": "def f():\n" + "    x = 1\n" * MAX_FUNCTION}, "f: 51"),
    catch_all_names: ({"data/utils.py": ""}, "utils"),
    stubs: ({"data/b.py": "def f():\n    raise NotImplementedError"}, "b.py:2"),
}


def written(folder: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    """A package of these files."""
    for path, text in files.items():
        file = folder / "albert_tf" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder / "albert_tf"


@pytest.mark.parametrize("rule", BREACHES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule):
    assert rule(PACKAGE) == []


@pytest.mark.parametrize("rule", BREACHES, ids=lambda rule: rule.__name__)
def test_a_breach_is_seen(rule, tmp_path):
    files, complaint = BREACHES[rule]
    package = written(tmp_path, {"__init__.py": "", **files})
    assert any(complaint in line for line in rule(package)), rule(package)


def test_packages_of_one_level_keep_apart(tmp_path):
    files = {
        "layers/a.py": "import albert_tf.optimizers.b",
        "optimizers/b.py": "",
        "data/c.py": "from albert_tf.optimizers import b",
        "config.py": "import albert_tf",
        "__init__.py": "",
    }
    assert imports_upwards(written(tmp_path, files)) == [
        "albert_tf.config -> albert_tf",
        "albert_tf.layers.a -> albert_tf.optimizers.b",
    ]


def test_long_modules_have_tests_of_their_names():
    def has_test(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return (PACKAGE.parent / "tests" / folder / f"test_{name}").exists()

    modules = [path for path in sources(PACKAGE) if not path.endswith("__init__.py")]
    long = [path for path in modules if len((PACKAGE / path).read_text(encoding="utf-8").splitlines()) >= 100]
    assert [path for path in long if not has_test(path)] == TESTED_ELSEWHERE.split()


def test_the_package_is_really_read():
    edges = graph(PACKAGE)
    assert len(edges) > 60
    assert set(edges["albert_tf.models.training"]) >= {target for _, target in HOOKS}, "imports inside functions count"
    assert "albert_tf.checkpoints" in edges["albert_tf.models.pretrained"]


def test_hooks_look_upwards_inside_functions_alone():
    for module, target in HOOKS:
        path = module.removeprefix("albert_tf.").replace(".", "/") + ".py"
        at_the_top = [node for node in sources(PACKAGE)[path].body if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert target not in imported(ast.Module(at_the_top, []))


def test_imports_are_followed_through_functions_and_lazy_packages(tmp_path):
    files = {
        "__init__.py": "",
        "a.py": "def f():\n    from albert_tf import parts\n    return parts.name",
        "parts/__init__.py": "if TYPE_CHECKING:\n    from albert_tf.parts.one import name",
        "parts/one.py": "name = 1",
        "parts/two.py": "",
    }
    assert graph(written(tmp_path, files))["albert_tf.a"] == {"albert_tf.parts", "albert_tf.parts.one"}
