"""Names of environment variables, for packages that import them from here."""

# The head sets it for the driver of a submitted job: JSON with its `runtime_env` and `metadata`.
RAY_JOB_CONFIG_JSON_ENV_VAR = "RAY_JOB_CONFIG_JSON_ENV_VAR"
