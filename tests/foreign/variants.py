"""Kernels of tests/downstream in NumPy: some right, some wrong in the ways that a worker must survive."""

import os
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np

from kbench import Declined, serve, variant


@variant(of="scale", name="numpy", backend="serial")
def scale(x, s):
    return np.float32(s) * x


@variant(of="scale", name="numpy_out", backend="serial")
def scale_out(x, s, y):
    np.multiply(x, np.float32(s), out=y)


@variant(of="dot", name="numpy", backend="serial")
def dot(x, y):
    return np.dot(x, y)


@variant(of="row_sums", name="numpy", backend="serial", shapes={"x": "rows dim"})
def row_sums(x):
    return x.sum(axis=1, dtype=x.dtype)


@variant(of="sort", name="numpy", backend="serial")
def sort(x):
    x.sort()


@variant(of="sort", name="numpy_new", backend="serial")
def sorted_(x):
    return np.sort(x)


@variant(of="scale", name="numpy_large", backend="serial")
def scale_large(x, s, n):
    if n < 1000:
        raise Declined("n is below 1000")
    return np.float32(s) * x


if "faults" in os.environ.get("FOREIGN", ""):

    @variant(of="scale", name="wrong", backend="serial")
    def wrong(x, s):
        return np.float32(s) * x + np.float32(0.01)

    @variant(of="scale", name="double", backend="serial")
    def double(x, s):
        return s * x.astype(np.float64)

    @variant(of="scale", name="raises", backend="serial")
    def raises(x):
        raise ValueError("no luck\nat all")

    @variant(of="scale", name="dies", backend="serial")
    def dies(x):
        os.abort()

    @variant(of="scale", name="hangs", backend="serial")
    def hangs(x):
        while True:
            pass

    @variant(of="scale", name="speaks", backend="serial")
    def speaks(x):
        print("last words of a variant", file=sys.stderr)
        os._exit(3)

    @variant(of="scale", name="writes_input", backend="serial")
    def writes_input(x, s):
        x *= np.float32(s)
        return x

    @variant(of="scale", name="view", backend="serial")
    def view(x):
        return x[::-1]

    @variant(of="dot", name="half", backend="serial")
    def half(x, y):
        return np.float16(np.dot(x, y))

    calls = 0

    @variant(of="scale", name="tires", backend="serial")
    def tires(x, s):
        global calls
        calls += 1
        if calls > 200:
            os._exit(7)
        return np.float32(s) * x


if "unknown" in os.environ.get("FOREIGN", ""):

    @variant(of="scael", name="numpy", backend="serial")
    def scael(x):
        return x


if "missing" in os.environ.get("FOREIGN", ""):
    import a_library_that_is_not_there  # noqa: F401


if "slow" in os.environ.get("FOREIGN", ""):
    import time

    time.sleep(600)


if "IMPORTS" in os.environ:
    with open(os.environ["IMPORTS"], "a") as file:
        file.write(f"{os.getpid()}\n")


if "threads" in os.environ.get("FOREIGN", ""):
    threading.Thread(target=threading.Event().wait, daemon=True).start()


if __name__ == "__main__":
    serve(fork="anew" not in os.environ.get("FOREIGN", ""))
