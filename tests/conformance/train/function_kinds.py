# Kinds of training functions: optional parameters, *args, methods, partials, callables.
import functools

from conform import show
from training import fit


class Loop:
    def __call__(self, config):
        return "called", config

    def method(self, config):
        return "method", config


def pair(config, other):
    return config, other


# In local mode the function runs in this process.
show("default", lambda: fit(lambda config=5: config, 0).return_value)
show("one and default", lambda: fit(lambda config, x=5: (config, x), 0).return_value)
show("args", lambda: fit(lambda *args: args, 0).return_value)
show("keywords", lambda: fit(lambda **options: options, 0).return_value)
show("keyword only", lambda: fit(lambda *, x: x, 0, config={"x": 1}))
show("method", lambda: fit(Loop().method, 0).return_value)
show("object", lambda: fit(Loop(), 0).return_value)
show("partial", lambda: fit(functools.partial(pair, other=3), 0).return_value)
show("two", lambda: fit(pair, 0), "2")
show("not a function", lambda: fit(3, 0))
