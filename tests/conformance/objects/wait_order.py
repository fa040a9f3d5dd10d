# wait keeps the order of its input and never returns more than num_returns as ready.
import ray

ray.init(num_cpus=1, include_dashboard=False)
refs = [ray.put(i) for i in range(5)]
ready, rest = ray.wait(refs, num_returns=3)
positions = [
    [refs.index(r) for r in part] for part in (ready, rest)
]  # Ray does not say which three of the five.
print(
    [len(part) for part in positions],
    [part == sorted(part) for part in positions],
    sorted(sum(positions, [])),
)
ready, rest = ray.wait(refs[::-1], num_returns=5)
print([refs.index(r) for r in ready], rest)
ready, rest = ray.wait(refs)
print(len(ready), len(rest), type(ready).__name__, type(rest).__name__)
