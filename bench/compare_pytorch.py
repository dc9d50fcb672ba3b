#!/usr/bin/env python3
"""Times one training step of crema and of PyTorch in turn, on the same nets, and prints medians and the ratio.

Needs PyTorch for Python 3 (`apt-get install python3-torch` or pip). Build crema first (build/bench/bench_training).
Each round runs both sides, so that a drift of the machine's speed hits both; the ratio is taken round by round.
PyTorch runs its faster variants: channels_last and plain, with passive OpenMP waiting and memory kept between steps.
Usage: bench/compare_pytorch.py [--rounds=5] [--threads=2] [--bench=build/bench/bench_training]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

NETS = {"lenet": 64, "cifar_quick": 100}


def build(net):
    import torch.nn as nn

    if net == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(800, 500), nn.ReLU(inplace=True), nn.Linear(500, 10)), (1, 28, 28)
    pool = dict(kernel_size=3, stride=2, ceil_mode=True)
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(**pool), nn.ReLU(inplace=True),
        nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(inplace=True), nn.AvgPool2d(**pool),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.AvgPool2d(**pool), nn.Flatten(),
        nn.Linear(1024, 64), nn.Linear(64, 10)), (3, 32, 32)


def time_pytorch(net, threads, steps):
    """Runs in a process of its own; prints the best variant's median step in ms and the peak memory in MB."""
    import resource

    import torch

    torch.set_num_threads(threads)
    batch = NETS[net]
    best = float("inf")
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(1)
        model, shape = build(net)
        model = model.to(memory_format=layout)
        data = torch.randn(batch, *shape).to(memory_format=layout)
        label = torch.full((batch,), 3, dtype=torch.long)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=0.0005)
        loss_of = torch.nn.CrossEntropyLoss()
        times = []
        for step in range(steps + 5):
            start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            loss_of(model(data), label).backward()
            optimizer.step()
            if step >= 5:
                times.append(1e3 * (time.perf_counter() - start))
        best = min(best, statistics.median(times))
    print(json.dumps({"ms": best, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "version": torch.__version__}))


def pytorch_side(net, threads, steps):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="PASSIVE", OPENBLAS_NUM_THREADS="1",
               MALLOC_TRIM_THRESHOLD_="-1", MALLOC_MMAP_MAX_="0")
    out = subprocess.run([sys.executable, __file__, "--child", net, "--threads", str(threads), "--steps", str(steps)],
                         env=env, check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def crema_side(bench, net, threads):
    out = subprocess.run([bench, f"--benchmark_filter={net}/{threads}/", "--benchmark_format=json"],
                         check=True, capture_output=True, text=True).stdout
    row = json.loads(out)["benchmarks"][0]
    return {"ms": row["real_time"], "mb": row["peak_MB"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bench", default="build/bench/bench_training")
    parser.add_argument("--child", choices=NETS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        time_pytorch(args.child, args.threads, args.steps)
        return
    print(f"{'net (batch)':<20}{'crema ms':>10}{'PyTorch ms':>12}{'PyTorch/crema':>15}{'crema MB':>10}{'PyTorch MB':>12}")
    for net, batch in NETS.items():
        rounds = [(crema_side(args.bench, net, args.threads), pytorch_side(net, args.threads, args.steps))
                  for _ in range(args.rounds)]
        median = lambda values: statistics.median(values)
        ours, theirs = [r[0] for r in rounds], [r[1] for r in rounds]
        print(f"{net + f' ({batch})':<20}{median([r['ms'] for r in ours]):>10.2f}{median([r['ms'] for r in theirs]):>12.2f}"
              f"{median([t['ms'] / o['ms'] for o, t in rounds]):>15.2f}{median([r['mb'] for r in ours]):>10.0f}"
              f"{median([r['mb'] for r in theirs]):>12.0f}")
    print(f"threads {args.threads}, rounds {args.rounds}, PyTorch {theirs[0]['version']}")


if __name__ == "__main__":
    main()
