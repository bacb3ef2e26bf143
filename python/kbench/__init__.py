"""Variants of compute kernels in Python, measured by kbench in the same blocks as those in Rust.

    from kbench import serve, variant

    @variant(of="saxpy", name="numpy", backend="serial")
    def saxpy(a, x, y):
        return a * x + y

    if __name__ == "__main__":
        serve()

`docs/other-languages.md` has the whole story.
"""

from .declare import Declined, variant
from .serve import serve

__all__ = ["Declined", "serve", "variant"]
__version__ = "0.1.0"
