#!/usr/bin/env python3
"""The CUDA variants of the library beside PyTorch, on one machine in one script.

Usage: campaign/gpu/library.py SUITE [FOLDER [KERNEL...]]

SUITE is the example of that name. PyTorch's operations are timed as kbench times cold calls: two events around one call,
after twice the second-level cache was overwritten; the median of many. What two events take around nothing is subtracted
from both. FOLDER (default target/gpu/library) gets kbench's results as CSV and the table as library.md.
"""

import csv
import statistics
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

ROWS, DIM = 16384, 4096
FLOATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
# Of calls that take long, fewer are enough.
MOST_CALLS, LONGEST_MS = 200, 1000.0


class Case:
    """One kernel at one size: flags that select it, and what PyTorch does with the same data."""

    def __init__(self, kernel, types, size, make, call):
        self.kernel, self.types, self.size, self.make, self.call = kernel, types, size, make, call


def matrix(rows=ROWS, columns=DIM):
    return lambda dtype: torch.randn(rows, columns, device="cuda", dtype=dtype)


def two(make):
    return lambda dtype: (make(dtype), make(dtype))


def one(make):
    return lambda dtype: (make(dtype),)


def with_weight(number):
    def make(dtype):
        weights = [torch.randn(DIM, device="cuda", dtype=dtype) for _ in range(number)]
        return (matrix()(dtype), *weights)

    return make


def with_targets(dtype):
    return matrix()(dtype), torch.randint(0, DIM, (ROWS,), device="cuda")


def heads(batch, count, seq, head_dim):
    def make(dtype):
        shape = (batch, count, seq, head_dim)
        return tuple(torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3))

    return make


def square(side):
    return two(matrix(side, side))


def bytes_of_matrices(side):
    """Operands of 8 bits with their scales, the second one transposed as the matrix units want it."""

    def make(_):
        a = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn)
        b = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn)
        return a, b.t(), torch.ones((), device="cuda"), torch.ones((), device="cuda")

    return make


def integers(side):
    def make(_):
        return tuple(torch.randint(-127, 128, (side, side), device="cuda", dtype=torch.int8) for _ in range(2))

    return make


ELEMENTS = {"n": ROWS * DIM}
TABLE = {"rows": ROWS, "dim": DIM}
CUBE = {"m": 4096, "n": 4096, "k": 4096}
HEADS = {"batch": 4, "heads": 32, "kv_heads": 32, "seq": 4096, "head_dim": 128}

CASES = [
    Case("add", FLOATS, ELEMENTS, two(matrix()), lambda x, y: x + y),
    Case("mul", FLOATS, ELEMENTS, two(matrix()), lambda x, y: x * y),
    Case("div", FLOATS, ELEMENTS, two(matrix()), lambda x, y: x / y),
    Case("relu", FLOATS, ELEMENTS, one(matrix()), F.relu),
    Case("gelu", FLOATS, ELEMENTS, one(matrix()), F.gelu),
    Case("gelu_tanh", FLOATS, ELEMENTS, one(matrix()), lambda x: F.gelu(x, approximate="tanh")),
    Case("silu", FLOATS, ELEMENTS, one(matrix()), F.silu),
    Case("dropout", FLOATS, ELEMENTS, one(matrix()), lambda x: F.dropout(x, 0.1)),
    Case("rms_norm", FLOATS, TABLE, with_weight(1), lambda x, w: F.rms_norm(x, (DIM,), w, 1e-5)),
    Case("layer_norm", FLOATS, TABLE, with_weight(2), lambda x, w, b: F.layer_norm(x, (DIM,), w, b)),
    Case("softmax", FLOATS, TABLE, one(matrix()), lambda x: F.softmax(x, dim=-1)),
    Case("mse", FLOATS, TABLE, two(matrix()), F.mse_loss),
    Case("cross_entropy", FLOATS, TABLE, with_targets, F.cross_entropy),
    Case("matmul", ["f32"], CUBE, square(4096), torch.mm),
    Case("matmul_half", ["f16", "bf16"], CUBE, square(4096), lambda a, b: torch.mm(a, b.t())),
    Case("matmul_int8", ["i8"], CUBE, integers(4096), lambda a, b: torch._int_mm(a, b.t())),
    Case(
        "matmul_fp8_tensor",
        ["e4m3"],
        CUBE,
        bytes_of_matrices(4096),
        lambda a, b, s, t: torch._scaled_mm(a, b, scale_a=s, scale_b=t, out_dtype=torch.bfloat16),
    ),
    Case("attention_prefill", ["f16", "bf16"], HEADS, heads(4, 32, 4096, 128), F.scaled_dot_product_attention),
    Case(
        "attention_causal",
        ["f16", "bf16"],
        HEADS,
        heads(4, 32, 4096, 128),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    ),
]


def timed(call, flush):
    """Milliseconds between two events around one call, after the cache was overwritten."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.zero_()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def median_ms(call, flush):
    first = max(timed(call, flush) for _ in range(3))
    calls = int(min(MOST_CALLS, max(10, LONGEST_MS / max(first, 1e-3))))
    return statistics.median(timed(call, flush) for _ in range(calls))


def pytorch(cases):
    """Milliseconds of every case and element type that PyTorch can do."""
    torch.backends.cuda.matmul.allow_tf32 = False
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(max(4 * cache, 256 << 20), dtype=torch.uint8, device="cuda")
    overhead = median_ms(lambda: None, flush)
    times = {}
    for case in cases:
        for name in case.types:
            try:
                data = case.make(FLOATS.get(name))
                times[case.kernel, name] = median_ms(lambda: case.call(*data), flush) - overhead
            except (RuntimeError, NotImplementedError, AttributeError) as error:
                print(f"PyTorch: {case.kernel} {name}: {error}", file=sys.stderr)
            data = None
            torch.cuda.empty_cache()
    return times


def ours(suite, case, folder):
    """Rows of kbench's CSV for the CUDA variants of a case."""
    path = folder / f"{case.kernel}.csv"
    axes = [part for axis, value in case.size.items() for part in ("--axis", f"{axis}={value}")]
    command = [suite, "--kernel", case.kernel, "--backend", "cuda", "--cold", "--no-search", "--launches", "3"]
    command += ["--budget", "12s", "--export", f"csv={path}", *axes]
    outcome = subprocess.run(command, capture_output=True, text=True)
    (folder / f"{case.kernel}.log").write_text(outcome.stdout + outcome.stderr)
    if not path.exists():
        print(f"kbench: {case.kernel}: {outcome.stderr.strip()[-300:]}", file=sys.stderr)
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def table(suite, folder, cases, theirs):
    lines = ["| kernel | type | variant | µs, kbench | µs, PyTorch | PyTorch / kbench | share of ceiling |", "|---|---|---|---|---|---|---|"]
    for case in cases:
        for row in ours(suite, case, folder):
            if row["status"] != "ok":
                lines.append(f"| {case.kernel} | {row['type']} | {row['variant']} | {row['status']} | | | |")
                continue
            time = float(row["time_ns"]) / 1e3
            reference = theirs.get((case.kernel, row["type"]))
            share = f"{100 * float(row['ceiling_share']):.1f} %" if row["ceiling_share"] else ""
            ratio = f"{1e3 * reference / time:.2f} | " if reference else " | "
            reference = f"{1e3 * reference:.1f}" if reference else ""
            lines.append(f"| {case.kernel} | {row['type']} | {row['variant']} | {time:.1f} | {reference} | {ratio}{share} |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    suite = sys.argv[1]
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "target/gpu/library")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[3:]
    cases = [case for case in CASES if not wanted or case.kernel in wanted]
    text = table(suite, folder, cases, pytorch(cases))
    (folder / "library.md").write_text(text)
    print(text)


main()
