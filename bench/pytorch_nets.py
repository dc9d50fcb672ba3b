"""The nets of model_zoo as PyTorch modules: the same layers, sizes and order, so that both sides compute the same.
lstm1500 is the LSTM with 1,500 units in place of 200.

build(name) gives (module, shape of one image or None for words). In training mode GoogLeNet returns the scores of its
two auxiliary classifiers too. `python pytorch_nets.py` prints each net's number of parameters.
"""
import torch
from torch import nn


def caffe_pool(kind, size, stride):
    """Caffe rounds output sizes up."""
    return kind(size, stride, ceil_mode=True)


def max_pool(size=3, stride=2):
    return caffe_pool(nn.MaxPool2d, size, stride)


def relu():
    return nn.ReLU(inplace=True)


def conv_relu(inputs, outputs, size, **options):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, **options), relu())


def conv_norm(inputs, outputs, size, stride=1, padding=0, groups=1, bias=False):
    return [nn.Conv2d(inputs, outputs, size, stride, padding, groups=groups, bias=bias), nn.BatchNorm2d(outputs)]


def local_norm():
    return nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75)


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), max_pool(2), nn.Conv2d(20, 50, 5), max_pool(2), nn.Flatten(),
        nn.Linear(800, 500), relu(), nn.Linear(500, 10))


def cifar_quick():
    average = lambda: caffe_pool(nn.AvgPool2d, 3, 2)
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), max_pool(), relu(),
        *conv_relu(32, 32, 5, padding=2), average(),
        *conv_relu(32, 64, 5, padding=2), average(), nn.Flatten(),
        nn.Linear(1024, 64), nn.Linear(64, 10))


class Residual(nn.Module):
    """relu(shortcut(x) + branch(x)); shortcut None: x itself."""

    def __init__(self, branch, shortcut):
        super().__init__()
        self.branch = nn.Sequential(*branch)
        self.shortcut = nn.Sequential(*shortcut) if shortcut else nn.Identity()

    def forward(self, x):
        return torch.relu_(self.branch(x) + self.shortcut(x))


def resnet20():
    layers = [*conv_norm(3, 16, 3, 1, 1), relu()]
    inputs = 16
    for outputs in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and outputs > 16 else 1
            branch = [*conv_norm(inputs, outputs, 3, stride, 1), relu(), *conv_norm(outputs, outputs, 3, 1, 1)]
            layers.append(Residual(branch, conv_norm(inputs, outputs, 1, stride) if stride > 1 else None))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def alexnet():
    return nn.Sequential(
        *conv_relu(3, 96, 11, stride=4), local_norm(), max_pool(),
        *conv_relu(96, 256, 5, padding=2, groups=2), local_norm(), max_pool(),
        *conv_relu(256, 384, 3, padding=1),
        *conv_relu(384, 384, 3, padding=1, groups=2),
        *conv_relu(384, 256, 3, padding=1, groups=2), max_pool(), nn.Flatten(),
        nn.Linear(9216, 4096), relu(), nn.Dropout(0.5), nn.Linear(4096, 4096), relu(), nn.Dropout(0.5),
        nn.Linear(4096, 1000))


class Branches(nn.Module):
    """Several branches of the same input, side by side along the channels."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def squeezenet():
    layers = [*conv_relu(3, 64, 3, stride=2), max_pool()]
    inputs = 64
    for index, (squeeze, expand) in enumerate(((16, 64), (32, 128), (48, 192), (64, 256))):
        for _ in range(2):
            layers += [*conv_relu(inputs, squeeze, 1),
                       Branches(conv_relu(squeeze, expand, 1), conv_relu(squeeze, expand, 3, padding=1))]
            inputs = 2 * expand
        if index < 2:
            layers.append(max_pool())
    return nn.Sequential(*layers, nn.Dropout(0.5), *conv_relu(512, 1000, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def inception(inputs, one, reduce3, three, reduce5, five, pool):
    return Branches(
        conv_relu(inputs, one, 1),
        nn.Sequential(*conv_relu(inputs, reduce3, 1), *conv_relu(reduce3, three, 3, padding=1)),
        nn.Sequential(*conv_relu(inputs, reduce5, 1), *conv_relu(reduce5, five, 5, padding=2)),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), *conv_relu(inputs, pool, 1)))


class GoogLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_4a = nn.Sequential(
            *conv_relu(3, 64, 7, stride=2, padding=3), max_pool(), local_norm(),
            *conv_relu(64, 64, 1), *conv_relu(64, 192, 3, padding=1), local_norm(), max_pool(),
            inception(192, 64, 96, 128, 16, 32, 32), inception(256, 128, 128, 192, 32, 96, 64), max_pool(),
            inception(480, 192, 96, 208, 16, 48, 64))
        self.to_4d = nn.Sequential(
            inception(512, 160, 112, 224, 24, 64, 64), inception(512, 128, 128, 256, 24, 64, 64),
            inception(512, 112, 144, 288, 32, 64, 64))
        self.to_end = nn.Sequential(
            inception(528, 256, 160, 320, 32, 128, 128), max_pool(),
            inception(832, 256, 160, 320, 32, 128, 128), inception(832, 384, 192, 384, 48, 128, 128),
            nn.AvgPool2d(7, 1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000))
        self.auxiliary1, self.auxiliary2 = self.auxiliary(512), self.auxiliary(528)

    @staticmethod
    def auxiliary(inputs):
        return nn.Sequential(
            caffe_pool(nn.AvgPool2d, 5, 3), *conv_relu(inputs, 128, 1), nn.Flatten(),
            nn.Linear(2048, 1024), relu(), nn.Dropout(0.7), nn.Linear(1024, 1000))

    def forward(self, x):
        a = self.to_4a(x)
        d = self.to_4d(a)
        scores = self.to_end(d)
        return (scores, self.auxiliary1(a), self.auxiliary2(d)) if self.training else scores


def resnet50():
    # The bias before the first normalisation does nothing; Caffe's release has it.
    layers = [*conv_norm(3, 64, 7, 2, 3, bias=True), relu(), max_pool()]
    inputs = 64
    for middle, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and middle > 64 else 1
            branch = [*conv_norm(inputs, middle, 1, stride), relu(), *conv_norm(middle, middle, 3, 1, 1), relu(),
                      *conv_norm(middle, 4 * middle, 1)]
            layers.append(Residual(branch, conv_norm(inputs, 4 * middle, 1, stride) if block == 0 else None))
            inputs = 4 * middle
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def mobilenet():
    layers = [*conv_norm(3, 32, 3, 2, 1), relu()]
    inputs = 32
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + 5 * [(512, 1)] + [(1024, 2), (1024, 1)]
    for outputs, stride in blocks:
        layers += [*conv_norm(inputs, inputs, 3, stride, 1, groups=inputs), relu(),
                   *conv_norm(inputs, outputs, 1), relu()]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Conv2d(1024, 1000, 1), nn.Flatten())


class WordModel(nn.Module):
    """nn.LSTM has two biases a gate where Caffe has one: eight a unit more, with no effect on the time."""

    def __init__(self, units=200):
        super().__init__()
        self.embed = nn.Embedding(10000, units)
        self.lstm = nn.LSTM(units, units, num_layers=2)
        self.predict = nn.Linear(units, 10000)

    def forward(self, words):
        return self.predict(self.lstm(self.embed(words))[0])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        texts, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(texts, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.drop(self.proj(found.transpose(1, 2).reshape(texts, length, width)))
        return x + self.drop(self.perceptron(self.norm2(x)))


class CharTransformer(nn.Module):
    """configs/char_transformer."""

    def __init__(self, width=128, length=64, characters=65):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(4)], nn.LayerNorm(width))
        self.predict = nn.Linear(width, characters)

    def forward(self, text):
        return self.predict(self.blocks(self.embed(text) + self.place))


class SequenceReading(nn.Module):
    """configs/sequence_reading. Of the biases see WordModel."""

    def __init__(self):
        super().__init__()
        self.columns = nn.Sequential(conv_relu(1, 16, 5, padding=2), max_pool(2), conv_relu(16, 32, 5, padding=2),
                                     max_pool(2))
        self.lstm = nn.LSTM(32 * 7, 64, bidirectional=True)
        self.scores = nn.Linear(128, 11)

    def forward(self, strips):
        return self.scores(self.lstm(self.columns(strips).permute(3, 0, 1, 2).flatten(2))[0])


# Shape of one image; None: 20 x 20 words; of two extents: texts and their characters.
NETS = {
    "lenet": (lenet, (1, 28, 28)),
    "cifar_quick": (cifar_quick, (3, 32, 32)),
    "resnet20": (resnet20, (3, 32, 32)),
    "alexnet": (alexnet, (3, 227, 227)),
    "squeezenet": (squeezenet, (3, 227, 227)),
    "googlenet": (GoogLeNet, (3, 224, 224)),
    "resnet50": (resnet50, (3, 224, 224)),
    "mobilenet": (mobilenet, (3, 224, 224)),
    "lstm": (WordModel, None),
    "lstm1500": (lambda: WordModel(1500), None),
    "char_transformer": (CharTransformer, (32, 64)),
    "sequence_reading": (SequenceReading, (1, 28, 140)),
}


def build(name):
    make, shape = NETS[name]
    torch.manual_seed(1)
    return make(), shape


def inputs(name, batch, classes):
    """Made-up data and labels; the labels are flat, as loss() wants them."""
    shape = NETS[name][1]
    torch.manual_seed(2)
    if shape is None:
        return torch.randint(classes, (20, 20)), torch.randint(classes, (400,))
    if len(shape) == 2:
        return torch.randint(classes, shape), torch.randint(classes, (shape[0] * shape[1],))
    return torch.randn(batch, *shape), torch.randint(classes, (batch, 5) if name == "sequence_reading" else (batch,))


def loss(scores, labels):
    """Mean cross-entropy, of which auxiliary scores count 0.3; of several labels each minus their log-probability."""
    cross_entropy = nn.functional.cross_entropy
    if labels.dim() == 2:
        steps, batch, blank = scores.shape[0], scores.shape[1], scores.shape[2] - 1
        lengths = torch.full((batch,), steps), torch.full((batch,), labels.shape[1])
        values = nn.functional.ctc_loss(scores.log_softmax(-1).float(), labels, *lengths, blank, reduction="sum")
        return values / batch
    if isinstance(scores, tuple):
        return cross_entropy(scores[0], labels) + 0.3 * sum(cross_entropy(other, labels) for other in scores[1:])
    return cross_entropy(scores.flatten(0, -2), labels)


def parameter_count(module):
    return sum(parameter.numel() for parameter in module.parameters())


if __name__ == "__main__":
    for name in NETS:
        print(f"{name:<14}{parameter_count(build(name)[0]):>12,}")
