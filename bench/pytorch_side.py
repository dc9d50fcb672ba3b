#!/usr/bin/env python3
"""One measurement of PyTorch or ONNX Runtime, in a process of its own so that its peak memory is its own.

    pytorch_side.py time   --net=lenet --mode=training --precision=f32 --layout=channels_last --threads=2 ...
    pytorch_side.py export --net=lenet --file=lenet.onnx ...      writes the inference net for `onnx`
    pytorch_side.py onnx   --net=lenet --file=lenet.onnx --threads=2 ...

Prints one line of JSON. compare_pytorch.py calls it and sets the environment that both sides deserve.
"""
import argparse
import json
import statistics
import time

WARM_UP = 3
SECONDS = 3.0


def measure(step, steps):
    """Milliseconds of single calls: `steps` of them, or for steps = 0 as many as take three seconds."""
    for _ in range(WARM_UP):
        step()
    times = []
    begin = time.perf_counter()
    while len(times) < steps or (steps == 0 and time.perf_counter() - begin < SECONDS):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def peak_megabytes():
    """Not ru_maxrss, which a process inherits from the one that started it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def report(times, version, **more):
    print(json.dumps(dict(more, ms=statistics.median(times), steps=len(times), mb=peak_megabytes(), version=version)))


def inference_model(name):
    """Ends in probabilities, as deploy.prototxt does."""
    import torch

    import pytorch_nets

    return torch.nn.Sequential(pytorch_nets.build(name)[0], torch.nn.Softmax(-1)).eval()


def time_pytorch(args):
    import torch

    import pytorch_nets

    torch.set_num_threads(args.threads)
    data, labels = pytorch_nets.inputs(args.net, args.batch, args.classes)
    training = args.mode == "training"
    model = pytorch_nets.build(args.net)[0].train() if training else inference_model(args.net)
    parameters = pytorch_nets.parameter_count(model)
    if args.layout == "channels_last":
        model, data = model.to(memory_format=torch.channels_last), data.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001, momentum=0.9, weight_decay=0.0005) if training else None
    run = torch.compile(model) if args.compile else model
    bf16 = args.precision == "bf16"
    number = torch.bfloat16 if bf16 and not training else torch.float32
    if not training:
        model.to(number)  # weights once: autocast would bring them there for every batch

    def training_step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            value = pytorch_nets.loss(run(data), labels)
        value.backward()
        optimizer.step()

    def inference_step():
        with torch.inference_mode():
            run(data.to(number) if data.is_floating_point() else data)

    report(measure(training_step if training else inference_step, args.steps), torch.__version__, parameters=parameters)


def export(args):
    import torch

    import pytorch_nets

    data, _ = pytorch_nets.inputs(args.net, args.batch, args.classes)
    torch.onnx.export(inference_model(args.net), (data,), args.file, input_names=["data"], output_names=["prob"])
    print("{}")


def time_onnx(args):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(args.file, options, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    random = numpy.random.default_rng(2)
    if "int" in entry.type:
        data = random.integers(args.classes, size=entry.shape)
    else:
        data = random.standard_normal(entry.shape, dtype=numpy.float32)
    report(measure(lambda: session.run(None, {entry.name: data}), args.steps), onnxruntime.__version__)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["time", "export", "onnx"])
    parser.add_argument("--net", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--mode", choices=["training", "inference"], default="training")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--layout", choices=["plain", "channels_last"], default="plain")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--file", help="of the ONNX model")
    args = parser.parse_args()
    {"time": time_pytorch, "export": export, "onnx": time_onnx}[args.action](args)


if __name__ == "__main__":
    main()
