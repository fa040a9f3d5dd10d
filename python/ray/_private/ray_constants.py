"""Constants that programs read: ports, names and formats fixed by Ray's interface."""

DEFAULT_PORT = 6379  # The head's port.
DEFAULT_DASHBOARD_PORT = 8265
RESOURCE_CONSTRAINT_PREFIX = "accelerator_type:"
LOGGER_FORMAT = "%(asctime)s\t%(levelname)s %(filename)s:%(lineno)s -- %(message)s"
