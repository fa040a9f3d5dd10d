"""The joblib backend: joblib's batches are calls of a ray.util.multiprocessing.Pool."""

from __future__ import annotations

from typing import Any, Callable

from joblib.parallel import ParallelBackendBase

import ray
from ray.util.multiprocessing.pool import Pool
from ray.util.multiprocessing.results import AsyncResult

try:
    from joblib._parallel_backends import AutoBatchingMixin
except ImportError:
    # Without the mixin, every batch has one call.

    class AutoBatchingMixin:  # type: ignore[no-redef]
        def reset_batch_stats(self) -> None:
            """Does nothing, because there are no figures of earlier batches."""


class RayBackend(AutoBatchingMixin, ParallelBackendBase):
    """A joblib backend whose processes are actors of the cluster.

    n_jobs=-1 means all CPUs of the cluster. ray_remote_args: options of the actors.
    """

    supports_timeout = True
    supports_retrieve_callback = False
    uses_threads = False
    supports_sharedmem = False
    default_n_jobs = -1

    def __init__(self, *args: Any, ray_remote_args: dict[str, Any] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._remote_args = ray_remote_args
        self._options: dict[str, Any] = {}
        self._pool: Pool | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """The number of processes for n_jobs, at most the cluster's CPUs; -1 means all of them,
        -2 all but one.

        Raises ValueError for 0.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if not ray.is_initialized():
            ray.init()
        cpus = int(ray.cluster_resources().get("CPU", 1))
        if n_jobs is None:
            return 1
        return min(n_jobs, cpus) if n_jobs > 0 else max(1, cpus + 1 + n_jobs)

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        prefer: Any = None,
        require: Any = None,
        **options: Any,
    ) -> int:
        """Starts the processes and returns their number. options may have ray_remote_args."""
        n_jobs = self.effective_n_jobs(n_jobs)
        self._options = options
        self._pool = Pool(
            processes=n_jobs, ray_remote_args=options.get("ray_remote_args", self._remote_args)
        )
        self.parallel = parallel
        return n_jobs

    def apply_async(
        self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None
    ) -> AsyncResult:
        assert self._pool is not None, "configure() comes first"
        return self._pool.apply_async(func, callback=callback)

    submit = apply_async

    def terminate(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Ends running calls; with ensure_ready new processes take further calls."""
        self.terminate()
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel, **self._options)
