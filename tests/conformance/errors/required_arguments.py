# Exceptions whose constructors need arguments that pickling does not give.
import ray
from conform import show


class Needy(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a}-{b}")
        self.a, self.b = a, b


class Keyword(Exception):
    def __init__(self, *, code):
        super().__init__(code)
        self.code = code


@ray.remote(max_retries=0)
def f(kind):
    raise Needy(1, 2) if kind == "needy" else Keyword(code=5)


ray.init(num_cpus=1, include_dashboard=False)
show("needy", lambda: ray.get(f.remote("needy")), "1-2", "Needy")
show("keyword", lambda: ray.get(f.remote("keyword")), "Keyword")
