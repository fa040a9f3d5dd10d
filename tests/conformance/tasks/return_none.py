# None, empty containers and nested structures come back as they were.
import ray

ray.init(num_cpus=1, include_dashboard=False)
echo = ray.remote(lambda x: x)
for value in (
    None,
    (),
    [],
    {},
    set(),
    b"",
    "",
    0,
    False,
    1.5,
    3 + 4j,
    (1, (2, [3, {"a": (4,)}])),
    frozenset([1]),
    range(3),
    ...,
    NotImplemented,
    int,
    len,
    10**40,
    -0.0,
    "é\ud800"[:1],
    slice(1, 2),
):
    print(repr(ray.get(echo.remote(value))))
