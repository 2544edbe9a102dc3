"""Models in Hugging Face's layout: what the tests of both families share."""

import json
import struct
import subprocess

import job as e2e


def read_safetensors(path):
    """Name -> (dtype, shape, bytes)."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   content[8 + length + entry["data_offsets"][0]:
                           8 + length + entry["data_offsets"][1]])
            for name, entry in header.items()}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def floats(entry):
    return list(struct.unpack(f"<{len(entry[2]) // 4}f", entry[2]))


def in_bf16(entry):
    """Cut off, not rounded: what counts is that it is read back exactly."""
    dtype, shape, content = entry
    return ("BF16", shape, b"".join(content[i + 2:i + 4] for i in range(0, len(content), 4)))


def holmes(*arguments):
    return subprocess.run([e2e.HOLMES, *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=e2e.DEADLINE_S)
