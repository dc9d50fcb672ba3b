#!/usr/bin/env python3
"""Times crema, PyTorch and ONNX Runtime in turn on the nets of model_zoo, and prints medians, ratios and peak memory.

Needs PyTorch for the Python that runs this (pip install torch); ONNX Runtime takes part in inference where it is
installed (pip install onnx onnxscript onnxruntime). Build crema first (build/bench/bench_nets).

Every measurement is a process of its own. Rounds alternate between the sides, so that a drift of the machine's speed
hits all of them; ratios are taken round by round. PyTorch runs at its best: plain and channels_last (the faster one in
the first round goes on; with --torch-compile also through torch.compile), memory kept between steps, threads that wait
as crema's do. The limit is the time that the net's multiplications and additions would take at the rate of a matrix
product of side 1024, measured in the same round.

    bench/compare_pytorch.py                                        everything: hours
    bench/compare_pytorch.py --nets=lenet,resnet20 --modes=train --precision=f32 --threads=2 --rounds=3
"""
import argparse
import datetime
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no __pycache__ among the sources

from compare_table import markdown_table, print_row  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"train": "training", "infer": "inference"}


def run(command, environment, what):
    done = subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{what} failed:\n{done.stderr[-3000:]}")
    return done.stdout


class Crema:
    def __init__(self, bench, steps):
        self.bench, self.steps = bench, steps
        self.listed = run([bench, "--benchmark_list_tests=true"], {}, bench).split()

    def nets(self):
        rows = (line.split() for line in run([self.bench, "--nets"], {}, self.bench).splitlines())
        return {name: {"batch": int(batch), "classes": int(classes)} for name, batch, classes, _ in rows}

    def has(self, name):
        return any(listed.startswith(name + "/") for listed in self.listed)

    def measure(self, net, mode, precision, threads):
        """None where this build does not compute in that precision."""
        name, product = f"{mode}/{net}/{precision}/{threads}", f"gemm/1024/{precision}/{threads}"
        if not self.has(name):
            return None
        if not self.has(product):
            product = f"gemm/1024/f32/{threads}"
        command = [self.bench, f"--benchmark_filter=^({name}|{product})/", "--benchmark_format=json"]
        if self.steps:
            command.append(f"--steps={self.steps}")
        rows = json.loads(run(command, {"OMP_NUM_THREADS": str(threads)}, name))["benchmarks"]
        step = next(row for row in rows if row["name"].startswith(name))
        if step.get("error_occurred"):
            return {"error": step["error_message"]}
        rate = next((row["gigaflops/s"] for row in rows if row["name"].startswith(product)), None)
        return {"ms": step["real_time"], "mb": step["peak_MB"], "gigaflop": step["gigaflop"],
                "parameters": int(step["parameters"]), "gigaflops_per_second": rate,
                "limit_ms": 1e3 * step["gigaflop"] / rate if rate else None}


class Peer:
    """PyTorch, and ONNX Runtime on the models that it exports."""

    def __init__(self, steps, torch_compile, folder):
        self.steps, self.folder = steps, folder
        self.compiled = (False, True) if torch_compile else (False,)
        self.best = {}
        self.has_onnx = importlib.util.find_spec("onnxruntime") is not None

    def call(self, action, net, size, threads, *more):
        environment = {"OMP_NUM_THREADS": str(threads), "GOMP_SPINCOUNT": "10000", "PYTHONDONTWRITEBYTECODE": "1",
                       "MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_MMAP_MAX_": "0"}
        command = [sys.executable, os.path.join(HERE, "pytorch_side.py"), action, f"--net={net}",
                   f"--batch={size['batch']}", f"--classes={size['classes']}", f"--threads={threads}",
                   f"--steps={self.steps}", *more]
        return json.loads(run(command, environment, " ".join(command)).splitlines()[-1])

    def measure(self, net, size, mode, precision, threads):
        key = (net, mode, precision, threads)
        variants = [self.best[key]] if key in self.best else [
            (layout, compiled) for compiled in self.compiled
            for layout in (("plain", "channels_last") if size["batch"] else ("plain",))]
        results = []
        for layout, compiled in variants:
            more = [f"--mode={mode}", f"--precision={precision}", f"--layout={layout}"]
            result = self.call("time", net, size, threads, *more, *(["--compile"] if compiled else []))
            results.append(dict(result, layout=layout, compiled=compiled))
        best = min(results, key=lambda result: result["ms"])
        self.best[key] = (best["layout"], best["compiled"])
        return best

    def measure_onnx(self, net, size, threads):
        path = os.path.join(self.folder, net + ".onnx")
        if not os.path.exists(path):
            self.call("export", net, size, threads, f"--file={path}")
        return self.call("onnx", net, size, threads, f"--file={path}")


def summary(rounds):
    """Medians of each side over the rounds, and medians of the round-wise ratios."""
    row = {}
    for side in ("crema", "pytorch", "onnx"):
        results = [r[side] for r in rounds if r.get(side)]
        errors = [result["error"] for result in results if "error" in result]
        if errors:
            row[side + "_error"] = errors[0]
        elif results:
            for key in ("ms", "mb", "limit_ms"):
                values = [result[key] for result in results if result.get(key) is not None]
                if values:
                    row[f"{side}_{key}"] = statistics.median(values)
    ours = lambda r: (r.get("crema") or {}).get("ms")
    for side in ("pytorch", "onnx"):
        ratios = [r[side]["ms"] / ours(r) for r in rounds if r.get(side) and ours(r)]
        if ratios:
            row[side + "_ratio"] = statistics.median(ratios)
    over = [r["crema"]["ms"] / r["crema"]["limit_ms"] for r in rounds if ours(r) and r["crema"]["limit_ms"]]
    if over:
        row["times_limit"] = statistics.median(over)
    return row


def compare(args, crema, peer, nets):
    cases = [(net, mode, precision, threads) for mode in args.modes for threads in args.threads for net in args.nets
             for precision in args.precision]
    for net, mode, precision, threads in cases:
        size = nets[net]
        rounds = []
        for _ in range(args.rounds):
            sides = {"crema": crema.measure(net, mode, precision, threads),
                     "pytorch": peer.measure(net, size, mode, precision, threads)}
            if peer.has_onnx and mode == "inference" and precision == "f32":
                sides["onnx"] = peer.measure_onnx(net, size, threads)
            rounds.append(sides)
        case = {"net": net, "batch": size["batch"], "mode": mode, "precision": precision, "threads": threads}
        yield {**case, **summary(rounds), "rounds": rounds}


def processor():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())


def parse_arguments():
    comma_list = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", type=comma_list, help="comma list; default: all of bench_nets --nets")
    parser.add_argument("--modes", type=comma_list, default=list(MODES), help="of train,infer; default: both")
    parser.add_argument("--precision", type=comma_list, default=["f32", "bf16"], help="of f32,bf16; default: both")
    parser.add_argument("--threads", type=comma_list, default=["1", "2"], help="of 1,2; default: both")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--steps", type=int, default=0, help="steps a measurement; default: 3 seconds of them")
    parser.add_argument("--torch-compile", action="store_true", help="let PyTorch try torch.compile as well")
    parser.add_argument("--bench", default="build/bench/bench_nets", help="default: build/bench/bench_nets")
    parser.add_argument("--json", metavar="FILE", help="write all rounds to FILE")
    parser.add_argument("--markdown", metavar="FILE", help="write the table for docs/performance.md to FILE")
    args = parser.parse_args()
    for name, allowed in (("modes", MODES), ("precision", ("f32", "bf16")), ("threads", ("1", "2"))):
        wrong = [value for value in getattr(args, name) if value not in allowed]
        if wrong:
            parser.error(f"--{name}: {wrong[0]!r}, expected some of {','.join(allowed)}")
    if args.rounds < 1 or args.steps < 0:
        parser.error("--rounds must be at least 1, --steps at least 0")
    args.modes = [MODES[mode] for mode in args.modes]
    args.threads = [int(threads) for threads in args.threads]
    return args, parser


def main():
    args, parser = parse_arguments()
    if not os.path.exists(args.bench):
        parser.error(f"{args.bench} does not exist; build crema first or name it with --bench=FILE")
    crema = Crema(args.bench, args.steps)
    nets = crema.nets()
    args.nets = args.nets or list(nets)
    for net in args.nets:
        if net not in nets:
            parser.error(f"--nets: no net {net!r}; there are {', '.join(nets)}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(args.steps, args.torch_compile, folder)
        for row in compare(args, crema, peer, nets):
            rows.append(row)
            print_row(row, first=len(rows) == 1)
    versions = {side: next((r[side]["version"] for row in rows for r in row["rounds"] if r.get(side)), None)
                for side in ("pytorch", "onnx")}
    about = {"date": datetime.date.today().isoformat(), "processor": processor(), "cores": os.cpu_count(),
             "rounds": args.rounds, "versions": versions}
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"about": about, "rows": rows}, file, indent=1)
    if args.markdown:
        with open(args.markdown, "w") as file:
            file.write(markdown_table(rows, about))


if __name__ == "__main__":
    main()
