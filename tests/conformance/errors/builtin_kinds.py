# Builtin exceptions of every shape pass through a task.
import subprocess
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)


@ray.remote(max_retries=0)
def f(kind):
    if kind == "os":
        open("/none/such")
    if kind == "unicode":
        b"\xff".decode()
    if kind == "key":
        {}["k"]
    if kind == "stop":
        raise StopIteration(5)
    if kind == "assert":
        assert 1 == 2, "not equal"
    if kind == "import":
        import no_such_module
    if kind == "syntax":
        eval("1 +")
    if kind == "called":
        subprocess.run(["false"], check=True)
    if kind == "generator":
        raise GeneratorExit
    if kind == "interrupt":
        raise KeyboardInterrupt("by hand")
    if kind == "timeout":
        raise TimeoutError("mine")


for kind in (
    "os",
    "unicode",
    "key",
    "stop",
    "assert",
    "import",
    "syntax",
    "called",
    "generator",
    "interrupt",
    "timeout",
):
    show(kind, lambda: ray.get(f.remote(kind), timeout=120))
