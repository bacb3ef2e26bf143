"""Variants of compute kernels in Python, measured by kbench in the same blocks as those in Rust.

    from kbench import serve, variant

    @variant(of="saxpy", name="numpy", backend="serial")
    def saxpy(a, x, y):
        return a * x + y

    if __name__ == "__main__":
        serve()

`docs/other-languages.md` has the whole story.
"""

import os

# The device is shared with others; JAX would take most of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from .declare import Declined, variant  # noqa: E402
from .serve import serve  # noqa: E402

__all__ = ["Declined", "serve", "variant"]
__version__ = "0.1.0"
