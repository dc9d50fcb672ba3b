"""Training with worker processes of this machine, with real computation, by the log's own lines."""
import os
import re
import signal
import statistics
import subprocess
import time

from cluster_nodes import Failure, cpu_seconds, end

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = 4096
ENDLESS = 1000000000
DISPLAY = re.compile(r"Iteration (\d+) \(\S+ iter/s, (\S+)s/(\d+) iters\)")

SOLVER = """net: "{net}.prototxt"
base_lr: 0.00001 momentum: 0.9 lr_policy: "fixed" random_seed: 1
display: {display} max_iter: {endless} snapshot_after_train: false snapshot_prefix: "{net}" solver_mode: CPU
{settings}
"""


class Net:
    def __init__(self, name, folder, batch, display):
        self.name, self.folder, self.batch, self.display = name, folder, batch, display

    def write(self, folder):
        with open(f"{ROOT}/model_zoo/{self.folder}/train_val.prototxt") as file:
            text = file.read()
        if self.folder == "lenet":
            for name in ("train_lmdb", "test_lmdb"):
                text = text.replace(f"build/fashion_mnist/{name}", "lmdb")
            text, changed = re.subn(r"\bbatch_size: 64\b", f"batch_size: {self.batch}", text)
        else:
            # T x N words, the same ones every time, which cost what others do.
            shape = f"shape {{ dim: 20 dim: {self.batch} }}"
            fillers = " ".join(f'data_filler {{ type: "constant" value: {value} }}' for value in (17, 1, 3))
            text, changed = re.subn(r'type: "Input"((?: top: "\w+")+)\n  input_param {.*}\n',
                                    rf'type: "DummyData"\1\n  dummy_data_param {{ {shape} {fillers} }}\n', text)
        if changed == 0:
            raise Failure(f"model_zoo/{self.folder}/train_val.prototxt is not as expected")
        with open(f"{folder}/{self.name}.prototxt", "w") as file:
            file.write(text)


NETS = {net.name: net for net in (Net("lenet64", "lenet", 64, 10), Net("lenet1024", "lenet", 1024, 2),
                                  Net("lstm20", "lstm", 20, 5), Net("lstm5", "lstm", 5, 10))}
# How it trains: steps between two exchanges, and what `distributed` says.
SHARDED = "mode: GRADIENT topology: SHARDED keep_rounds: 100000"
WAYS = {"1 step": (1, "local_steps: 1"), "10 steps": (10, "local_steps: 10"), "50 steps": (50, "local_steps: 50"),
        "gradients": (1, "mode: GRADIENT"), "gradients SHARDED": (1, SHARDED),
        "gradients BACKWARD": (1, f"{SHARDED} overlap: BACKWARD")}


def train(program, folder, net, workers, way, seconds):
    """Iterations a second, and the coordinator's processor milliseconds for a round, of a run of about `seconds`."""
    steps, settings = WAYS.get(way, (1, ""))
    display = max(net.display, steps)
    if workers:
        settings = f"distributed {{ local_workers: {workers} {settings} }}"
    with open(f"{folder}/solver.prototxt", "w") as file:
        file.write(SOLVER.format(net=net.name, display=display, endless=ENDLESS, settings=settings))
    process = subprocess.Popen([program, "--solver=solver.prototxt", "--threads=1"], cwd=folder,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    log, iterations, measured, cpu = [], 0, 0.0, []
    limit = time.monotonic() + 60 + 10 * seconds
    try:
        for line in process.stderr:
            log.append(line)
            shown = DISPLAY.search(line)
            if time.monotonic() > limit:
                raise Failure("timed out")
            if not shown:
                continue
            # The first says how long it took to begin, the second holds what is slow once.
            if int(shown[1]) >= display:
                cpu.append((int(shown[1]), cpu_seconds(process.pid)))
            if int(shown[1]) > display:
                iterations, measured = iterations + int(shown[3]), measured + float(shown[2])
            if measured >= seconds:
                break
        else:
            raise Failure("it ended: " + " ".join("".join(log).split()[-40:]))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        end([process])
    rounds = (cpu[-1][0] - cpu[0][0]) / steps
    return iterations / measured, 1e3 * (cpu[-1][1] - cpu[0][1]) / rounds


class Measured:
    """Medians over the rounds so far of one net: plain training, and with one and two workers in each way."""

    def __init__(self, net):
        self.net, self.rates, self.cpu, self.errors = net, {}, {}, {}

    def measure(self, program, folder, ways, seconds):
        """All ways in turn."""
        for workers, way in [(0, None)] + [(workers, way) for way in ways for workers in (1, 2)]:
            key = (workers, way)
            try:
                rate, cpu = train(program, folder, self.net, workers, way, seconds)
            except (Failure, subprocess.TimeoutExpired) as failure:
                self.errors[key] = str(failure)
                continue
            self.rates.setdefault(key, []).append(rate)
            self.cpu.setdefault(key, []).append(cpu)
            yield f"{self.net.name:<10} {way or 'plain':<19} {workers} workers  {rate:8.2f} iterations a second"

    def rate(self, workers, way):
        return statistics.median(self.rates[workers, way]) if (workers, way) in self.rates else None

    def rows(self, ways):
        alone = self.rate(0, None)
        for way in ways:
            one, two = self.rate(1, way), self.rate(2, way)
            row = {"net": self.net.name, "way": way, "alone": alone, "one": one, "two": two,
                   "runs": len(self.rates.get((2, way), [])),
                   "errors": {f"{workers} workers": text for (workers, at), text in self.errors.items() if at == way}}
            if alone and one:
                row["efficiency_1"] = one / alone
                steps = WAYS[way][0]
                row["round_overhead_ms"] = 1e3 * steps * (1 / one - 1 / alone)
                # What a round costs grows with the workers: the star's model with what one of them costs.
                row["model_2"] = (steps / alone) / (steps / alone + 2e-3 * max(0.0, row["round_overhead_ms"]))
            if alone and two:
                row["efficiency_2"] = two / alone
                row["coordinator_ms"] = statistics.median(self.cpu[2, way])
            yield row
