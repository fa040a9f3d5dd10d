# A module beside the script can be imported by tasks.
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import ray
@ray.remote
def f():
    import beside_the_script
    return beside_the_script.value
ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
print(ray.get(f.remote()))
"""
folder = tempfile.mkdtemp()
for name, text in (("program.py", PROGRAM), ("beside_the_script.py", "value = 42\n")):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)
print(
    subprocess.run(
        [sys.executable, os.path.join(folder, "program.py")], capture_output=True, text=True
    ).stdout,
    end="",
)
