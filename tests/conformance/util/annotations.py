# ray.util.annotations adds notes to documentation; modules that programs import names from.
import importlib
import inspect
import warnings
from conform import show
from ray.util.annotations import Deprecated, DeveloperAPI, PublicAPI, RayDeprecationWarning


@PublicAPI
def stable():
    """Of stable."""
    return 1


@PublicAPI(stability="beta", api_group="Group")
class Beta:
    """Of Beta.

    More.
    """


@DeveloperAPI
def developer():
    """Of developer."""


@DeveloperAPI()
def called():
    pass


@Deprecated
def old():
    """Of old."""
    return 2


@Deprecated(message="Use new().", warning=True)
def older(x, *, y=1):
    """Of older."""
    return x + y


@Deprecated(warning=True)
class Oldest:
    def __init__(self, x):
        self.x = x


for it in (stable, Beta, developer, called, old, older):
    print(
        it.__name__,
        repr(inspect.getdoc(it)),
        it._annotated,
        it._annotated_type.value,
        it._annotated_api_group,
    )
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(stable(), old(), older(1, y=3), Oldest(5).x)
for one in caught:
    print(
        one.category is RayDeprecationWarning,
        issubclass(one.category, DeprecationWarning),
        one.filename.endswith("annotations.py"),
        one.message,
    )
show("stability", lambda: PublicAPI(stability="gamma")(stable))
for module, name in (
    ("ray.types", "ObjectRef"),
    ("ray.dag.input_node", "InputNode"),
    ("ray.dag.output_node", "MultiOutputNode"),
    ("ray.dag.function_node", "FunctionNode"),
    ("ray.dag.class_node", "ClassNode"),
    ("ray.dag.class_node", "ClassMethodNode"),
    ("ray.dag.dag_node", "DAGNode"),
):
    print(module, getattr(importlib.import_module(module), name).__name__)
