"""Constants that programs read: ports, names and formats fixed by Ray's interface."""

# The default port of the head.
DEFAULT_PORT = 6379
DEFAULT_DASHBOARD_PORT = 8265
RESOURCE_CONSTRAINT_PREFIX = "accelerator_type:"
LOGGER_FORMAT = "%(asctime)s\t%(levelname)s %(filename)s:%(lineno)s -- %(message)s"
# The smallest amount of a resource that a task can ask for.
MIN_RESOURCE_GRANULARITY = 0.0001
