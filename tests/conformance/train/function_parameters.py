# A training function has no parameter or one, which gets train_loop_config or an empty dict.
from training import fit, start
from conform import show

start()
show("one, no config", lambda: fit(lambda config: config, 1).return_value)
show("config", lambda: fit(lambda config: config, 1, config={"a": [1, None]}).return_value)
show("two", lambda: fit(lambda a, b: 1, 1))
