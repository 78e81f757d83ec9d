#!/usr/bin/env python3
"""Cuts large fixtures down to the small ones that tests/fixtures/ holds.

usage: tools/trim_fixtures.py DIRECTORY [GROUP ...]

DIRECTORY holds the full fixtures (kernels/attn.safetensors, ...). Each group is one function; without names all run.
The output is a function of the input alone: running it again gives the same bytes.
"""

import json
import pathlib
import struct
import sys

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
SIZES = {"F64": 8, "F32": 4, "BF16": 2, "I64": 8, "I32": 4, "I8": 1, "U8": 1}


class Array:
    """A tensor of a safetensors file: dtype, shape, bytes."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytes(data)

    def row_bytes(self):
        return len(self.data) // self.shape[0]

    def rows(self, indices):
        size = self.row_bytes()
        data = b"".join(self.data[i * size:(i + 1) * size] for i in indices)
        return Array(self.dtype, [len(indices)] + self.shape[1:], data)

    def bf16(self):
        """F32 as BF16; refuses values that would change."""
        pairs = [(self.data[i:i + 2], self.data[i + 2:i + 4]) for i in range(0, len(self.data), 4)]
        if self.dtype != "F32" or any(low != b"\0\0" for low, _ in pairs):
            raise SystemExit("not exact in BF16")
        return Array("BF16", self.shape, b"".join(high for _, high in pairs))


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = Array(entry["dtype"], entry["shape"], data[begin:end])
    return tensors


def write_safetensors(path, tensors):
    """Largest elements first, so that every tensor is aligned."""
    header, body = {}, b""
    for name in sorted(tensors, key=lambda name: (-SIZES[tensors[name].dtype], name)):
        array = tensors[name]
        header[name] = {"dtype": array.dtype, "shape": array.shape,
                        "data_offsets": [len(body), len(body) + len(array.data)]}
        body += array.data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    print(f"{path.relative_to(OUTPUT.parent.parent)}: {path.stat().st_size} bytes")


def attn(source):
    """Ranges within the first 65 cells; outputs of the first and the last query head of each kv head."""
    full = read_safetensors(source / "kernels" / "attn.safetensors")
    small = {}
    for dim, group in ((128, 8), (256, 12)):
        for name in ("k_i8", "v_i8"):
            small[f"d{dim}.{name}"] = full[f"d{dim}.{name}"].rows(range(65))
        case = f"d{dim}.g{group}"
        heads = [0, group - 1, group, 2 * group - 1]
        small[f"{case}.heads"] = Array("I32", [4], struct.pack("<4i", *heads))
        for name in ("q", "qbig"):
            small[f"{case}.{name}"] = full[f"{case}.{name}"].bf16()
        for cells in ("0_63", "0_64", "0_65", "big_0_65"):
            for name in ("o", "lse"):
                small[f"{case}.{cells}.{name}"] = full[f"{case}.{cells}.{name}"].rows(heads)
    write_safetensors(OUTPUT / "kernels" / "attn_small.safetensors", small)


def gdn(source):
    """The two cases with 64 x 32 states, whole."""
    full = read_safetensors(source / "kernels" / "gdn.safetensors")
    small = {name: array for name, array in full.items() if "_dk64_dv32_" in name}
    write_safetensors(OUTPUT / "kernels" / "gdn_small.safetensors", small)


# One checkpoint per family, chosen for what it covers: rope_freqs, tied head, experts without normalisation beside a
# dense layer, uneven delta-net heads and layer pattern, two n-gram modules with pruning.
CHECKPOINTS = ("llama_rope3", "qwen3_tied", "qwen3_moe_nonorm", "qwen3_next", "qwen3_5_uneven", "qwen3_5_moe",
               "qwen4_exp_ple2_sparse")


def kept(name):
    """Prompts of 65 tokens with hidden states and selected cells, and of 397 far beyond the selection budget."""
    prefix, _, rest = name.partition(".")
    if prefix == "T65":
        wide = rest.startswith("hidden.") and int(rest[7:]) not in (4, 8)
        return rest in ("input_ids", "logits", "greedy_ids", "logits_f64", "final_hidden") or (
            rest.startswith("hidden.") and not wide) or rest.endswith((".qsa_mask", ".qsa_gap", ".ple_out"))
    return prefix == "T397" and rest in ("input_ids", "logits", "greedy_ids")


def hf(source):
    for name in CHECKPOINTS:
        folder, target = source / "hf" / name, OUTPUT / "hf" / name
        for file in ("expected.safetensors", "expected_f64.safetensors"):
            if (folder / file).exists():
                full = read_safetensors(folder / file)
                small = {key: array for key, array in full.items() if kept(key)}
                if "T65.hidden.8" in small:
                    small.pop("T65.hidden.4")
                if small:
                    write_safetensors(target / file, small)
        for file in ("config.json", "model.safetensors"):
            target.mkdir(parents=True, exist_ok=True)
            (target / file).write_bytes((folder / file).read_bytes())


def peer(source):
    for file in ("qwen35.gguf", "qwen35.expected.safetensors"):
        target = OUTPUT / "gguf-peer" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((source / "gguf-peer" / file).read_bytes())


GROUPS = {"attn": attn, "gdn": gdn, "hf": hf, "peer": peer}


def main():
    if len(sys.argv) < 2 or any(name not in GROUPS for name in sys.argv[2:]):
        raise SystemExit(f"{__doc__}\ngroups: {', '.join(GROUPS)}")
    for name in sys.argv[2:] or GROUPS:
        GROUPS[name](pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
