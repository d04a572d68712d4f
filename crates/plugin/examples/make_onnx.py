"""Writes tiny.onnx: one neuron, y = W x + b, over the last observations.

It needs nothing but Python: an ONNX file is Protocol Buffers, of which this writes the few fields
that a model has to have (onnx.proto, IR version 8, opset 13). Who trains a network has an exporter,
such as `torch.onnx.export`, and needs no such script.

    python3 make_onnx.py tiny.onnx 0.5,-1,0.25 0.1

The weights are those of the input, a number for each; the last number is b.
"""

import struct
import sys


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    """A field: an int as a varint, bytes or text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, shape, numbers):
    """TensorProto of float32: dims = 1, data_type = 2, name = 8, raw_data = 9."""
    dims = b"".join(field(1, size) for size in shape)
    raw = struct.pack(f"<{len(numbers)}f", *numbers)
    return dims + field(2, 1) + field(8, name) + field(9, raw)


def value(name, shape):
    """ValueInfoProto: name = 1, type = 2, whose tensor type has float32 and a shape."""
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def model(weights, bias):
    """ModelProto of y = x W + b: a Gemm, whose initializers are W and b."""
    inputs = len(weights)
    node = b"".join(field(1, name) for name in ("x", "W", "b")) + field(2, "y") + field(4, "Gemm")
    graph = (
        field(1, node)
        + field(2, "tiny")
        + field(5, tensor("W", [inputs, 1], weights))
        + field(5, tensor("b", [1], [bias]))
        + field(11, value("x", [1, inputs]))
        + field(12, value("y", [1, 1]))
    )
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def main():
    path, weights, bias = sys.argv[1:4]
    with open(path, "wb") as file:
        file.write(model([float(w) for w in weights.split(",")], float(bias)))


main()
