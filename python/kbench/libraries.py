"""Arrays of several libraries behind one face: how operands become arrays, and arrays bytes."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Callable, Optional

import numpy as np

from .data import BITS, DTYPES
from .declare import Declined


class Library:
    """What the rest needs to know of a library. `device` is the number of a GPU, or None for the processor."""

    name = "numpy"
    #: Whether calls run on streams that nobody else sees.
    has_own_streams = False

    def __init__(self, device: Optional[int]):
        self.device = device
        if device is not None and type(self) is Library:
            raise Declined("NumPy's arrays are not on a GPU: give arrays='torch' or arrays='jax'")

    def array(self, bits: np.ndarray, element: str, is_written: bool = False) -> Any:
        """An array with the content of an operand; one that is written has memory of its own."""
        if element in BITS:
            raise Declined(f"NumPy has no {element}")
        if is_written:
            return bits.copy()
        view = bits.view()
        view.flags.writeable = False
        return view

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)

    def copy(self, array: Any) -> Any:
        return array.copy()

    def assign(self, array: Any, bits: np.ndarray, element: str) -> Any:
        """Gives an array the content of an operand; gives the array, or another one where arrays cannot be changed."""
        array.reshape(-1)[...] = bits
        return array

    def bits(self, array: Any, element: str) -> np.ndarray:
        """The content of an array, which has to be of an element type."""
        found = np.ascontiguousarray(array).reshape(-1)
        if found.dtype.itemsize != np.dtype(DTYPES[element]).itemsize or found.dtype.kind not in kinds(element):
            raise TypeError(f"gives {found.dtype} where {element} is expected")
        return found.view(DTYPES[element])

    def element(self, array: Any) -> str:
        """The element type of what a kernel returns."""
        dtype = np.asarray(array).dtype
        for element, known in DTYPES.items():
            if element not in BITS and dtype == known:
                return element
        raise TypeError(f"returns {dtype}, which kbench does not know")

    def is_same_memory(self, array: Any, other: Any) -> bool:
        """Whether two arrays share memory."""
        return isinstance(array, np.ndarray) and isinstance(other, np.ndarray) and np.shares_memory(array, other)

    def is_spread(self, array: Any) -> bool:
        """Whether elements of an array share memory with each other."""
        strides, shape = getattr(array, "strides", ()), getattr(array, "shape", ())
        return any(stride == 0 and length > 1 for stride, length in zip(strides, shape))

    def wait(self, result: Any) -> None:
        """Waits until a result is there."""

    def threads(self, count: Optional[int], backend: str) -> None:
        """Uses so many threads of the processor from now on."""
        if count is not None:
            raise Declined("NumPy cannot be told how many threads to use: leave out --threads")

    def trim(self) -> None:
        """Gives memory back that nobody uses."""

    def is_broken(self) -> bool:
        """Whether nothing can run on the device any more."""
        return False

    def is_out_of_memory(self, error: BaseException) -> bool:
        return False

    # On a device.

    @property
    def stream(self) -> int:
        """The stream that calls are timed on."""
        raise NotImplementedError

    def on_stream(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def follow(self, arrays: list[Any], record: Callable[[], Any]) -> list[Any]:
        """The same arrays, for calls that come after what is on the stream."""
        return arrays

    def lead(self, result: Any) -> None:
        """Makes the stream come after a result."""

    def capture(self, work: Callable[[], Any]) -> Callable[[], None]:
        """Records work in a graph; gives what launches it."""
        raise Declined(f"calls of {self.name} cannot be recorded in a CUDA graph from outside")


def kinds(element: str) -> str:
    """NumPy's letters for what may stand for an element type: signed and unsigned have the same bits."""
    if element in BITS:
        return "uV"
    return "f" if element.startswith("f") else "b" if element == "bool" else "iu"


class Torch(Library):
    name = "torch"

    def __init__(self, device: Optional[int]):
        super().__init__(device)
        import torch

        self.torch = torch
        if device is not None and not torch.cuda.is_available():
            raise Declined("PyTorch finds no GPU")
        self.place = torch.device("cpu" if device is None else f"cuda:{device}")
        if device is not None:
            torch.cuda.set_device(device)
        self._stream = None if device is None else torch.cuda.Stream(self.place)
        self._usual_threads = torch.get_num_threads()
        views = {"bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
        self.views: dict[str, Any] = views

    def array(self, bits, element, is_written=False):
        with self.on_stream():
            # Of its own memory: PyTorch knows no arrays that may not be written.
            array = self.torch.from_numpy(bits.copy() if self.device is None else bits)
            view = self.views.get(element)
            array = array if view is None else array.view(view)
            return array if self.device is None else array.to(self.place)

    def copy(self, array):
        return array.clone()

    def assign(self, array, bits, element):
        source = self.torch.from_numpy(bits)
        view = self.views.get(element)
        array.view(-1).copy_(source if view is None else source.view(view))
        return array

    def bits(self, array, element):
        torch = self.torch
        if not isinstance(array, torch.Tensor):
            return super().bits(array, element)
        view = self.views.get(element)
        floats = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16}
        wanted = view or floats.get(element) or (torch.bool if element == "bool" else None)
        width = np.dtype(DTYPES[element]).itemsize
        fits = array.dtype == wanted if wanted else not array.is_floating_point() and array.element_size() == width
        if not fits:
            raise TypeError(f"gives {str(array.dtype).removeprefix('torch.')} where {element} is expected")
        flat = array.detach().contiguous().reshape(-1)
        flat = flat.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width])
        return flat.cpu().numpy().view(DTYPES[element])

    def element(self, array):
        if not isinstance(array, self.torch.Tensor):
            return super().element(array)
        named = {view: element for element, view in self.views.items()}
        return named.get(array.dtype) or super().element(np.empty(0, str(array.dtype).removeprefix("torch.")))

    def is_same_memory(self, array, other):
        both = isinstance(array, self.torch.Tensor) and isinstance(other, self.torch.Tensor)
        return both and array.numel() > 0 and self._begin(array) == self._begin(other)

    def _begin(self, array):
        """Where the memory of a tensor begins; of a sparse one, that of its values."""
        if array.layout != self.torch.strided:
            array = array._values() if array.layout == self.torch.sparse_coo else array.values()
        return array.untyped_storage().data_ptr()

    def is_spread(self, array):
        if not isinstance(array, self.torch.Tensor):
            return super().is_spread(array)
        return any(stride == 0 and length > 1 for stride, length in zip(array.stride(), array.shape))

    def wait(self, result):
        if self.device is not None:
            self.torch.cuda.synchronize(self.place)

    def threads(self, count, backend):
        wanted = 1 if backend == "serial" else count or self._usual_threads
        if self.torch.get_num_threads() != wanted:
            self.torch.set_num_threads(wanted)

    def trim(self):
        if self.device is not None:
            self.torch.cuda.empty_cache()

    def is_broken(self):
        if self.device is None:
            return False
        try:
            self.torch.cuda.synchronize(self.place)
        except RuntimeError:
            return True
        return False

    def is_out_of_memory(self, error):
        return isinstance(error, self.torch.cuda.OutOfMemoryError)

    @property
    def stream(self):
        return self._stream.cuda_stream

    def on_stream(self):
        return nullcontext() if self._stream is None else self.torch.cuda.stream(self._stream)

    def capture(self, work):
        graph = self.torch.cuda.CUDAGraph()
        try:
            with self.torch.cuda.graph(graph, stream=self._stream):
                work()
        except RuntimeError as error:
            self.wait(None)
            raise Declined(f"cannot be recorded in a CUDA graph: {first_line(error)}") from error
        return graph.replay


class Jax(Library):
    name = "jax"
    has_own_streams = True

    def __init__(self, device: Optional[int]):
        super().__init__(device)
        import jax

        self.jax = jax
        try:
            self.place = jax.devices("cpu" if device is None else "gpu")[device or 0]
        except RuntimeError as error:
            raise Declined(f"JAX finds no {'processor' if device is None else 'GPU'}: {first_line(error)}") from error
        names = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
        self.views = {element: np.dtype(getattr(jax.numpy, name)) for element, name in names.items()}
        self._driver_stream: Optional[int] = None

    def array(self, bits, element, is_written=False):
        bits = bits.view(self.views.get(element, bits.dtype))
        # On a processor the array may be the memory that it is made of.
        array = self.jax.device_put(bits.copy() if self.device is None else bits, self.place)
        if array.dtype != bits.dtype:
            raise Declined(f"JAX has no {element} unless jax_enable_x64 is on")
        return array

    def copy(self, array):
        return array.copy()

    def assign(self, array, bits, element):
        return self.array(bits, element).reshape(array.shape)

    def bits(self, array, element):
        found = np.ascontiguousarray(np.asarray(array)).reshape(-1)
        view = self.views.get(element)
        if view is None:
            return super().bits(found, element)
        if found.dtype != view:
            raise TypeError(f"gives {found.dtype} where {element} is expected")
        return found.view(DTYPES[element])

    def element(self, array):
        named = {view: element for element, view in self.views.items()}
        return named.get(np.dtype(array.dtype)) or super().element(np.empty(0, array.dtype))

    def is_same_memory(self, array, other):
        both = isinstance(array, self.jax.Array) and isinstance(other, self.jax.Array)
        return both and array.size > 0 and array.unsafe_buffer_pointer() == other.unsafe_buffer_pointer()

    def is_spread(self, array):
        return False  # results of XLA are whole

    def wait(self, result):
        self.jax.block_until_ready(result)

    def is_broken(self):
        if self.device is None:
            return False
        from .cuda import Driver

        try:
            Driver.get(self.device).synchronize()
        except RuntimeError:
            return True
        return False

    def is_out_of_memory(self, error):
        return "RESOURCE_EXHAUSTED" in str(error)

    def threads(self, count, backend):
        if count is not None:
            raise Declined("JAX cannot be told how many threads to use: leave out --threads")

    @property
    def stream(self):
        if self._driver_stream is None:
            from .cuda import Driver

            self._driver_stream = Driver.get(self.device).new_stream()
        return self._driver_stream

    def follow(self, arrays, record):
        return [Following(array, record).taken() if isinstance(array, self.jax.Array) else array for array in arrays]

    def lead(self, result):
        for array in self.jax.tree_util.tree_leaves(result):
            if isinstance(array, self.jax.Array):
                array.__dlpack__(stream=self.stream)


class Following:
    """An array that JAX takes over again: whoever takes one says on which stream, which is made to wait for ours."""

    def __init__(self, array: Any, record: Callable[[int], Any]):
        self._array, self._record = array, record

    def taken(self) -> Any:
        from jax import dlpack

        return dlpack.from_dlpack(self)

    def __dlpack__(self, *, stream: Optional[int] = None, **others: Any) -> Any:
        if stream is not None:
            self._record(stream)
        return self._array.__dlpack__(stream=stream, **others)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


_OPENED: dict[tuple[str, Optional[int]], Library] = {}


def library(name: str, device: Optional[int]) -> Library:
    """The one of a name, for a GPU or for the processor."""
    kind = {"numpy": Library, "torch": Torch, "jax": Jax}[name]
    if (name, device) not in _OPENED:
        _OPENED[name, device] = kind(device)
    return _OPENED[name, device]


def versions() -> str:
    """Python, and what of the libraries is imported."""
    found = [f"Python {sys.version.split()[0]}"]
    for name in ("numpy", "torch", "triton", "jax"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found.append(f"{name} {version}")
    return ", ".join(found)
