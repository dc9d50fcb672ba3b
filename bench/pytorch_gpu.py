#!/usr/bin/env python3
"""One measurement of PyTorch on a GPU, in a process of its own; bench/gpu calls it.

    pytorch_gpu.py --net=resnet50 --batch=256 --classes=1000 --mode=training --precision=bf16 --seconds=2

Every step takes its batch from pinned memory of the host, as a DataLoader gives it. After a short look at both, the
faster one of plain and channels_last goes on (--layout names one). Prints one line of JSON. With --attended it prints
"ready" once PyTorch is imported, begins when it is sent a line, and ends, giving its memory back, at the next line.
"""
import argparse
import contextlib
import gc
import json
import sys
import time

import torch

import pytorch_nets

WARM_UP = 3
PROBES = 3  # steps by which the layouts are compared


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def make_step(net, batch, classes, mode, precision, layout, device, compiled=False):
    """A function that issues one step; the work may end later."""
    form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    on_gpu = device.type == "cuda"
    data, labels = pytorch_nets.inputs(net, batch, classes)
    data = data.contiguous(memory_format=form)
    if on_gpu:
        data, labels = data.pin_memory(), labels.pin_memory()
    model = pytorch_nets.build(net)[0]
    if mode == "inference":
        model = torch.nn.Sequential(model, torch.nn.Softmax(-1))
    model = model.train(mode == "training").to(device)
    if layout == "channels_last":
        model = model.to(memory_format=form)
    run = torch.compile(model, mode="reduce-overhead") if compiled else model
    halves = {"bf16": torch.bfloat16, "fp16": torch.float16}
    autocast = lambda: (torch.autocast(device.type, dtype=halves[precision]) if precision in halves
                        else contextlib.nullcontext())

    if mode == "inference":
        # Weights in 16 bits once: autocast would bring them there for every batch.
        number = halves.get(precision, torch.float32)
        model.to(number)

        def inference_step():
            with torch.inference_mode():
                images = data.to(device, non_blocking=True, memory_format=form)
                run(images.to(number) if images.is_floating_point() else images)
        return inference_step

    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001, momentum=0.9, weight_decay=0.0005,
                                **({"fused": True} if on_gpu else {}))
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")  # else it does nothing

    def training_step():
        optimizer.zero_grad(set_to_none=True)
        images = data.to(device, non_blocking=True, memory_format=form)
        wanted = labels.to(device, non_blocking=True)
        with autocast():
            value = pytorch_nets.loss(run(images), wanted)
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
    return training_step


def seconds_of(step, count, device):
    wait_for(device)
    begin = time.perf_counter()
    for _ in range(count):
        step()
    wait_for(device)
    return time.perf_counter() - begin


def forget(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def steps_per_second(step, seconds, device):
    """Over at least `seconds`, waiting for the GPU every tenth of a second or so."""
    seconds_of(step, WARM_UP, device)
    at_once = max(1, int(0.1 / (seconds_of(step, PROBES, device) / PROBES)))
    steps = taken = 0
    while taken < seconds:
        taken += seconds_of(step, at_once, device)
        steps += at_once
    return steps / taken


def set_precision(precision):
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True


def measure(args, device):
    set_precision(args.precision)
    make = lambda layout: make_step(args.net, args.batch, args.classes, args.mode, args.precision, layout, device,
                                    args.compile)
    layout = args.layout or "plain"
    if not args.layout and args.batch and not args.compile:
        times = {}
        for candidate in ("plain", "channels_last"):
            step = make(candidate)
            seconds_of(step, WARM_UP, device)
            times[candidate] = seconds_of(step, PROBES, device)
            del step
            forget(device)
        layout = min(times, key=times.get)
    rate = steps_per_second(make(layout), args.seconds, device)
    result = {"steps_per_second": rate, "layout": layout, "compiled": args.compile, "version": torch.__version__}
    if device.type == "cuda":
        result.update(own_mb=torch.cuda.max_memory_reserved(device) / 2**20, cuda=torch.version.cuda,
                      cudnn=torch.backends.cudnn.version(), gpu=torch.cuda.get_device_name(device))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True, choices=list(pytorch_nets.NETS))
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--mode", choices=["training", "inference"], default="training")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16", "fp16"], default="f32")
    parser.add_argument("--layout", choices=["plain", "channels_last"], help="default: the faster one")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--attended", action="store_true", help="speak with the program that started it")
    args = parser.parse_args()
    if args.attended:
        print("ready", flush=True)
        if not sys.stdin.readline():
            return
    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} finds no GPU")
    print(json.dumps(measure(args, torch.device("cuda", args.gpu))), flush=True)
    if args.attended:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
