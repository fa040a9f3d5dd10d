# Notes added to an exception arrive with it.
import ray


@ray.remote(max_retries=0)
def f():
    error = ValueError("noted")
    error.add_note("the note")
    raise error


ray.init(num_cpus=1, include_dashboard=False)
try:
    ray.get(f.remote())
except ValueError as error:
    print("the note" in str(error), getattr(error.cause, "__notes__", None))
