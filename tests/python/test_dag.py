"""ray.dag: bind() describes calls without making them, and execute() makes each one once."""

import warnings

import pytest

import ray
from ray.dag import DAGNode, InputNode, MultiOutputNode

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore:DAGNode.execute"),
]


@ray.remote
def add(a, b=1):
    return a + b


@ray.remote
def two(x):
    return x, x + 1


@ray.remote
def kinds(values):
    return [type(value).__name__ for value in values]


@ray.remote(num_cpus=0)
class Counter:
    def __init__(self, start=0):
        self.value = start

    def add(self, amount):
        self.value += amount
        return self.value

    def get(self):
        return self.value

    @ray.method(num_returns=2)
    def pair(self, x):
        return x, x + 1


class Box:
    def __init__(self, inside):
        self.inside = inside


def test_bound_functions_run_once_executed():
    node = add.bind(1, b=2)
    assert isinstance(node, DAGNode) and node.get_args() == (1,) and node.get_kwargs() == {"b": 2}
    ref = node.execute()
    assert isinstance(ref, ray.ObjectRef) and ray.get(ref) == 3
    assert ray.get(add.bind(node, add.bind(node, node)).execute()) == 9
    assert ray.get(add.options(name="other").bind(ray.put(4)).execute()) == 5


def test_a_shared_node_runs_once():
    counter = Counter.remote()
    step = counter.add.bind(1)
    assert ray.get(add.bind(step, step).execute()) == 2
    assert ray.get(counter.get.remote()) == 1


def test_nested_nodes_become_references():
    node = add.bind(1)
    assert ray.get(kinds.bind([node, 3]).execute()) == ["ObjectRef", "int"]
    assert ray.get(kinds.bind((node,)).execute()) == ["ObjectRef"]
    assert (
        ray.get(ray.remote(lambda d: type(d["a"]).__name__).bind({"a": node}).execute())
        == "ObjectRef"
    )
    assert ray.get(ray.remote(lambda box: ray.get(box.inside)).bind(Box(node)).execute()) == 2


def test_arguments_without_nodes_are_not_copied():
    from ray.dag.scan import replace_nodes

    for value in (Box(1), [1, 2], (Box(1),), {1}, "text", lambda: 1):
        assert replace_nodes(value, lambda node: None) is value


def test_several_returns():
    refs = two.options(num_returns=2).bind(1).execute()
    assert ray.get(refs) == [1, 2]
    first, second = Counter.remote().pair.bind(5)
    assert ray.get(MultiOutputNode([second, first]).execute()) == [6, 5]


def test_an_input_node_stands_for_the_argument_of_execute():
    with InputNode() as inp:
        node = add.bind(inp, 5)
    assert ray.get(node.execute(3)) == 8
    assert ray.get(node.execute(4)) == 9


def test_parts_of_the_input():
    with InputNode() as inp:
        by_both = add.bind(inp[0], inp.b)
    assert ray.get(by_both.execute(3, b=4)) == 7
    with InputNode() as inp:
        by_key = add.bind(inp["x"], inp["y"])
    assert ray.get(by_key.execute({"x": 1, "y": 2})) == 3
    assert ray.get(by_key.execute(x=1, y=2)) == 3
    with InputNode() as inp:
        by_index = add.bind(inp[0], inp[1])
    assert ray.get(by_index.execute([1, 2])) == 3
    assert ray.get(by_index.execute(1, 2)) == 3
    with pytest.raises(TypeError):
        by_index.execute(1)
    with InputNode() as inp:
        by_attribute = add.bind(inp.real, inp.imag)
    assert ray.get(by_attribute.execute(1 + 2j)) == 3


def test_input_errors():
    with pytest.raises(ValueError):
        InputNode(1)
    with InputNode() as inp, InputNode() as other:
        node = add.bind(inp, other)
    with pytest.raises(AssertionError, match="one unique InputNode"):
        node.execute(1)
    with pytest.raises(ValueError, match="InputNode"):
        Counter.bind(inp)
    with pytest.raises(ValueError):
        inp[1.5]


def test_many_outputs():
    with InputNode() as inp:
        node = MultiOutputNode([add.bind(inp, 1), add.bind(inp, 2)])
    refs = node.execute(3)
    assert isinstance(refs, list) and ray.get(refs) == [4, 5]
    assert MultiOutputNode([]).execute() == []
    with pytest.raises(ValueError):
        MultiOutputNode(add.bind(1))


def test_each_execution_makes_its_own_actor():
    counter = Counter.bind(10)
    step = counter.add.bind(2)
    assert ray.get(step.execute()) == 12
    # Every execution creates an actor.
    assert ray.get(step.execute()) == 12
    one, five = counter.add.bind(1), counter.add.bind(5)
    assert ray.get(add.bind(one, five).execute()) == 13 + 18
    # Every method that was bound before runs before.
    assert ray.get(counter.get.bind().execute()) == 18
    assert ray.get(counter.execute().get.remote()) == 10
    assert (
        ray.get(
            Counter.options(num_cpus=0).bind(add.bind(1)).get.options(name="x").bind().execute()
        )
        == 2
    )


def test_class_node_errors():
    counter = Counter.bind()
    with pytest.raises(AttributeError):
        counter.nothing
    with pytest.raises(AttributeError, match="bind"):
        counter.add.remote(1)


def test_methods_of_living_actors_can_be_bound():
    counter = Counter.remote(100)
    with InputNode() as inp:
        node = counter.add.bind(inp)
    assert [ray.get(node.execute(1)), ray.get(node.execute(7))] == [101, 108]
    assert ray.get(MultiOutputNode([counter.add.bind(1), counter.add.bind(1)]).execute()) == [
        109,
        110,
    ]


def test_errors_of_calls():
    with pytest.raises(TypeError, match="too many positional"):
        add.bind(1, 2, 3).execute()
    with pytest.raises(TypeError):
        ray.get(add.bind("a", 2).execute())
    with pytest.raises(ValueError):
        ray.get(add.bind(1))


def test_long_chains():
    node = add.bind(0)
    for _ in range(1500):
        node = add.bind(node, 0)
    assert isinstance(node.execute(), ray.ObjectRef)


def test_looking_at_graphs():
    with InputNode() as inp:
        node = add.bind(inp, b=add.bind(2))
    names = []
    node.apply_recursive(lambda each: names.append(type(each).__name__) or each)
    assert names == ["InputNode", "FunctionNode", "FunctionNode"]
    assert node.get_stable_uuid() in str(node) and "InputNode" in str(node)
    copy = ray.cloudpickle.loads(ray.cloudpickle.dumps(node))
    assert copy.get_stable_uuid() == node.get_stable_uuid() and ray.get(copy.execute(1)) == 4
    for impossible in (lambda: node(), lambda: list(node), lambda: node.foo):
        with pytest.raises((TypeError, AttributeError)):
            impossible()


def test_deprecation_and_what_is_absent():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        add.bind(1).execute()
    assert any("deprecated" in str(warning.message) for warning in said)
    with pytest.raises(NotImplementedError, match="experimental_compile"):
        add.bind(1).experimental_compile()
    with pytest.raises(NotImplementedError, match="CompiledDAG"):
        ray.dag.CompiledDAG


class Registered:
    def __init__(self, value):
        self.value = value


def test_a_node_inside_an_object_with_a_serializer_of_the_user_is_found():
    ray.util.register_serializer(
        Registered, serializer=lambda one: one.value, deserializer=Registered
    )
    try:
        with InputNode() as given:
            node = length_of.bind(Registered(given))
        assert ray.get(node.execute("four")) == 4
    finally:
        ray.util.deregister_serializer(Registered)


@ray.remote
def length_of(registered):
    return len(registered.value)
