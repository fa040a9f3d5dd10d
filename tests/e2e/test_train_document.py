"""Runs the programs of the users' document on training and the PyTorch profiler as printed, but
without GPUs, and checks what they print and every file that the document promises.

They take minutes and need a newer PyTorch than Debian's, with which only the basic program runs,
shortened.
"""

import importlib.util
import re
import subprocess
import sys

import fashion_mnist
import pytest
import rank_traces
import seed_document
from browser import CHROMIUM
from cluster import world
from hosts import HEAD, PORT, Hosts, namespaces_work
from plugin_page import plugin_page

pytestmark = pytest.mark.skipif(
    seed_document.path() is None, reason=f"the document is not in {seed_document.SEEDS}"
)
as_printed = pytest.mark.train_extras
# These make three batches of a rank in each of the ten epochs, so that the recorded steps span two
# epochs.
IMAGES = 640
SECONDS = 450


class Workplace:
    """A directory in which a program runs: its data set in the directory for temporary files, and a
    storage path."""

    def __init__(self, shell, directory):
        self.shell, self.storage = shell, directory / "cluster_storage"
        (directory / "tmp").mkdir()
        self.storage.mkdir()
        shell.env["TMPDIR"] = str(directory / "tmp")
        fashion_mnist.write(directory / "tmp" / "data", train=IMAGES, test=10)
        # The document's storage path ends with a slash.
        basic, advanced = seed_document.programs(f"{self.storage}/")
        self.programs = {"distributed": directory / "basic.py", "advanced": directory / "more.py"}
        self.programs["distributed"].write_text(basic)
        self.programs["advanced"].write_text(advanced)

    def run(self, name):
        """Runs a program on a cluster that the program starts itself; returns what it printed."""
        done = subprocess.run(
            [sys.executable, self.programs[name]],
            env=self.shell.env,
            cwd=self.shell.scratch,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout
        return without_prefixes(done.stdout)


def without_prefixes(said):
    """Returns the lines that a driver shows, without the names of the processes that printed
    them."""
    return re.sub(r"^(\x1b\[\d+m)?\(\w+ pid=.*?\)(\x1b\[0m)? ", "", said, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory):
    with world() as shell:
        yield Workplace(shell, tmp_path_factory.mktemp("document"))


@pytest.fixture(scope="module")
def distributed(one_machine):
    return one_machine.run("distributed")


@pytest.fixture(scope="module")
def advanced(one_machine):
    return one_machine.run("advanced")


def check_lines(said, workplace, epochs=10):
    """Checks the lines that the basic program prints; returns the name of its run."""
    name = re.search(
        r"^Starting distributed training with profiling: (profiling_run_[0-9a-f]{8})$", said, re.M
    )[1]
    for epoch in range(epochs):
        assert re.search(rf"^Epoch {epoch}, Batch 0, Loss: \d\.\d{{4}}$", said, re.M), said
        assert len(re.findall(rf"^Epoch {epoch}, Loss: \d\.\d{{4}}$", said, re.M)) == 1, said
    assert f"Check '/mnt/cluster_storage/{name}/' for worker-specific memory profiles." in said
    for line in ("rank0_memory_profile.html (Memory", "rank0_chrome_trace.json (Chrome"):
        assert said.count(f"\n  - {line}") == 1, said
    result = re.search(r"completed successfully! Results are: (Result\(.*\))$", said, re.M)[1]
    assert f"'epoch': {epochs - 1}" in result and "error=None" in result
    assert f"path='{workplace.storage}/{name}'" in result
    assert f"checkpoint=Checkpoint(filesystem=local, path={workplace.storage}/{name}/" in result
    # The last lines of a rank may come after this one.
    assert f"\nCheck '{workplace.storage}//{name}/' for profiling results.\n" in said
    return name


def check_checkpoints(folder, count=10):
    import torch

    checkpoints = sorted(folder.glob("checkpoint_*/model.pt"))
    assert len(checkpoints) == count
    state = torch.load(checkpoints[-1])
    assert state and all(key.startswith("module.") for key in state)


def check_pages(folder, name):
    """Checks that there is a page for each rank with a picture inside it."""
    for rank in (0, 1):
        page = (folder / f"rank{rank}_{name}.html").read_text()
        assert "data:image/png;base64,iVBOR" in page and len(page) > 10_000


@pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)
def test_the_basic_program_with_any_pytorch(tmp_path):
    """Runs two epochs instead of ten, without timelines of memory, which need PyTorch 2.1."""
    with world() as shell:
        workplace = Workplace(shell, tmp_path)
        program = workplace.programs["distributed"]
        text = program.read_text()
        assert "range(10)" in text and "prof.export_memory_timeline(" in text
        text = text.replace("range(10)", "range(2)")
        program.write_text(text.replace("prof.export_memory_timeline(", "print("))
        folder = workplace.storage / check_lines(workplace.run("distributed"), workplace, epochs=2)
        check_checkpoints(folder, count=2)
    for trace in (workplace.storage / "logs" / "distributed").iterdir():
        assert "aten::conv2d" in trace.read_text()


@as_printed
def test_the_basic_program(one_machine, distributed):
    folder = one_machine.storage / check_lines(distributed, one_machine)
    traces = rank_traces.read(one_machine.storage / "logs" / "distributed", 2)
    for trace in traces.values():
        rank_traces.check(trace, 2, "train_func_distributed")
        # Where ranks get the function from the driver, the names of its files stay as they are.
        assert any(
            name.startswith("basic.py(") or "/basic.py(" in name
            for name in trace.names("python_function")
        )
    check_checkpoints(folder)
    check_pages(folder, "memory_profile")


@as_printed
def test_the_advanced_program(one_machine, advanced):
    name = re.search(r"^Starting .*: (advanced_profiling_[0-9a-f]{8})$", advanced, re.M)[1]
    for epoch in range(10):
        assert re.search(rf"^Epoch {epoch} completed in \d+\.\d\dms$", advanced, re.M), advanced
    result = re.search(r"completed successfully! Results are: (Result\(.*\))$", advanced, re.M)[1]
    assert "'profiler_step': 30" in result and "'epoch_time_ms': " in result
    traces = rank_traces.read(one_machine.storage / "logs" / "advanced", 2)
    for trace in traces.values():
        rank_traces.check(trace, 2, "train_func_advanced_profiling")
        named = trace.names("user_annotation")
        assert {"forward_pass", "loss_computation", "backward_pass"} <= named
    check_checkpoints(one_machine.storage / name)
    check_pages(one_machine.storage / name, "advanced_memory_profile")


@as_printed
@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_tensorboard_opens_both(one_machine, distributed, advanced, tmp_path):
    with plugin_page(one_machine.storage / "logs", tmp_path) as page:
        assert set(page.choices("advanced")) == {"advanced", "distributed"}
        page.pick("advanced")
        page.choose_run("advanced", "distributed")
        page.choose("Distributed")
        page.tab.has("gloo:all_reduce")
        page.choose_run("distributed", "advanced")
        page.check_trace("ProfilerStep#3", "forward_pass", "loss_computation", "backward_pass")


@as_printed
@pytest.mark.skipif(not namespaces_work(), reason="network namespaces cannot be made here")
def test_the_basic_program_on_two_machines(tmp_path):
    with world() as shell:
        workplace = Workplace(shell, tmp_path)
        machines = Hosts(shell)
        common = ("--num-cpus=1", "--object-store-memory=100000000")
        try:
            machines.rayctl(machines.head, "start", "--head", f"--port={PORT}", *common)
            machines.rayctl(machines.node, "start", f"--address={HEAD}:{PORT}", *common)
            program = machines.on(machines.head, sys.executable, workplace.programs["distributed"])
            try:
                said, _ = program.communicate(timeout=SECONDS)
            finally:
                program.kill()
                program.wait()
            assert program.returncode == 0, said
            addresses = set(re.findall(r"\(ip=(\S+), pid=\d+\) world_rank=", said))
            assert len(addresses) == 2, said
        finally:
            shell.run("stop")
            machines.remove()
        folder = workplace.storage / check_lines(without_prefixes(said), workplace)
        traces = rank_traces.read(workplace.storage / "logs" / "distributed", 2)
        for trace in traces.values():
            rank_traces.check(trace, 2, "train_func_distributed")
        check_checkpoints(folder)
        check_pages(folder, "memory_profile")
