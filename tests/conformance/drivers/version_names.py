# The package has its versions, modes and the language enum.
import ray
from conform import show

print(ray.SCRIPT_MODE, ray.WORKER_MODE, ray.SPILL_WORKER_MODE, ray.RESTORE_WORKER_MODE)
print(ray.__version__.count("."), type(ray.__commit__).__name__)
show("language", lambda: [str(ray.Language.PYTHON), str(ray.Language.CPP), str(ray.Language.JAVA)])
