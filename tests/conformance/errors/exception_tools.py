# Errors can be converted to bytes, and the dual error can be made by hand.
import ray
import ray.exceptions as ex

names = [cls.__name__ for cls in ex.RAY_EXCEPTION_TYPES]
print(
    all(issubclass(cls, Exception) for cls in ex.RAY_EXCEPTION_TYPES),
    [
        name
        for name in ("RayTaskError", "ObjectLostError", "GetTimeoutError", "RayActorError")
        if name not in names
    ],
)

error = ex.RayTaskError("f", "traceback text", KeyError("k"))
back = ex.RayError.from_bytes(error.to_bytes())
print(type(back).__name__, isinstance(back, KeyError), repr(back.cause), str(back).splitlines()[-1])
dual = error.make_dual_exception_instance()
print(type(dual).__name__, isinstance(dual, KeyError), isinstance(dual, ex.RayTaskError), dual.args)
