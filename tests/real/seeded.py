"""Networks as published, with seeded weights: what a network of each family asks of a runtime.

NETWORKS: name -> (function that makes the model of an input size, rows and columns; shape of the
input that is compared).
"""

import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "conformance"))
from picture_networks import Net, artcnn  # noqa: E402


class Family(Net):
    def window(self, x, channels, kernel=3, stride=1, groups=1, act=None):
        """A convolution that keeps the size divided by its stride, and what follows it."""
        before = self.channels[x]
        fan = before // groups * kernel * kernel
        weights = self.rng.normal(0, np.sqrt(1.7 / fan), (channels, before // groups, kernel, kernel))
        bias = self.rng.uniform(-0.1, 0.1, channels)
        constants = [self.constant(w.astype(np.float32)) for w in (weights, bias)]
        y = self.op("Conv", [x, *constants], channels, pads=[(kernel - 1) // 2] * 4,
                    strides=[stride] * 2, group=groups)
        if act == "Swish":
            return self.op("Mul", [y, self.op("Sigmoid", [y])])
        return self.op(act, [y]) if act else y

    def enlarged_by_weights(self, x, channels):
        weights = self.rng.normal(0, np.sqrt(1 / self.channels[x]), (self.channels[x], channels, 2, 2))
        return self.op("ConvTranspose", [x, self.constant(weights.astype(np.float32))], channels,
                       strides=[2, 2])

    def joined(self, *parts):
        return self.op("Concat", list(parts), sum(self.channels[p] for p in parts), axis=1)

    def per_channel(self, x, low, high):
        values = self.rng.uniform(low, high, (self.channels[x], 1, 1)).astype(np.float32)
        return self.constant(values)

    def excited(self, x, squeezed, inner, gate):
        """Squeeze and excitation."""
        factors = self.window(self.op("GlobalAveragePool", [x]), squeezed, 1, act=inner)
        factors = self.window(factors, self.channels[x], 1, act=gate)
        return self.op("Mul", [x, factors])

    def normed(self, x):
        """Over the channels of each pixel, as PyTorch exports LayerNorm2d."""
        centred = self.op("Sub", [x, self.op("ReduceMean", [x], axes=[1], keepdims=1)])
        square = self.op("Mul", [centred, centred])
        variance = self.op("ReduceMean", [square], axes=[1], keepdims=1)
        root = self.op("Sqrt", [self.op("Add", [variance, self.constant(np.float32(1e-6))])])
        scaled = self.op("Mul", [self.op("Div", [centred, root]), self.per_channel(x, 0.8, 1.2)])
        return self.op("Add", [scaled, self.per_channel(x, -0.1, 0.1)])

    def gated(self, x):
        return self.op("Mul", self.halves(x))

    def mixed(self, x, groups, rows, columns):
        """ShuffleNet's order of channels."""
        channels = self.channels[x]
        apart = np.array([1, groups, channels // groups, rows, columns])
        y = self.op("Reshape", [x, self.constant(apart)], channels)
        y = self.op("Transpose", [y], channels, perm=[0, 2, 1, 3, 4])
        return self.op("Reshape", [y, self.constant(np.array([1, channels, rows, columns]))])

    def classified(self, x, classes=1000):
        pooled = self.op("Flatten", [self.op("GlobalAveragePool", [x])])
        weights = self.rng.normal(0, 0.05, (self.channels[x], classes)).astype(np.float32)
        return self.op("MatMul", [pooled, self.constant(weights)], classes)


def unet(size, channels=16, depth=4):
    net, kept = Family(3), []
    x = "x"
    for level in range(depth):
        for _ in range(2):
            x = net.window(x, channels << level, act="Relu")
        kept.append(x)
        x = net.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    for _ in range(2):
        x = net.window(x, channels << depth, act="Relu")
    for level in reversed(range(depth)):
        x = net.joined(net.enlarged_by_weights(x, channels << level), kept[level])
        for _ in range(2):
            x = net.window(x, channels << level, act="Relu")
    return net.model(net.window(x, 1, 1, act="Sigmoid"), size)


def naf_block(net, x):
    channels = net.channels[x]
    y = net.gated(net.window(net.window(net.normed(x), 2 * channels, 1), 2 * channels,
                             groups=2 * channels))
    y = net.op("Mul", [y, net.window(net.op("GlobalAveragePool", [y]), channels, 1)])
    y = net.op("Mul", [net.window(y, channels, 1), net.per_channel(x, 0.1, 0.5)])
    x = net.op("Add", [x, y])
    y = net.window(net.gated(net.window(net.normed(x), 2 * channels, 1)), channels, 1)
    return net.op("Add", [x, net.op("Mul", [y, net.per_channel(x, 0.1, 0.5)])])


def nafnet32(size, channels=32, depth=3):
    net, kept = Family(3), []
    x = net.window("x", channels)
    for _ in range(depth):
        kept.append(x := naf_block(net, x))
        x = net.window(x, 2 * net.channels[x], 2, stride=2)
    x = naf_block(net, x)
    for before in reversed(kept):
        x = net.shuffle(net.window(x, 2 * net.channels[x], 1), 2)
        x = naf_block(net, net.op("Add", [x, before]))
    return net.model(net.op("Add", [net.window(x, 3), "x"]), size)


def spatial_attention(net, x, narrow=16):
    """RLFN's ESA."""
    squeezed = net.window(x, narrow, 1)
    y = net.conv(squeezed, narrow, pad=0)
    y = net.op("MaxPool", [y], kernel_shape=[7, 7], strides=[3, 3])
    size = net.op("Shape", [squeezed])
    y = net.op("Resize", [net.window(y, narrow), "", "", size], mode="linear")
    y = net.op("Add", [y, net.window(squeezed, narrow, 1)])
    return net.op("Mul", [x, net.window(y, net.channels[x], 1, act="Sigmoid")])


def rlfn(size, channels=52, blocks=6):
    net = Family(3)
    first = x = net.window("x", channels)
    for _ in range(blocks):
        y = x
        for _ in range(3):
            y = net.op("LeakyRelu", [net.window(y, channels)], alpha=0.05)
        x = spatial_attention(net, net.window(net.op("Add", [y, x]), channels, 1))
    x = net.op("Add", [net.window(x, channels), first])
    return net.model(net.shuffle(net.window(x, 48), 4), size)


def shufflenet(size, widths=(48, 96, 192), repeats=(4, 8, 4)):
    net = Family(3)
    rows, columns = (extent // 4 for extent in size)
    x = net.window("x", 24, stride=2, act="Relu")
    x = net.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for channels, count in zip(widths, repeats):
        half = channels // 2
        rows, columns = rows // 2, columns // 2
        for k in range(count):
            stride = 2 if k == 0 else 1
            left, right = (x, x) if k == 0 else net.halves(x)
            if k == 0:
                left = net.window(left, net.channels[left], stride=2, groups=net.channels[left])
                left = net.window(left, half, 1, act="Relu")
            right = net.window(right, half, 1, act="Relu")
            right = net.window(right, half, stride=stride, groups=half)
            x = net.mixed(net.joined(left, net.window(right, half, 1, act="Relu")), 2, rows, columns)
    return net.model(net.classified(net.window(x, 1024, 1, act="Relu")), size)


def inverted(net, x, expanded, channels, kernel, stride, act, squeezed, inner, gate):
    y = net.window(x, expanded, 1, act=act) if expanded != net.channels[x] else x
    y = net.window(y, expanded, kernel, stride, groups=expanded, act=act)
    if squeezed:
        y = net.excited(y, squeezed, inner, gate)
    y = net.window(y, channels, 1)
    return net.op("Add", [y, x]) if stride == 1 and channels == net.channels[x] else y


def mobilenetv3_small(size):
    net = Family(3)
    x = net.window("x", 16, stride=2, act="HardSwish")
    for kernel, expanded, channels, has_se, act, stride in (
            (3, 16, 16, True, "Relu", 2), (3, 72, 24, False, "Relu", 2),
            (3, 88, 24, False, "Relu", 1), (5, 96, 40, True, "HardSwish", 2),
            (5, 240, 40, True, "HardSwish", 1), (5, 240, 40, True, "HardSwish", 1),
            (5, 120, 48, True, "HardSwish", 1), (5, 144, 48, True, "HardSwish", 1),
            (5, 288, 96, True, "HardSwish", 2), (5, 576, 96, True, "HardSwish", 1),
            (5, 576, 96, True, "HardSwish", 1)):
        squeezed = max(8, expanded // 32 * 8) if has_se else 0
        x = inverted(net, x, expanded, channels, kernel, stride, act, squeezed, "Relu",
                     "HardSigmoid")
    return net.model(net.classified(net.window(x, 576, 1, act="HardSwish")), size)


def efficientnet_b0(size):
    net = Family(3)
    x = net.window("x", 32, stride=2, act="Swish")
    for factor, channels, count, stride, kernel in (
            (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
            (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for k in range(count):
            before = net.channels[x]
            x = inverted(net, x, factor * before, channels, kernel, stride if k == 0 else 1, "Swish",
                         max(1, before // 4), "Swish", "Sigmoid")
    return net.model(net.classified(net.window(x, 1280, 1, act="Swish")), size)


def c2f(net, x, channels, count, residual=True):
    parts = net.halves(net.window(x, channels, 1, act="Swish"))
    for _ in range(count):
        y = net.window(net.window(parts[-1], channels // 2, act="Swish"), channels // 2, act="Swish")
        parts.append(net.op("Add", [y, parts[-1]]) if residual else y)
    return net.window(net.joined(*parts), channels, 1, act="Swish")


def pyramid_pooled(net, x):
    parts = [net.window(x, net.channels[x] // 2, 1, act="Swish")]
    for _ in range(3):
        parts.append(net.op("MaxPool", [parts[-1]], kernel_shape=[5, 5], pads=[2] * 4))
    return net.window(net.joined(*parts), net.channels[x], 1, act="Swish")


def yolo(size, channels=16, classes=20):
    """YOLOv8's backbone, neck and heads."""
    net = Family(3)
    x = net.window("x", channels, stride=2, act="Swish")
    x = net.window(x, 2 * channels, stride=2, act="Swish")
    levels = []
    x = c2f(net, x, 2 * channels, 1)
    for k, count in enumerate((2, 2, 1)):
        wider = (4 << k) * channels
        x = c2f(net, net.window(x, wider, stride=2, act="Swish"), wider, count)
        levels.append(x)
    third, fourth, fifth = *levels[:2], pyramid_pooled(net, levels[2])
    fourth = c2f(net, net.joined(net.enlarged(fifth, 2), fourth), 8 * channels, 1, False)
    third = c2f(net, net.joined(net.enlarged(fourth, 2), third), 4 * channels, 1, False)
    maps = [third]
    for before in (fourth, fifth):
        x = net.window(maps[-1], net.channels[maps[-1]], stride=2, act="Swish")
        maps.append(c2f(net, net.joined(x, before), net.channels[before], 1, False))
    rows = []
    for x in maps:
        boxes = net.window(net.window(x, 64, act="Swish"), 64, 1)
        scores = net.window(net.window(x, 64, act="Swish"), classes, 1, act="Sigmoid")
        y = net.joined(boxes, scores)
        rows.append(net.op("Reshape", [y, net.constant(np.array([1, 64 + classes, -1]))]))
    return net.model(net.op("Concat", rows, axis=2), size)


NETWORKS = {
    "ArtCNN C4F32": (lambda size: artcnn(size, 32), (1, 1, 270, 480)),
    "U-Net": (unet, (1, 3, 256, 256)),
    "NAFNet-32": (nafnet32, (1, 3, 128, 128)),
    "RLFN": (rlfn, (1, 3, 120, 160)),
    "ShuffleNetV2": (shufflenet, (1, 3, 224, 224)),
    "MobileNetV3-small": (mobilenetv3_small, (1, 3, 224, 224)),
    "EfficientNet-B0": (efficientnet_b0, (1, 3, 224, 224)),
    "YOLO-like": (yolo, (1, 3, 320, 320)),
}
