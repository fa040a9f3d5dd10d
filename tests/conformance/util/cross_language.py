# Cross-language calls without a code search path.
import ray
from conform import show

ray.init(num_cpus=1, include_dashboard=False)
show("java", lambda: ray.java_function("a.B", "c").remote())
show("java class", lambda: ray.java_actor_class("a.B").remote())
show("cpp", lambda: ray.cross_language.cpp_function("f").remote(1))
show("cpp kwargs", lambda: ray.cross_language.cpp_function("f").remote(x=1))
show("direct", lambda: ray.java_function("a.B", "c")(1))
