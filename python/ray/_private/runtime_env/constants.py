"""Names of environment variables that packages read.

Nothing here sets the variable of a job's configuration; Ray does, for the entrypoint of a job.
"""

RAY_JOB_CONFIG_JSON_ENV_VAR = "RAY_JOB_CONFIG_JSON_ENV_VAR"
