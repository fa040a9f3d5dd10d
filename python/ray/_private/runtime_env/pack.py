"""Packs a runtime environment for rayctl, which starts it as `main JSON`.

It checks the environment, makes its packages, and prints {"fields", "uploads": [{"name", "path",
"temporary"}]} as JSON. The caller uploads the files and removes the temporary ones.
"""

from __future__ import annotations

import json
import os
import sys

from ray._private.runtime_env.submit import JobEnv


def main():
    try:
        env = json.loads(sys.argv[1])
        job = JobEnv(env)
    except Exception as error:
        print(error, file=sys.stderr)
        os._exit(1)
    uploads = [
        {"name": upload.name, "path": upload.path, "temporary": upload.temporary}
        for upload in job.uploads
    ]
    print(json.dumps({"fields": job.fields, "uploads": uploads}))
