#!/usr/bin/env python3
"""Measures how long `train` takes from its start to the log line of iteration 0, on LeNet with a small LMDB.

What is timed: loading the program and its libraries, reading and compiling the nets, filling the parameters, opening
the databases and the first forward and backward pass. `bench_nets --benchmark_filter=^compile/` times compiling alone.

    bench/startup.py [--programs=build/bin] [--rounds=20]
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ among the sources

from random_images import write_database  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = 1000
MARK = "Iteration 0"
SOLVER = """net: "net.prototxt"
base_lr: 0.01 momentum: 0.9 lr_policy: "fixed"
display: 1 max_iter: 1 test_interval: 1000 test_iter: 1 test_initialization: false
snapshot_after_train: false snapshot_prefix: "startup" solver_mode: CPU
"""


def write_files(folder, programs):
    """A database of random images, LeNet reading it, a solver for one iteration."""
    write_database(folder, programs, IMAGES)
    with open(f"{ROOT}/model_zoo/lenet/train_val.prototxt") as file:
        net = file.read()
    for name in ("train_lmdb", "test_lmdb"):
        net = net.replace(f"build/fashion_mnist/{name}", "lmdb")
    with open(f"{folder}/net.prototxt", "w") as file:
        file.write(net)
    with open(f"{folder}/solver.prototxt", "w") as file:
        file.write(SOLVER)


def time_start(program, folder):
    """Milliseconds until the mark, and until the program has ended."""
    begin = time.perf_counter()
    process = subprocess.Popen([program, "--solver=solver.prototxt"], cwd=folder, stderr=subprocess.PIPE, text=True)
    marked, log = None, []
    for line in process.stderr:
        log.append(line)
        if marked is None and MARK in line:
            marked = time.perf_counter() - begin
    if process.wait() != 0 or marked is None:
        sys.exit(f"{program} ended with {process.returncode}, its log {'has' if marked else 'has no'} {MARK!r}:\n"
                 + "".join(log[-20:]))
    return 1e3 * marked, 1e3 * (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="build/bin", help="folder of train and convert_mnist_data")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    programs = os.path.abspath(args.programs)
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder, programs)
        time_start(f"{programs}/train", folder)  # the first run reads the program from disk
        rounds = [time_start(f"{programs}/train", folder) for _ in range(args.rounds)]
    for what, values in zip((f"start to {MARK!r}", "start to end"), zip(*rounds)):
        print(f"{what:<24}median {statistics.median(values):7.1f} ms, {min(values):.1f} to {max(values):.1f}, "
              f"{args.rounds} runs")


if __name__ == "__main__":
    main()
