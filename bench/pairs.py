"""Writes pairs of neighbouring convolutions of image classifiers as ONNX files, to be raced.

  pairs.py DIRECTORY [--others]

The kinds of pairs are those that Lin, Georganas and Owens fuse (Euro-Par 2021): two convolutions of
AlexNet, VGG and the ResNets, depthwise and pointwise ones of the MobileNets, and those of SqueezeNet.
--others writes 32 other pairs instead, of other networks and of these in other sizes. Weights are random;
each convolution is followed by a ReLU. peers.py races the files:

  peers.py --laminate PROGRAM --threads 2 --rounds 2 --seconds 0.3 $(pairs.py DIRECTORY)
"""

import argparse
import os

import numpy
import onnx
from onnx import helper, numpy_helper


def conv(outputs, kernel=3, stride=1, groups=1):
    """`kernel`: one size for rows and columns, or (rows, columns)."""
    kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
    return {"outputs": outputs, "kernel": kernel, "stride": stride, "groups": groups}


def depthwise(stride=1, kernel=3):
    return conv(None, kernel, stride, None)


# Name: input channels, rows and columns of the input, two layers. All pad as much as keeps a map's
# size at stride 1.
PAIRS = {
    "alexnet-2-3": (64, 27, conv(192, 5), conv(384)),
    "alexnet-3-4": (192, 13, conv(384), conv(256)),
    "alexnet-4-5": (384, 13, conv(256), conv(256)),
    "vgg16-1": (3, 224, conv(64), conv(64)),
    "vgg16-2": (64, 112, conv(128), conv(128)),
    "vgg16-3": (128, 56, conv(256), conv(256)),
    "vgg16-4": (256, 28, conv(512), conv(512)),
    "vgg16-5": (512, 14, conv(512), conv(512)),
    "resnet18-1": (64, 56, conv(64), conv(64)),
    "resnet18-2": (128, 28, conv(128), conv(128)),
    "resnet18-3": (256, 14, conv(256), conv(256)),
    "resnet18-4": (512, 7, conv(512), conv(512)),
    "resnet50-1-reduce": (256, 56, conv(64, 1), conv(64)),
    "resnet50-1-expand": (64, 56, conv(64), conv(256, 1)),
    "resnet50-2-reduce": (512, 28, conv(128, 1), conv(128)),
    "resnet50-3-expand": (256, 14, conv(256), conv(1024, 1)),
    "resnet50-4-reduce": (2048, 7, conv(512, 1), conv(512)),
    "mobilenetv1-1": (32, 112, depthwise(), conv(64, 1)),
    "mobilenetv1-2": (64, 112, depthwise(2), conv(128, 1)),
    "mobilenetv1-3": (128, 56, depthwise(), conv(128, 1)),
    "mobilenetv1-4": (128, 56, depthwise(2), conv(256, 1)),
    "mobilenetv1-5": (256, 28, depthwise(), conv(256, 1)),
    "mobilenetv1-6": (256, 28, depthwise(2), conv(512, 1)),
    "mobilenetv1-7": (512, 14, depthwise(), conv(512, 1)),
    "mobilenetv1-12": (512, 14, depthwise(2), conv(1024, 1)),
    "mobilenetv1-13": (1024, 7, depthwise(), conv(1024, 1)),
    "mobilenetv2-3": (24, 56, conv(144, 1), depthwise()),
    "mobilenetv2-8": (64, 14, conv(384, 1), depthwise()),
    "squeezenet-2": (16, 55, conv(64), conv(32, 1)),
    "squeezenet-6": (192, 27, conv(48, 1), conv(192)),
}


OTHERS = {
    "densenet-1": (128, 56, conv(128, 1), conv(32)),
    "densenet-3": (512, 14, conv(128, 1), conv(32)),
    "densenet-4": (992, 7, conv(128, 1), conv(32)),
    "vgg-160-3": (128, 40, conv(256), conv(256)),
    "vgg-256-5": (512, 16, conv(512), conv(512)),
    "vgg-192-1": (3, 192, conv(64), conv(128)),
    "resnet18-256-1": (64, 64, conv(64), conv(64)),
    "resnet18-288-3": (256, 18, conv(256), conv(256)),
    "resnet34-2-down": (64, 56, conv(128, stride=2), conv(128)),
    "resnet34-4-down": (256, 14, conv(512, stride=2), conv(512)),
    "resnet50-2-expand": (128, 28, conv(128), conv(512, 1)),
    "resnet50-3-down": (512, 28, conv(256, 1), conv(256, stride=2)),
    "resnet50-3-pointwise": (1024, 14, conv(256, 1), conv(1024, 1)),
    "wide-resnet-1": (160, 32, conv(160), conv(160)),
    "resnext-2": (256, 28, conv(256, groups=32), conv(512, 1)),
    "regnet-3": (160, 14, conv(160, 1), conv(160, groups=10)),
    "mobilenetv1-160-2": (64, 80, depthwise(2), conv(128, 1)),
    "mobilenetv1-160-7": (512, 10, depthwise(), conv(512, 1)),
    "mobilenetv1-192-13": (1024, 6, depthwise(), conv(1024, 1)),
    "mobilenetv1-w0.75-5": (192, 28, depthwise(), conv(192, 1)),
    "efficientnet-3": (240, 28, depthwise(kernel=5), conv(40, 1)),
    "efficientnet-5": (480, 14, depthwise(kernel=5), conv(112, 1)),
    "efficientnet-7": (1152, 7, depthwise(kernel=5), conv(192, 1)),
    "mnasnet-3": (24, 56, conv(72, 1), depthwise(2, 5)),
    "convnext-1": (96, 56, depthwise(kernel=7), conv(384, 1)),
    "xception-6": (728, 19, depthwise(), conv(728, 1)),
    "inceptionv3-5": (128, 17, conv(128, (1, 7)), conv(192, (7, 1))),
    "inception-3a": (192, 28, conv(32, 1), conv(96, 5)),
    "googlenet-4b": (480, 14, conv(112, 1), conv(224)),
    "darknet-3": (64, 80, conv(32, 1), conv(64)),
    "darknet-5": (256, 20, conv(128, 1), conv(256)),
    "darknet-6": (1024, 13, conv(512, 1), conv(1024)),
}


def pair_model(name, pair):
    channels, side, *layers = pair
    random = numpy.random.default_rng(1)
    shape = (1, channels, side, side)
    nodes, constants, tensor, extent = [], [], "x", [side, side]
    for number, layer in enumerate(layers, 1):
        kernel, padding = layer["kernel"], [taps // 2 for taps in layer["kernel"]]
        groups, outputs = layer["groups"] or channels, layer["outputs"] or channels
        # Outputs keep the scale of inputs.
        scale = (channels // groups * kernel[0] * kernel[1]) ** -0.5
        weights = random.standard_normal((outputs, channels // groups, *kernel)) * scale
        for what, values in (("w", weights), ("b", random.standard_normal(outputs) / 10)):
            constants.append(
                numpy_helper.from_array(values.astype(numpy.float32), f"{what}{number}"))
        nodes.append(helper.make_node(
            "Conv", [tensor, f"w{number}", f"b{number}"], [f"sum{number}"], name=f"conv{number}",
            kernel_shape=kernel, strides=[layer["stride"]] * 2, pads=padding * 2, group=groups))
        tensor = f"y{number}"
        nodes.append(helper.make_node("Relu", [f"sum{number}"], [tensor]))
        channels = outputs
        extent = [(size + 2 * pad - taps) // layer["stride"] + 1
                  for size, pad, taps in zip(extent, padding, kernel)]
    value = lambda tensor, dims: helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, name, [value("x", shape)],
                              [value(tensor, (1, channels, *extent))], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--others", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.directory, exist_ok=True)
    for name, pair in (OTHERS if options.others else PAIRS).items():
        path = os.path.join(options.directory, name + ".onnx")
        onnx.save(pair_model(name, pair), path)
        print("--net", path)


if __name__ == "__main__":
    main()
