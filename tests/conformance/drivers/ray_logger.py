# The logger "ray": its level and format in the driver and in tasks, and its propagation.
# compare: stderr
import logging
import time
import ray

heard = []


class Listener(logging.Handler):
    def emit(self, record):
        heard.append((record.name, record.getMessage()))


def facts(logger):
    return logging.getLevelName(logger.level), len(logger.handlers), logger.propagate


@ray.remote
def speak():
    logger, below = logging.getLogger("ray"), logging.getLogger("ray.below")
    logger.info("info of a task")
    logger.warning("warning of a task")
    below.info("info below, of a task")
    logger.debug("debug of a task")
    logging.getLogger("other").info("info of another")
    return facts(logger), facts(logging.getLogger())

logger = logging.getLogger("ray")
print(facts(logger), facts(logging.getLogger()))
logger.warning("before init")
ray.init(num_cpus=1, include_dashboard=False)
logging.getLogger().addHandler(Listener())
logger.info("info")
logging.getLogger("ray.below").error("error below")
logger.debug("debug")
logging.getLogger("mine").warning("mine")
print(heard)
print(ray.get(speak.remote()))
time.sleep(1.5)
ray.shutdown()
ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", logging_format="%(levelname)s of %(name)s: %(message)s")
print(facts(logger))
logger.warning("not shown")
logger.error("shown")
