"""cloudpickle, under the name programs know. Protocol 5 by default; a class keeps its module."""
import io as _io
import cloudpickle as _cloudpickle
from cloudpickle import *  # noqa: F401,F403
from cloudpickle import load, loads  # noqa: F401
from cloudpickle import __version__  # noqa: F401


class CloudPickler(_cloudpickle.CloudPickler):
    """Pickles functions and classes by value.

    cloudpickle before 3.1 leaves out what a class has in common with its base, `__module__` too: the class that arrives is of the module `types`, and once it
    comes back it makes the sender's own class one of `types`.
    """

    def reducer_override(self, obj):
        reduced = super().reducer_override(obj)
        if reduced is not NotImplemented and isinstance(obj, type) and reduced[0].__name__ == "_make_skeleton_class":
            namespace = reduced[1][3]
            if "__module__" in obj.__dict__:
                namespace["__module__"] = obj.__module__
        return reduced


Pickler = CloudPickler


def dump(obj, file, protocol=None, buffer_callback=None):
    CloudPickler(file, protocol=protocol, buffer_callback=buffer_callback).dump(obj)


def dumps(obj, protocol=None, buffer_callback=None):
    with _io.BytesIO() as file:
        dump(obj, file, protocol, buffer_callback)
        return file.getvalue()
