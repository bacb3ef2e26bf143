#!/usr/bin/env python3
"""The CUDA variants of the library beside PyTorch, on one machine in one script.

Usage: [BUDGET=5s] [TYPES=f32,f16,...] [ROWS=16384] [WORKER=torch] campaign/gpu/library.py SUITE [FOLDER [KERNEL...]]

SUITE is the example of that name. PyTorch's operations are timed as kbench times cold calls: two events around one call, after
more than twice the second-level cache was overwritten and read, and as much was written as the call writes. Calls that take
half a millisecond together are a sample, of which the mean counts; of a process's samples it is the median, and of three
processes the geometric mean. What two events take around nothing is subtracted from both.

FOLDER (default target/gpu/library) gets kbench's results as CSV and the table as library.md. BUDGET is what kbench may take for
measuring a kernel, TYPES leaves element types out. With WORKER=torch, kbench measures PyTorch as well, by its foreign worker: rows
called `torch` show how well that agrees with this script; a launch then takes seconds to start, and BUDGET should be 60s. (Products of 8 bits have their scales there, and losses of halves are made
f32.)
"""

import csv
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

ROWS, DIM = int(os.environ.get("ROWS", "16384")), 4096
FLOATS = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
# A call takes one of two times, 1.3 µs apart, so means of several calls are another thing than single ones.
LAUNCHES, SAMPLES, SAMPLE_MS = 3, 30, 0.5


class Case:
    """One kernel at one size: flags that select it, and what PyTorch does with the same data."""

    def __init__(self, kernel, types, size, make, call, variants=()):
        """The call gives its result, which is what it writes."""
        self.kernel, self.size, self.make, self.call, self.variants = kernel, size, make, call, variants
        wanted = os.environ.get("TYPES", ",".join(types)).split(",")
        self.types = [name for name in types if name in wanted]


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
PAIRS = {"batch": 16, "seq": ROWS // 16, "dim": DIM}
LOGITS = {"rows": ROWS, "classes": DIM}
CUBE = {"m": 4096, "n": 4096, "k": 4096}
HEADS = {"batch": 4, "heads": 32, "kv_heads": 32, "seq": 4096, "head_dim": 128}
BOTH = ["f32", "f16"]

# The results of the products of 8 bits are f32, which is what their rows are called.
CASES = [
    Case("add", BOTH, ELEMENTS, two(matrix()), lambda x, y: x + y),
    Case("mul", BOTH, ELEMENTS, two(matrix()), lambda x, y: x * y),
    Case("div", BOTH, ELEMENTS, two(matrix()), lambda x, y: x / y),
    Case("relu", BOTH, ELEMENTS, one(matrix()), F.relu),
    Case("gelu", BOTH, ELEMENTS, one(matrix()), F.gelu),
    Case("gelu_tanh", BOTH, ELEMENTS, one(matrix()), lambda x: F.gelu(x, approximate="tanh")),
    Case("silu", BOTH, ELEMENTS, one(matrix()), F.silu),
    Case("dropout", BOTH, ELEMENTS, one(matrix()), lambda x: F.dropout(x, 0.1)),
    Case("rms_norm", BOTH, TABLE, with_weight(1), lambda x, w: F.rms_norm(x, (DIM,), w, 1e-5)),
    Case("layer_norm", BOTH, TABLE, with_weight(2), lambda x, w, b: F.layer_norm(x, (DIM,), w, b)),
    Case("softmax", BOTH, TABLE, one(matrix()), lambda x: F.softmax(x, dim=-1)),
    Case("mse", BOTH, PAIRS, two(matrix()), F.mse_loss),
    Case("cross_entropy", BOTH, LOGITS, with_targets, F.cross_entropy),
    Case("matmul", ["f32"], CUBE, square(4096), torch.mm, ["matmul_cuda_tiled", "matmul_cublas"]),
    Case("matmul_half", ["f16", "bf16"], CUBE, square(4096), lambda a, b: torch.mm(a, b.t())),
    Case("matmul_int8", ["f32"], CUBE, integers(4096), lambda a, b: torch._int_mm(a, b.t())),
    Case(
        "matmul_fp8_tensor",
        ["f32"],
        CUBE,
        bytes_of_matrices(4096),
        lambda a, b, s, t: torch._scaled_mm(a, b, scale_a=s, scale_b=t, out_dtype=torch.bfloat16),
    ),
    Case(
        "attention_prefill",
        ["bf16"],
        HEADS,
        heads(4, 32, 4096, 128),
        F.scaled_dot_product_attention,
        ["attention_prefill_cuda_hopper"],
    ),
    Case(
        "attention_causal",
        ["bf16"],
        HEADS,
        heads(4, 32, 4096, 128),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ["attention_causal_cuda_hopper"],
    ),
]


def timed(call, flush, written):
    """Milliseconds between two events around one call that writes so many bytes, after the cache was overwritten and read,
    and so many bytes were written again."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.zero_()
    torch.any(flush)
    flush[:written].zero_()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def typical_ms(call, flush, written=0):
    """The median over samples of the mean of their calls, and at least one call each."""
    first = max(timed(call, flush, written) for _ in range(3))
    calls = max(1, round(SAMPLE_MS / max(first, 1e-3)))
    return statistics.median(statistics.fmean(timed(call, flush, written) for _ in range(calls)) for _ in range(SAMPLES))


def pytorch(cases):
    """Microseconds by kernel and element type, of those that PyTorch can do."""
    torch.backends.cuda.matmul.allow_tf32 = False
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(max(4 * cache, 256 << 20), dtype=torch.bool, device="cuda")
    overhead = typical_ms(lambda: None, flush)
    times = {}
    for case in cases:
        for name in case.types:
            try:
                data = case.make(FLOATS.get(name))
                written = min(case.call(*data).nbytes, cache)
                time = 1e3 * (typical_ms(lambda: case.call(*data), flush, written) - overhead)
                times.setdefault(case.kernel, {})[name] = time
            except (RuntimeError, NotImplementedError, AttributeError) as error:
                print(f"PyTorch: {case.kernel} {name}: {error}", file=sys.stderr)
            data = None
            torch.cuda.empty_cache()
    return times


def in_processes_of_its_own(names):
    """The same, by processes that are gone when kbench measures: the device is to be kbench's alone."""
    command = [sys.executable, __file__, "--pytorch", *names]
    printed = [subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout for _ in range(LAUNCHES)]
    found = {}
    for launch in map(json.loads, printed):
        for kernel, times in launch.items():
            for name, time in times.items():
                # One that failed in a process has been reported, and the others count.
                found.setdefault(kernel, {}).setdefault(name, []).append(time)
    return {
        kernel: {name: statistics.geometric_mean(launches) for name, launches in times.items()}
        for kernel, times in found.items()
    }


def ours(suite, case, folder):
    """Rows of kbench's CSV for the CUDA variants of a case."""
    path = folder / f"{case.kernel}.csv"
    axes = [part for axis, value in case.size.items() for part in ("--axis", f"{axis}={value}")]
    command = [suite, "--kernel", case.kernel, "--backend", "cuda", "--cold", "--no-search", "--launches", str(LAUNCHES)]
    command += ["--type", ",".join(case.types), "--budget", os.environ.get("BUDGET", "5s")]
    worker = os.environ.get("WORKER")
    command += ["--worker", f"{worker}=python3 kernels/python/{worker}_variants.py"] if worker else []
    variants = [*case.variants, worker] if worker else case.variants
    command += ["--variant", ",".join(variants)] if case.variants else []
    command += ["--export", f"csv={path}", *axes]
    outcome = subprocess.run(command, capture_output=True, text=True)
    (folder / f"{case.kernel}.log").write_text(outcome.stdout + outcome.stderr)
    if not path.exists():
        print(f"kbench: {case.kernel}: {outcome.stderr.strip()[-300:]}", file=sys.stderr)
        return [], None
    copies = re.search(r"copies ([\d.]+) TB/s", outcome.stdout)
    with path.open() as file:
        return list(csv.DictReader(file)), float(copies[1]) if copies else None


HEADING = """| kernel | type | variant | µs, kbench | µs, PyTorch | PyTorch / kbench | share of copying | share of ceiling |
|---|---|---|---|---|---|---|---|"""


def line(case, row, theirs, copies):
    """A line of the table; `copies` is what kbench measured copying to be, in TB/s."""
    cells = [case.kernel, row["type"], row["variant"]]
    if row["status"] != "ok":
        return "| " + " | ".join([*cells, row["status"], "", "", "", ""]) + " |"
    time, reference = float(row["time_ns"]) / 1e3, theirs.get(row["type"])
    cells.append(f"{time:.1f}")
    cells += [f"{reference:.1f}", f"{reference / time:.2f}"] if reference else ["", ""]
    is_known = copies and row["bytes_per_s"]
    cells.append(f"{float(row['bytes_per_s']) / 1e10 / copies:.0f} %" if is_known else "")
    cells.append(f"{100 * float(row['ceiling_share']):.0f} %" if row["ceiling_share"] else "")
    return "| " + " | ".join(cells) + " |"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    suite, wanted = sys.argv[1], sys.argv[3:]
    if suite == "--pytorch":
        wanted = sys.argv[2:]
    cases = [case for case in CASES if case.types and (not wanted or case.kernel in wanted)]
    if suite == "--pytorch":
        print(json.dumps(pytorch(cases)))
        return
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "target/gpu/library")
    folder.mkdir(parents=True, exist_ok=True)
    theirs = in_processes_of_its_own(wanted)
    with (folder / "library.md").open("w") as file:
        # Line by line, so that nothing is lost when it is stopped.
        def say(text):
            for to in (file, sys.stdout):
                print(text, file=to, flush=True)

        say(HEADING)
        for case in cases:
            rows, copies = ours(suite, case, folder)
            for row in rows:
                say(line(case, row, theirs.get(case.kernel, {}), copies))


main()
