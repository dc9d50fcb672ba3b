#!/usr/bin/env python3
"""Runs exported nets in ONNX Runtime and compares what comes out with what crema computed.

compare.py LIST TOLERANCE: LIST has a line for each run, tensor and shape, in columns that tabs separate
(tests/onnx/runtime_comparison.cc writes it). Prints a line for everything that is wrong, and "done". Where the package
`onnx` is installed the files are checked with it, too, and the shapes that it infers are compared with crema's."""
import sys

import numpy
import onnxruntime

try:
    import onnx
except ImportError:
    onnx = None


def extents(text):
    return [] if text == "-" else [int(extent) for extent in text.split(",")]


def read_list(path):
    runs = []
    for line in open(path):
        kind, name, *rest = line.rstrip("\n").split("\t")
        if kind == "run":
            runs.append({"name": name, "model": rest[0], "input": {}, "output": {}, "shape": {}})
        elif kind == "shape":
            runs[-1]["shape"][name] = extents(rest[0])
        else:
            runs[-1][kind][name] = numpy.fromfile(rest[1], dtype="<f4").reshape(extents(rest[0]))
    return runs


def shape_problems(run):
    """What the format's own rules find wrong with the file, and shapes that follow from it and are not crema's."""
    model = onnx.load(run["model"])
    try:
        onnx.checker.check_model(model, full_check=True)
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        yield "onnx refuses it: %s" % error
        return
    graph = inferred.graph
    for info in list(graph.value_info) + list(graph.output) + list(graph.input):
        expected = run["shape"].get(info.name)
        if expected is None or not info.type.tensor_type.HasField("shape"):
            continue
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in info.type.tensor_type.shape.dim]
        if len(dims) != len(expected) or any(d is not None and d != e for d, e in zip(dims, expected)):
            yield "%s: inferred %s, crema has %s" % (info.name, dims, expected)


def same_objects(got, expected, most):
    """Whether two tops of DetectionOutput hold the same rows. Where scores are equal but for rounding they may have
    changed places."""
    if got.shape[-1] != 7 or got.ndim != 4:
        return False
    got, expected = got.reshape(-1, 7), expected.reshape(-1, 7)
    if not numpy.allclose(got[:, :3], expected[:, :3], rtol=0, atol=most):
        return False
    same = numpy.abs(got[:, None] - expected[None]).max(axis=2) <= most
    return same.any(axis=0).all() and same.any(axis=1).all()


def output_problems(run, tolerance):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(run["model"], options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    if sorted(names) != sorted(run["output"]):
        yield "outputs are %s, expected %s" % (sorted(names), sorted(run["output"]))
        return
    inputs = {value.name: run["input"][value.name] for value in session.get_inputs()}
    for name, got in zip(names, session.run(names, inputs)):
        expected = run["output"][name]
        if got.shape != expected.shape:
            yield "%s: shape %s, expected %s" % (name, got.shape, expected.shape)
            continue
        if got.dtype != numpy.float32:
            yield "%s: type %s" % (name, got.dtype)
        finite = numpy.abs(expected[numpy.isfinite(expected)])
        largest = float(finite.max()) if finite.size else 0.0
        most = tolerance * max(largest, 1e-6)
        if not numpy.allclose(got, expected, rtol=0, atol=most, equal_nan=True) and not same_objects(got, expected, most):
            difference = numpy.abs(got.astype("f8") - expected)
            yield "%s: differs by %g, its largest element is %g" % (name, numpy.nanmax(difference), largest)


def main():
    checked = set()
    for run in read_list(sys.argv[1]):
        problems = []
        if onnx and run["model"] not in checked:
            problems += shape_problems(run)
        try:
            problems += output_problems(run, float(sys.argv[2]))
        except Exception as error:
            problems.append("ONNX Runtime: %s" % error)
        checked.add(run["model"])
        for problem in problems:
            print("%s: %s" % (run["name"], problem.replace("\n", " ")))
    print("done")


main()
