"""Time as a device tells it, by the driver alone: whatever library the calls come from.

The rules are those of kbench's own stopwatch: the stream is held by a gate while start event, calls and end event are queued,
and then opened, so that the host's part of launching is over before the first event is taken; what two events take by themselves
is measured and subtracted; a cold call finds nothing of its data in the second-level cache. The device code of gate and cache
reader comes from kbench.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from typing import Any, Callable, Optional

#: The gate opens by itself after so many nanoseconds: the call that is being timed waits for the device.
GATE_PATIENCE = 500_000_000
#: Busy time before anything is measured, so that clocks have risen.
WARM_UP = 0.15
#: Pairs of events from which the overhead is taken, and kernels in the longer of both spans.
OVERHEAD_PAIRS, OVERHEAD_KERNELS = 41, 9

L2_BYTES, MULTIPROCESSORS = 38, 16  # attributes of a device
NOT_SUPPORTED = 801
DEVICE_MAP = 2


class Driver:
    """The driver's interface, for the primary context of one device: that which all libraries share."""

    _opened: dict[int, Driver] = {}

    @classmethod
    def get(cls, ordinal: int) -> Driver:
        if ordinal not in cls._opened:
            cls._opened[ordinal] = cls(ordinal)
        return cls._opened[ordinal]

    def __init__(self, ordinal: int):
        self._library = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), ordinal)
        self.context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self._device)
        self.bind()

    def _call(self, name: str, *arguments: Any, allowed: tuple[int, ...] = ()) -> None:
        status = getattr(self._library, name)(*arguments)
        if status and status not in allowed:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'error').decode()} ({status})")

    def bind(self) -> None:
        self._call("cuCtxSetCurrent", self.context)

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def new_stream(self) -> int:
        stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value or 0

    def new_event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event: ctypes.c_void_p, stream: int) -> None:
        self._call("cuEventRecord", event, ctypes.c_void_p(stream))

    def wait_for(self, event: ctypes.c_void_p, stream: int) -> None:
        """Makes a stream wait for an event. Numbers 1 and 2 stand for default streams."""
        self._call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)

    def elapsed(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Nanoseconds between two events."""
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
        return milliseconds.value * 1e6

    def pinned_words(self, count: int) -> tuple[int, Any]:
        """Memory of the host that the device sees, and its address."""
        start = ctypes.c_void_p()
        self._call("cuMemHostAlloc", ctypes.byref(start), ctypes.c_size_t(4 * count), DEVICE_MAP)
        return start.value or 0, (ctypes.c_uint32 * count).from_address(start.value or 0)

    def allocate(self, size: int) -> int:
        start = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(start), ctypes.c_size_t(size))
        return start.value

    def fill(self, start: int, byte: int, size: int, stream: int) -> None:
        if size:
            pointer, count = ctypes.c_uint64(start), ctypes.c_size_t(size)
            self._call("cuMemsetD8Async", pointer, ctypes.c_ubyte(byte), count, ctypes.c_void_p(stream))

    def release_cache_lines(self) -> None:
        self._call("cuCtxResetPersistingL2Cache", allowed=(NOT_SUPPORTED,))

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def wait_for_stream(self, stream: int) -> None:
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def load(self, code: str) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code.encode()))
        return module

    def function(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function: ctypes.c_void_p, stream: int, grid: int, block: int, *arguments: Any) -> None:
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(
            *(ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p) for argument in arguments)
        )
        size = (grid, 1, 1, block, 1, 1, 0)
        self._call("cuLaunchKernel", function, *size, ctypes.c_void_p(stream), pointers, None)


class Span:
    """What two events have between them, in nanoseconds."""

    def __init__(self, device: float, host: float, expired: bool):
        self.device, self.host, self.expired = device, host, expired


class Stopwatch:
    """Times work on one stream of one device."""

    def __init__(self, ordinal: int, instruments: str, stream: int):
        self.driver = driver = Driver.get(ordinal)
        driver.bind()
        self.stream = stream
        module = driver.load(instruments)
        self._gate, self._nothing, self._read, self._busy = (
            driver.function(module, f"kbench_{name}") for name in ("gate", "nothing", "read", "busy")
        )
        self._start, self._end, self._order = driver.new_event(), driver.new_event(), driver.new_event()
        self._flag_address, self._flag = driver.pinned_words(16)
        self._l2 = driver.attribute(L2_BYTES)
        self._multiprocessors = driver.attribute(MULTIPROCESSORS)
        self._flush_buffer: Optional[int] = None
        self._number = 0
        # What loads code must not do so behind a gate.
        self._flag[0] = 1
        self._launch_gate()
        self.launch_nothing()
        driver.synchronize()
        self._warm_up()
        self.overhead = self._overhead(lambda kernels: lambda: [self.launch_nothing() for _ in range(kernels)])
        self.graph_overhead: Optional[float] = None

    def launch_nothing(self) -> None:
        self.driver.launch(self._nothing, self.stream, 1, 1)

    def measure_graph_overhead(self, capture: Callable[[Callable[[], Any]], Callable[[], None]]) -> float:
        """What two events and the launch of a graph between them take; measured when it is first asked for."""
        if self.graph_overhead is None:
            self.graph_overhead = self._overhead(
                lambda kernels: capture(lambda: [self.launch_nothing() for _ in range(kernels)])
            )
        return self.graph_overhead

    def follow(self, stream: int) -> None:
        """Makes another stream wait for what is on this one."""
        self.driver.record(self._order, self.stream)
        self.driver.wait_for(self._order, stream)

    def span(self, work: Callable[[], Any], gated: bool = True, alone: bool = True) -> Span:
        """What two events around some work have between them. The host's clock runs until the whole device is idle, or, where a
        library does things of its own afterwards, until the stream is."""
        driver = self.driver
        self._flag[0], self._flag[1] = 0, 0
        if gated:
            self._launch_gate()
        try:
            begun = time.perf_counter_ns()
            driver.record(self._start, self.stream)
            work()
            driver.record(self._end, self.stream)
        finally:
            opened = time.perf_counter_ns()
            self._flag[0] = 1
        if alone:
            driver.synchronize()
        else:
            driver.wait_for_stream(self.stream)
        host = time.perf_counter_ns() - (opened if gated else begun)
        driver.synchronize()
        return Span(driver.elapsed(self._start, self._end), host, gated and self._flag[1] != 0)

    def flush(self, written: int) -> None:
        """Leaves nothing in the second-level cache that a call may want; of what it is going to write, as much is there to be
        written back as it would leave behind itself."""
        driver = self.driver
        size = 2 * self._l2
        if self._flush_buffer is None:
            self._flush_buffer = driver.allocate(size)
        driver.release_cache_lines()
        self._number = (self._number + 1) % 128
        driver.fill(self._flush_buffer, self._number, size, self.stream)
        buffer = ctypes.c_uint64(self._flush_buffer)
        blocks, words = 8 * self._multiprocessors, ctypes.c_size_t(size // 16)
        driver.launch(self._read, self.stream, blocks, 512, buffer, buffer, words)
        driver.fill(self._flush_buffer, self._number, min(written, size // 2), self.stream)
        driver.synchronize()

    def _launch_gate(self) -> None:
        flag, patience = ctypes.c_uint64(self._flag_address), ctypes.c_uint64(GATE_PATIENCE)
        self.driver.launch(self._gate, self.stream, 1, 1, flag, patience)

    def _warm_up(self) -> None:
        sink = ctypes.c_uint64(self.driver.allocate(4))
        begun = time.perf_counter()
        while time.perf_counter() - begun < WARM_UP:
            grid, slice_ = 2 * self._multiprocessors, ctypes.c_uint64(5_000_000)
            self.driver.launch(self._busy, self.stream, grid, 256, slice_, sink)
            self.driver.synchronize()

    def _overhead(self, work_of: Callable[[int], Callable[[], Any]]) -> float:
        """The part of a span that does not grow with the kernels in it."""

        def median(kernels: int) -> float:
            work = work_of(kernels)
            work()
            self.driver.synchronize()
            return statistics.median(self.span(work).device for _ in range(OVERHEAD_PAIRS))

        one, many = median(1), median(OVERHEAD_KERNELS)
        return max(0.0, one - (many - one) / (OVERHEAD_KERNELS - 1))
