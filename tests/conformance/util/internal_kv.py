# The internal key-value store can be read and written.
import ray
from conform import show
from ray.experimental import internal_kv as kv

ray.init(num_cpus=1, include_dashboard=False)
show("put", lambda: kv._internal_kv_put("k", b"v"))
show("put again", lambda: kv._internal_kv_put("k", b"w", overwrite=False))
show("get", lambda: kv._internal_kv_get("k"))
show("exists", lambda: kv._internal_kv_exists("k"))
show("list", lambda: kv._internal_kv_list("k"))
show("namespace", lambda: kv._internal_kv_get("k", namespace=b"other"))
show("delete", lambda: kv._internal_kv_del("k"))
show("gone", lambda: kv._internal_kv_get("k"))
