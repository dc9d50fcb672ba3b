#!/usr/bin/env python3
"""Records a second of a database larger than memory: in order, shuffled, and shuffled in blocks.

  bench/large_database.py DATABASE [--memory=512] [--rounds=3] [--crema=build/bin/crema]

The memory of each run is limited to --memory MiB (cgroup version 1 or 2; needs root), the system's cache of files is emptied
before it. DATABASE: an LMDB of raw or encoded images of at least 227x227, several times as large.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile

NET = """name: "data"
layer {
  name: "data" type: "Data" top: "data" top: "label" transform_param { crop_size: 227 mirror: true }
  data_param { source: "%s" backend: LMDB batch_size: 32 threads: 1 %s }
}
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param { pool: AVE global_pooling: true } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def make_group(mebibytes):
    version_1 = os.path.isdir("/sys/fs/cgroup/memory")
    folder = ("/sys/fs/cgroup/memory" if version_1 else "/sys/fs/cgroup") + f"/crema_bench_{os.getpid()}"
    os.mkdir(folder)
    limit = "memory.limit_in_bytes" if version_1 else "memory.max"
    with open(f"{folder}/{limit}", "w") as file:
        file.write(str(mebibytes << 20))
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database")
    parser.add_argument("--memory", type=int, default=512, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=150, help="of 32 records")
    parser.add_argument("--buffer", type=int, default=512, help="shuffle_buffer")
    parser.add_argument("--crema", default="build/bin/crema")
    args = parser.parse_args()
    orders = {
        "in order": "",
        "shuffled": "shuffle: true",
        f"shuffle_buffer {args.buffer}": f"shuffle: true shuffle_buffer: {args.buffer}",
    }
    rates = {name: [] for name in orders}
    group = make_group(args.memory)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(args.rounds):
                for name, fields in orders.items():
                    net = f"{folder}/net.prototxt"
                    with open(net, "w") as file:
                        file.write(NET % (os.path.abspath(args.database), fields))
                    os.sync()
                    with open("/proc/sys/vm/drop_caches", "w") as file:
                        file.write("3")
                    command = f'echo $$ > {group}/cgroup.procs; exec "$@"'
                    text = subprocess.run(
                        ["sh", "-c", command, "sh", args.crema, "time", "--data", f"--model={net}", "--phase=TRAIN",
                         f"--iterations={args.batches}"],
                        check=True, capture_output=True, text=True).stdout
                    number, thousand = re.search(r"^data +Data +([\d.]+)( k)?", text, re.MULTILINE).groups()
                    rates[name].append(float(number) * (1000 if thousand else 1))
    finally:
        os.rmdir(group)
    reference = statistics.median(rates["in order"])
    print("| order | records/s, each round | median | of the rate in order |\n|---|---|---|---|")
    for name, values in rates.items():
        median = statistics.median(values)
        print(f"| {name} | {', '.join(f'{v:.0f}' for v in values)} | {median:.0f} | {median / reference:.2f} |")


if __name__ == "__main__":
    main()
