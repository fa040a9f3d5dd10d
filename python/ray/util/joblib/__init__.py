"""joblib over the cluster: register_ray(), then `with joblib.parallel_backend("ray"): ...`."""

from __future__ import annotations


def register_ray() -> None:
    """Registers the backend "ray" with joblib. Raises ImportError when joblib is not installed."""
    try:
        from joblib.parallel import register_parallel_backend
    except ImportError as error:
        raise ImportError(
            "ray.util.joblib needs joblib, which is not installed: pip install joblib"
        ) from error
    from ray.util.joblib.ray_backend import RayBackend

    register_parallel_backend("ray", RayBackend)


__all__ = ["register_ray"]
