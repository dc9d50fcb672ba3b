"""Workers that only pause, each on an emulated machine of its own, and what their rounds take. The steps of a round are
one pause."""
import os
import select
import statistics
import subprocess
import time

import cluster_nodes as nodes_of
from cluster_model import CODED, Wire, exchanged_bytes, round_seconds

PORT = 5570
WARM_UP = 3  # rounds
TOLERANCE = 0.03
BUSIEST = 0.8  # of the processors; beyond that a run measures them, not the network
CLASSES = 10
# Of what bench_cluster tells of a pass.
BYTES_IN, BYTES_OUT, RECEIVED, ACKNOWLEDGED, SENT_AGAIN = 2, 4, 6, 7, 8

# Parameters of the net: as many as LeNet's, and as those of model_zoo/lstm.
LENET, LSTM = 431080, 4651600

NET = """name: "paused"
layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{ shape {{ dim: 1 }} }} }}
layer {{ name: "pause" type: "Pause" bottom: "data" top: "paused" python_param {{ param_str: "{pause}" }} }}
layer {{ name: "table" type: "Embed" bottom: "paused" top: "table"
  embed_param {{ input_dim: {rows} num_output: {classes} bias_term: false weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "table" bottom: "label" top: "loss" }}
"""
# Where gradients are exchanged: as many layers, each of which takes its part of the backward pass and then has its
# gradient. Backward takes two thirds of a step, as it mostly does.
LAYERS, BACKWARD = 8, 2 / 3
LAYERED = """name: "paused"
layer {{ name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {{ shape {{ dim: 1 dim: {classes} }} shape {{ dim: 1 }} }} }}
layer {{ name: "pause" type: "Pause" bottom: "data" top: "l0" python_param {{ param_str: "{pause}" }} }}
{layers}layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "l{last}" bottom: "label" top: "loss" }}
"""
LAYER = """layer {{ name: "l{top}" type: "Pause" bottom: "l{bottom}" top: "l{top}"
  python_param {{ param_str: "0 {pause} {parameters}" }} }}
"""
SOLVER = """net: "{name}.net"
base_lr: 0.0001 lr_policy: "fixed" max_iter: {iterations} random_seed: 1 solver_mode: CPU
snapshot_prefix: "{name}" snapshot_after_train: false
distributed {{
  endpoint: "tcp://{address}:{port}" expected_workers: {workers} min_workers: {workers}
  security {{ allow_plaintext: true }} {settings}
}}
"""


class Net:
    def __init__(self, label, parameters, pause_ms):
        self.label, self.parameters, self.pause_ms = label, parameters, pause_ms
        self.state_bytes = 4 * parameters
        self.alone = None  # iterations a second


class Case:
    def __init__(self, net, steps, workers, gradients=False, topology="STAR", overlap="WAIT", codec=None):
        self.net, self.steps, self.workers, self.gradients = net, 1 if gradients else steps, workers, gradients
        self.topology, self.overlap, self.codec = topology, overlap, codec
        # Both ways: the parameters, but for the codes' warming up.
        self.sent_bytes = net.state_bytes * (CODED[codec] if codec else 1)

    def label(self):
        way = "".join(f", {word}" for word in ("" if self.overlap == "WAIT" else self.overlap.lower(), self.codec) if word)
        return (f"{self.net.label}, {'gradients' if self.gradients else f'{self.steps} steps'}, {self.workers} "
                f"workers, {self.topology}{way}")

    def pause_ms(self):
        """Of a round: all of its steps but for one update of the parameters, which is computed. That all are would say
        more of how many workers this machine has to compute for than of the network."""
        if not self.net.alone:
            return self.net.pause_ms
        step = 1e3 / self.net.alone
        return self.steps * step - (step - self.net.pause_ms)

    def backward_ms(self):
        return BACKWARD * self.pause_ms() if self.gradients else 0.0

    def settings(self):
        # Only the first state and the last pass through the coordinator.
        ways = "" if self.topology == "STAR" else f"topology: {self.topology} keep_rounds: 100000 "
        if self.codec:
            ways += f"codec: {self.codec} down_codec: {self.codec} codec_warmup_rounds: 1 "
        return f"{'mode: GRADIENT' if self.gradients else 'local_steps: 1'} {ways}overlap: {self.overlap}"

    def net_text(self):
        forward = self.pause_ms() - self.backward_ms()
        if not self.gradients:
            return NET.format(pause=forward, rows=self.net.parameters // CLASSES, classes=CLASSES)
        layers = "".join(LAYER.format(bottom=k, top=k + 1, pause=self.backward_ms() / LAYERS,
                                      parameters=self.net.parameters // LAYERS) for k in range(LAYERS))
        return LAYERED.format(pause=forward, classes=CLASSES, layers=layers, last=LAYERS)


def write_solver(folder, name, case, rounds, address):
    """Solver and net; max_iter is one round more than is measured, since the last one sends histories, too."""
    with open(f"{folder}/{name}.net", "w") as file:
        file.write(case.net_text())
    with open(f"{folder}/{name}.solver", "w") as file:
        file.write(SOLVER.format(name=name, iterations=WARM_UP + rounds + 1, address=address, port=PORT,
                                 workers=case.workers, settings=case.settings()))


def measure_alone(program, folder, net, seconds):
    """Iterations a second without a cluster: what efficiency is relative to."""
    write_solver(folder, "alone", Case(net, 1, 1), 1, "127.0.0.1")
    steps = max(5, int(1000 * seconds / (net.pause_ms + 1)))
    solver = f"{folder}/alone.solver"
    done = subprocess.run([program, "alone", solver, str(steps)], cwd=folder, env=nodes_of.ONE_THREAD,
                          capture_output=True, text=True, timeout=60 + 20 * seconds)
    if done.returncode != 0:
        raise nodes_of.Failure(f"{program} alone: {done.stderr.strip()}")
    return float(done.stdout.split()[-1])


class Lines:
    """Of a process, with a time limit."""

    def __init__(self, process):
        self.process, self.rest = process, b""

    def next(self, until):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise nodes_of.Failure("timed out")
            read = os.read(self.process.stdout.fileno(), 65536)
            if not read:
                raise nodes_of.Failure("the coordinator ended early")
            self.rest += read
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()


class Emulation:
    def __init__(self, program, folder, nodes, bytes_a_second, seconds):
        self.program, self.folder, self.nodes = program, folder, nodes
        self.bytes_a_second, self.seconds = bytes_a_second, seconds
        self.each = {}  # gamma, seconds, for parameters of so many bytes

    def expected(self, case, each=0.0):
        return round_seconds(1 / case.net.alone, case.steps, case.workers, case.sent_bytes, self.bytes_a_second,
                             case.topology, case.overlap, BACKWARD, LAYERS, each=each)

    def add_model(self, case, row):
        """What a round should take, by alpha and beta, and with a gamma that the first row of that size decides."""
        ideal = self.expected(case)
        kind = (case.sent_bytes, case.gradients, case.topology, case.overlap)
        each = self.each.setdefault(kind, max(0.0, (row["round_ms"] / 1e3 - ideal) / case.workers))
        for name, seconds in (("model", ideal), ("fitted", self.expected(case, each))):
            row[f"{name}_round_ms"] = 1e3 * seconds
            row[f"{name}_efficiency"] = case.steps / case.net.alone / seconds

    def run(self, case):
        rounds = min(200, max(5, round(self.seconds / self.expected(case))))
        write_solver(self.folder, "cluster", case, rounds, self.nodes.address(0))
        processes = []
        try:
            return self.follow(case, rounds, processes)
        finally:
            nodes_of.end(processes)

    def follow(self, case, rounds, processes):
        limit = time.monotonic() + 30 + 2 * case.workers + 6 * self.expected(case) * (rounds + WARM_UP + 2)
        with open(f"{self.folder}/coordinator.log", "w") as log:
            coordinator = self.nodes.start(0, [self.program, "coordinate", "cluster.solver"], cwd=self.folder,
                                           stdout=subprocess.PIPE, stderr=log)
        processes.append(coordinator)
        lines = Lines(coordinator)
        try:
            while not lines.next(limit).startswith("listening"):
                pass
            endpoint = f"tcp://{self.nodes.address(0)}:{PORT}"
            for worker in range(1, case.workers + 1):
                with open(f"{self.folder}/worker{worker}", "w") as out:
                    processes.append(self.nodes.start(worker, [self.program, "join", endpoint, f"node{worker}"],
                                                      cwd=self.folder, stdout=out, stderr=subprocess.STDOUT))
            begin = self.reach(lines, WARM_UP, limit)
            before = nodes_of.Usage(processes)
            finish = self.reach(lines, WARM_UP + rounds, limit)
            after = nodes_of.Usage(processes)
            for process in processes:
                process.wait(max(1.0, limit - time.monotonic()))
        except (nodes_of.Failure, OSError, subprocess.TimeoutExpired) as failure:
            with open(f"{self.folder}/coordinator.log") as log:
                raise nodes_of.Failure(f"{failure}: {' '.join(log.read().split()[-30:])}") from failure
        return self.row(case, rounds, (begin, finish), before, after)

    @staticmethod
    def reach(lines, version, until):
        """When that round was committed."""
        while True:
            line = lines.next(until).split()
            if line[0] == "round" and int(line[1]) == version:
                return float(line[2])

    def row(self, case, rounds, span, before, after):
        a_round = (span[1] - span[0]) / rounds
        passes = self.passes(case, span)
        wall = after.time - before.time
        cores = os.cpu_count()
        own = sum(after.cpu) - sum(before.cpu)
        row = {"net": case.net.label, "parameters": case.net.parameters, "steps": case.steps,
               "mode": "GRADIENT" if case.gradients else "AVERAGE", "topology": case.topology,
               "overlap": case.overlap, "codec": case.codec or "", "workers": case.workers, "rounds": rounds,
               "round_ms": 1e3 * a_round, **self.gaps(case, passes),
               "efficiency": case.steps / a_round / case.net.alone,
               "cores_used": own / wall / cores, "machine_busy": (after.busy - before.busy) / wall / cores,
               "coordinator_ms": 1e3 * (after.cpu[0] - before.cpu[0]) / rounds,
               "worker_ms": 1e3 * (own - after.cpu[0] + before.cpu[0]) / rounds / case.workers,
               "load": os.getloadavg()[0]}
        row["valid"] = row["cores_used"] < BUSIEST
        return {**row, **self.traffic(case, rounds, a_round, passes)}

    def passes(self, case, span):
        """Of each worker those passes, each a round's, that began in the time measured."""
        kept = []
        for worker in range(1, case.workers + 1):
            with open(f"{self.folder}/worker{worker}") as file:
                result = nodes_of.last_json_line(file.read())
            if not result or not result["completed"]:
                raise nodes_of.Failure(f"worker {worker} did not complete")
            passes = result["passes"]
            inside = [one for one in passes if span[0] <= one[0] <= span[1]]
            if len(inside) < 2:
                raise nodes_of.Failure(f"worker {worker} took part in {len(inside)} of the rounds measured")
            kept.append(inside)
        return kept

    @staticmethod
    def gaps(case, passes):
        """From a worker's pass of a round to that of the next, and how much longer than asked its pauses were (of the
        forward pass): means over the workers."""
        backward = case.backward_ms() / 1e3
        waits = [after[0] - before[1] - backward for worker in passes for before, after in zip(worker, worker[1:])]
        late = [one[1] - one[0] - case.pause_ms() / 1e3 + backward for worker in passes for one in worker]
        return {"wait_ms": 1e3 * statistics.mean(waits), "late_ms": 1e3 * statistics.mean(late)}

    @staticmethod
    def traffic(case, rounds, a_round, passes):
        """Bytes of a worker in a round against the formula: what TCP delivered. What the link carried holds headers and
        what was sent again, too."""
        wire = Wire(round(case.sent_bytes), case.workers, rounds, case.steps)
        if case.topology != "STAR":
            wire.up = wire.down = exchanged_bytes(case.sent_bytes, case.workers)
        grown = [[(b - a) / (len(worker) - 1) for a, b in zip(worker[0], worker[-1])]
                 for worker in passes]
        result, holds = {"sent_again": statistics.mean(node[SENT_AGAIN] for node in grown)}, True
        for name, at, link_at, formula, floor in (("up", ACKNOWLEDGED, BYTES_OUT, wire.up, wire.up_a_second),
                                                  ("down", RECEIVED, BYTES_IN, wire.down, wire.down_a_second)):
            each = [node[at] for node in grown]
            if case.topology == "TREE":  # leaves have less to do than others
                each = [statistics.mean(each)]
            worst = max(each, key=lambda value: abs(value - formula))
            result[f"{name}_bytes"] = statistics.mean(node[at] for node in grown)
            result[f"{name}_link_bytes"] = statistics.mean(node[link_at] for node in grown)
            result[f"{name}_link_packets"] = statistics.mean(node[link_at + 1] for node in grown)
            result[f"{name}_formula"] = formula
            result[f"{name}_worst"] = worst / formula - 1
            result[f"{name}_floor_a_second"] = floor
            holds = holds and abs(worst - formula) <= TOLERANCE * formula + floor * a_round
        # Where bytes are under way while passes begin nothing is to be counted.
        return {**result, "bytes_hold": None if case.overlap == "DELAYED" else holds}
