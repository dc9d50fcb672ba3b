"""The nets of model_zoo as crema trains and tests them from made-up data: files for bench/gpu.

DummyData layers give zeros, which go to the GPU in every iteration as batches from a database do; a Bias layer behind
each adds the values, fixed random ones from a file of weights. Numbers drawn anew for every batch would measure the
processor that draws them.
"""
import array
import os
import random
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Folder of model_zoo, batch (0: 20 x 20 words), classes, units of the LSTM layers, iterations between two log lines.
NETS = {
    "lenet": ("lenet", 64, 10, None, 200),
    "resnet20": ("resnet20", 128, 10, None, 50),
    "alexnet": ("alexnet", 256, 1000, None, 10),
    "resnet50": ("resnet50", 256, 1000, None, 4),
    "mobilenet": ("mobilenet", 256, 1000, None, 8),
    "lstm": ("lstm", 0, 10000, None, 50),
    "lstm1500": ("lstm", 0, 10000, 1500, 10),
}
WORDS = [20, 20]  # steps, sequences

SOLVER = """net: "net.prototxt"
base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
display: {display} max_iter: 1000000000 snapshot_after_train: false snapshot_prefix: "bench"
random_seed: 1 precision: {precision}
"""


class Net:
    def __init__(self, name, batch_scale=1.0):
        folder, batch, self.classes, self.units, self.display = NETS[name]
        self.name, self.folder = name, os.path.join(ROOT, "model_zoo", folder)
        self.batch = max(1, round(batch * batch_scale)) if batch else 0
        self.items, self.unit = (self.batch, "images") if batch else (WORDS[1], "sequences")

    def label(self):
        return f"{self.name} ({self.batch or ' x '.join(map(str, WORDS))})"


def layers_of(path):
    """The texts of a net file's layers, without comments."""
    with open(path) as file:
        text = re.sub(r"#.*", "", file.read())
    layers = []
    for match in re.finditer(r"\blayer\s*\{", text):
        depth, end = 1, match.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        layers.append(text[match.start():end])
    return layers


def quoted(layer, field):
    found = re.search(field + r':\s*"([^"]+)"', layer)
    return found.group(1) if found else ""


def shape_text(dims):
    return "shape { " + " ".join(f"dim: {dim}" for dim in dims) + " }"


def image_shape(net):
    """Of one image, as deploy.prototxt has it."""
    source = layers_of(os.path.join(net.folder, "deploy.prototxt"))[0]
    return [int(dim) for dim in re.findall(r"dim:\s*(\d+)", source)][1:]


def source_layers(net):
    """DummyData and what fills its tops; and the shapes of the values."""
    if net.batch:
        tops = {"data": [net.batch, *image_shape(net)], "label": [net.batch]}
        values = {"data": tops["data"][1:], "label": [net.batch]}
    else:
        tops, values = {"data": WORDS, "label": WORDS}, {"data": WORDS, "label": WORDS}
    layers = ['layer { name: "zeros" type: "DummyData" ' + " ".join(f'top: "{top}_zeros"' for top in tops)
              + " dummy_data_param { " + " ".join(shape_text(dims) for dims in tops.values()) + " } }"]
    for top, dims in values.items():
        axis = len(tops[top]) - len(dims)
        layers.append(f'layer {{ name: "{top}_values" type: "Bias" bottom: "{top}_zeros" top: "{top}" '
                      f"param {{ lr_mult: 0 }} bias_param {{ axis: {axis} num_axes: {len(dims)} }} }}")
    if not net.batch:  # 1: the sequences go on
        layers.append('layer { name: "cont" type: "DummyData" top: "cont" dummy_data_param { data_filler { value: 1 } '
                      + shape_text(WORDS) + " } }")
    return layers, values


def varint(number):
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes(data) + bytes([number])


def message(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def weights_layer(name, kind, *blobs):
    """One layer of a .caffemodel; blobs: (extents, values)."""
    content = message(1, name.encode()) + message(2, kind.encode())
    for dims, values in blobs:
        shape = message(1, b"".join(varint(dim) for dim in dims))
        content += message(7, message(7, shape) + message(5, array.array("f", values).tobytes()))
    return message(100, content)


def made_up_values(net, top, dims):
    draw = random.Random(top)
    count = 1
    for dim in dims:
        count *= dim
    if top == "data" and net.batch:
        return [draw.gauss(0, 1) for _ in range(count)]
    return [draw.randrange(net.classes) for _ in range(count)]


def write_files(net, mode, precision, display, folder):
    """net.prototxt, values.caffemodel and solver.prototxt in `folder`.

    In inference BatchNorm takes its statistics from the file of weights: mean 0, variance 1.
    """
    other_phase = "TEST" if mode == "training" else "TRAIN"
    layers, values = source_layers(net)
    weights = [weights_layer(f"{top}_values", "Bias", (dims, made_up_values(net, top, dims)))
               for top, dims in values.items()]
    channels = 0
    for layer in layers_of(os.path.join(net.folder, "train_val.prototxt")):
        kind = quoted(layer, "type")
        if kind in ("Data", "Input", "Accuracy") or re.search(r"phase:\s*" + other_phase, layer):
            continue
        if net.units:
            layer = re.sub(r"num_output:\s*200\b", f"num_output: {net.units}", layer)
        outputs = re.search(r"num_output:\s*(\d+)", layer)
        channels = int(outputs.group(1)) if outputs else channels
        if kind == "BatchNorm" and mode == "inference":
            weights.append(weights_layer(quoted(layer, "name"), kind, ([channels], [0] * channels),
                                         ([channels], [1] * channels), ([1], [1])))
        layers.append(layer)
    with open(os.path.join(folder, "net.prototxt"), "w") as file:
        file.write(f'name: "{net.name}"\n' + "\n".join(layers) + "\n")
    with open(os.path.join(folder, "values.caffemodel"), "wb") as file:
        file.write(b"".join(weights))
    with open(os.path.join(folder, "solver.prototxt"), "w") as file:
        file.write(SOLVER.format(display=display or net.display, precision=precision.upper()))
