"""Writes data/megatron_{u16,i32}.{bin,idx}: small data sets as Megatron's documentation lays them
out, by Python's struct, so that our reader and writer are held to the format and not to each other.

Usage: make_megatron.py FOLDER
"""

import struct
import sys
from pathlib import Path

DOCUMENTS = [[0, 1, 2, 3, 65498], [7], [10, 11, 12]]
TYPES = {"u16": (8, "<H"), "i32": (4, "<i")}


def write(folder, name):
    code, form = TYPES[name]
    width = struct.calcsize(form)
    flat = [token for document in DOCUMENTS for token in document]
    lengths = [len(document) for document in DOCUMENTS]
    offsets = [sum(lengths[:i]) * width for i in range(len(lengths))]
    index = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1)
    index += struct.pack(f"<{len(lengths)}i", *lengths)
    index += struct.pack(f"<{len(lengths)}q", *offsets)
    index += struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1))
    (folder / f"megatron_{name}.idx").write_bytes(index)
    (folder / f"megatron_{name}.bin").write_bytes(b"".join(struct.pack(form, t) for t in flat))


if __name__ == "__main__":
    for each in TYPES:
        write(Path(sys.argv[1]), each)
