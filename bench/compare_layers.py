#!/usr/bin/env python3
"""Times single layers, forward and backward, beside PyTorch: where does a path of the CPU crawl?

Needs PyTorch for the Python that runs this (pip install torch). crema is timed by `crema time`, PyTorch in this process
with plain images; both take turns, on --threads. PyTorch keeps memory between steps, as compare_pytorch.py lets it.

    bench/compare_layers.py                          # all, a few minutes
    bench/compare_layers.py --layers=PReLU,LRN --rounds=5
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

# Memory that PyTorch frees is kept for its next tensors; glibc reads this when the program starts.
KEPT = {"MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_MMAP_MAX_": "0"}
if __name__ == "__main__" and not all(name in os.environ for name in KEPT):
    os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, **KEPT))

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES, VOLUMES = (8, 64, 56, 56), (2, 32, 16, 28, 28)
SCALE = {"ms": 1.0, "s": 1e3, "us": 1e-3}


def pooled(settings):
    return f'type: "Pooling" pooling_param {{ {settings} }}'


def convolution(settings, kind="Convolution"):
    return f'type: "{kind}" convolution_param {{ {settings} weight_filler {{ type: "xavier" }} }}'


def resampled(size, kind):
    return f'type: "Resample" resample_param {{ height: {size} width: {size} type: {kind} }}'


def interpolated(size, mode, antialias):
    return lambda x: F.interpolate(x, size=(size, size), mode=mode, antialias=antialias)


def thrice(field, value):
    return " ".join([f"{field}: {value}"] * 3)


def recurrent(kind, torch_kind):
    """A sequence of 32 steps of 32 texts, 256 numbers each; PyTorch begins all of them with the pass."""
    net = torch_kind(256, 256)
    settings = f'type: "{kind}" recurrent_param {{ num_output: 256 weight_filler {{ type: "xavier" }} }}'
    return [(32, 32, 256), (32, 32)], settings, lambda x, _: net(x)[0]


def layers():
    """Name: (shapes of bottoms, the layer in prototxt, what PyTorch computes)."""
    two = [IMAGES, IMAGES]
    return {
        "ReLU": ([IMAGES], 'type: "ReLU"', F.relu),
        "PReLU": ([IMAGES], 'type: "PReLU"', nn.PReLU(64)),
        "ELU": ([IMAGES], 'type: "ELU"', F.elu),
        "Sigmoid": ([IMAGES], 'type: "Sigmoid"', torch.sigmoid),
        "TanH": ([IMAGES], 'type: "TanH"', torch.tanh),
        "Swish": ([IMAGES], 'type: "Swish"', F.silu),
        "GELU": ([IMAGES], 'type: "GELU"', F.gelu),
        "BNLL": ([IMAGES], 'type: "BNLL"', F.softplus),
        "Exp": ([IMAGES], 'type: "Exp"', torch.exp),
        "Log": ([IMAGES], 'type: "Log" log_param { shift: 10 }', lambda x: torch.log(x + 10)),
        "Power 2": ([IMAGES], 'type: "Power" power_param { power: 2 shift: 1 }', lambda x: (x + 1) ** 2),
        "Power 0.75": ([IMAGES], 'type: "Power" power_param { power: 0.75 shift: 10 }', lambda x: (x + 10) ** 0.75),
        "Dropout": ([IMAGES], 'type: "Dropout"', lambda x: F.dropout(x, 0.5, True)),
        "LRN": ([IMAGES], 'type: "LRN"', lambda x: F.local_response_norm(x, 5)),
        "MVN": ([IMAGES], 'type: "MVN"', F.instance_norm),
        "BatchNorm": ([IMAGES], 'type: "BatchNorm"', nn.BatchNorm2d(64, affine=False)),
        "Normalize": ([IMAGES], 'type: "Normalize" norm_param { across_spatial: false }', F.normalize),
        "Softmax": ([IMAGES], 'type: "Softmax"', lambda x: F.softmax(x, 1)),
        "Pooling MAX 3x3 s2": ([IMAGES], pooled("kernel_size: 3 stride: 2"), lambda x: F.max_pool2d(x, 3, 2)),
        "Pooling MAX 3x3": ([IMAGES], pooled("kernel_size: 3 pad: 1"), lambda x: F.max_pool2d(x, 3, 1, 1)),
        "Pooling AVE 3x3": ([IMAGES], pooled("pool: AVE kernel_size: 3 pad: 1"), lambda x: F.avg_pool2d(x, 3, 1, 1)),
        "Pooling AVE global": ([IMAGES], pooled("pool: AVE global_pooling: true"),
                               lambda x: F.adaptive_avg_pool2d(x, 1)),
        "Pooling MAX 2x2x2": ([VOLUMES], pooled(thrice("kernel_size", 2) + " " + thrice("stride", 2)),
                              lambda x: F.max_pool3d(x, 2, 2)),
        "Convolution 3x3": ([IMAGES], convolution("num_output: 64 kernel_size: 3 pad: 1"),
                            nn.Conv2d(64, 64, 3, padding=1)),
        "Convolution 7x7 s2": ([(8, 3, 224, 224)], convolution("num_output: 64 kernel_size: 7 stride: 2 pad: 3"),
                               nn.Conv2d(3, 64, 7, 2, 3)),
        "Convolution 3x3 d2": ([IMAGES], convolution("num_output: 64 kernel_size: 3 pad: 2 dilation: 2"),
                               nn.Conv2d(64, 64, 3, padding=2, dilation=2)),
        "Convolution 32 groups": ([(8, 128, 28, 28)], convolution("num_output: 128 group: 32 kernel_size: 3 pad: 1"),
                                  nn.Conv2d(128, 128, 3, padding=1, groups=32)),
        "Convolution depthwise": ([IMAGES], convolution("num_output: 64 group: 64 kernel_size: 3 pad: 1"),
                                  nn.Conv2d(64, 64, 3, padding=1, groups=64)),
        "Convolution 3x3x3": ([VOLUMES],
                              convolution("num_output: 32 " + thrice("kernel_size", 3) + " " + thrice("pad", 1)),
                              nn.Conv3d(32, 32, 3, padding=1)),
        "Deconvolution 4x4 s2": ([(8, 64, 28, 28)],
                                 convolution("num_output: 64 kernel_size: 4 stride: 2 pad: 1", "Deconvolution"),
                                 nn.ConvTranspose2d(64, 64, 4, 2, 1)),
        "InnerProduct": ([(64, 1024)], 'type: "InnerProduct" inner_product_param { num_output: 1024 weight_filler { '
                         'type: "xavier" } }', nn.Linear(1024, 1024)),
        "GRU": recurrent("GRU", nn.GRU),
        "LSTM": recurrent("LSTM", nn.LSTM),
        "Eltwise SUM": (two, 'type: "Eltwise"', torch.add),
        "Eltwise MAX": (two, 'type: "Eltwise" eltwise_param { operation: MAX }', torch.maximum),
        "Eltwise PROD": (two, 'type: "Eltwise" eltwise_param { operation: PROD }', torch.mul),
        "Concat": (two, 'type: "Concat"', lambda a, b: torch.cat([a, b], 1)),
        "Permute": ([IMAGES], 'type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }',
                    lambda x: x.permute(0, 2, 3, 1).contiguous()),
        "Reorg": ([IMAGES], 'type: "Reorg" reorg_param { stride: 2 }', lambda x: F.pixel_unshuffle(x, 2)),
        "Interp": ([(2, 21, 33, 33)], 'type: "Interp" interp_param { height: 257 width: 257 }',
                   lambda x: F.interpolate(x, size=(257, 257), mode="bilinear", align_corners=True)),
        "Resample LINEAR x2": ([IMAGES], resampled(112, "LINEAR"), interpolated(112, "bilinear", False)),
        "Resample CUBIC x2": ([IMAGES], resampled(112, "CUBIC"), interpolated(112, "bicubic", False)),
        "Resample LINEAR to a half": ([IMAGES], resampled(28, "LINEAR"), interpolated(28, "bilinear", True)),
        "Im2col": ([(2, 64, 28, 28)], 'type: "Im2col" convolution_param { kernel_size: 3 pad: 1 }',
                   lambda x: F.unfold(x, 3, padding=1)),
        "SpatialTransformer": ([(8, 16, 56, 56), (8, 6)], 'type: "SpatialTransformer"',
                               lambda x, theta: F.grid_sample(
                                   x, F.affine_grid(theta.view(-1, 2, 3), x.shape, align_corners=False),
                                   align_corners=False)),
    }


def time_crema(program, shapes, layer, threads):
    """Milliseconds forward and backward."""
    net = "force_backward: true\n"
    for i, shape in enumerate(shapes):
        extents = " ".join(f"dim: {extent}" for extent in shape)
        net += f'layer {{ name: "in{i}" type: "Input" top: "in{i}" input_param {{ shape {{ {extents} }} }} }}\n'
    bottoms = " ".join(f'bottom: "in{i}"' for i in range(len(shapes)))
    net += f'layer {{ name: "timed" {layer} {bottoms} top: "timed" loss_weight: 1 }}\n'
    with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as file:
        file.write(net)
        file.flush()
        command = [program, "time", f"--model={file.name}", f"--threads={threads}", "--iterations=25"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"crema time failed:\n{done.stderr}")
    found = {}
    for name in ("forward", "backward"):
        value, unit = re.search(rf"^{name} +([\d.,]+) (\w+)", done.stdout, re.MULTILINE).groups()
        found[name] = float(value.replace(",", "")) * SCALE[unit]
    return found["forward"], found["backward"]


def time_torch(shapes, compute):
    inputs = [torch.randn(*shape, requires_grad=True) for shape in shapes]
    forward, backward = [], []
    for step in range(27):
        begin = time.perf_counter()
        result = compute(*inputs)
        done = time.perf_counter()
        gradient = torch.ones_like(result)
        again = time.perf_counter()
        result.backward(gradient)
        end = time.perf_counter()
        for tensor in inputs:
            tensor.grad = None
        if step > 1:
            forward.append(done - begin)
            backward.append(end - again)
    return statistics.median(forward) * 1e3, statistics.median(backward) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bin/crema"))
    parser.add_argument("--layers", help="names, with commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    known = layers()
    names = options.layers.split(",") if options.layers else list(known)
    for name in names:
        if name not in known:
            parser.error(f'there is no layer "{name}"; there are: {", ".join(known)}')
    print("| layer | crema ms | PyTorch ms | ratio |\n|---|---|---|---|")
    for name in names:
        shapes, layer, compute = known[name]
        rounds = [(time_crema(options.program, shapes, layer, options.threads), time_torch(shapes, compute))
                  for _ in range(options.rounds)]
        cells = []
        for side in (0, 1):
            cells.append(" / ".join(f"{statistics.median(r[side][i] for r in rounds):.2f}" for i in (0, 1)))
        ratios = " / ".join(f"{statistics.median(r[1][i] / r[0][i] for r in rounds):.2f}" for i in (0, 1))
        print(f"| {name} | {cells[0]} | {cells[1]} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
