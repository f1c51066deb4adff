"""Writes 30 pairs of neighbouring convolutions of image classifiers as ONNX files, to be raced.

  pairs.py DIRECTORY

The kinds of pairs are those that Lin, Georganas and Owens fuse (Euro-Par 2021): two convolutions of
AlexNet, VGG and the ResNets, depthwise and pointwise ones of the MobileNets, and those of SqueezeNet.
Weights are random; each convolution is followed by a ReLU. peers.py races the files:

  peers.py --laminate PROGRAM --threads 2 --rounds 2 --seconds 0.3 $(pairs.py DIRECTORY)
"""

import argparse
import os

import numpy
import onnx
from onnx import helper, numpy_helper


def conv(outputs, kernel=3, stride=1):
    return {"outputs": outputs, "kernel": kernel, "stride": stride}


def depthwise(stride=1):
    return {"outputs": None, "kernel": 3, "stride": stride}


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


def pair_model(name):
    channels, extent, *layers = PAIRS[name]
    random = numpy.random.default_rng(1)
    shape = (1, channels, extent, extent)
    nodes, constants, tensor = [], [], "x"
    for number, layer in enumerate(layers, 1):
        kernel, padding = layer["kernel"], layer["kernel"] // 2
        groups = 1 if layer["outputs"] else channels
        outputs = layer["outputs"] or channels
        # Outputs keep the scale of inputs.
        scale = (channels // groups * kernel * kernel) ** -0.5
        weights = random.standard_normal((outputs, channels // groups, kernel, kernel)) * scale
        for what, values in (("w", weights), ("b", random.standard_normal(outputs) / 10)):
            constants.append(
                numpy_helper.from_array(values.astype(numpy.float32), f"{what}{number}"))
        nodes.append(helper.make_node(
            "Conv", [tensor, f"w{number}", f"b{number}"], [f"sum{number}"], name=f"conv{number}",
            kernel_shape=[kernel] * 2, strides=[layer["stride"]] * 2, pads=[padding] * 4,
            group=groups))
        tensor = f"y{number}"
        nodes.append(helper.make_node("Relu", [f"sum{number}"], [tensor]))
        channels = outputs
        extent = (extent + 2 * padding - kernel) // layer["stride"] + 1
    value = lambda tensor, dims: helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, name, [value("x", shape)],
                              [value(tensor, (1, channels, extent, extent))], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    directory = parser.parse_args().directory
    os.makedirs(directory, exist_ok=True)
    for name in PAIRS:
        path = os.path.join(directory, name + ".onnx")
        onnx.save(pair_model(name), path)
        print("--net", path)


if __name__ == "__main__":
    main()
