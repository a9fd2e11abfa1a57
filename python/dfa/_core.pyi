# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The native module: the compiler's and the runtime's C interfaces.

Addresses and streams are plain integers; stream 0 is the device's default
stream. Calls release the interpreter lock. Errors: what the compiler refuses
is :class:`dfa.CompileError`; wrong arguments are ValueError or TypeError; calls
in the wrong order RuntimeError; memory MemoryError; devices
:class:`dfa.DeviceError`; peers :class:`dfa.CollectiveError`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

version: str
llvm_version: str
abi_version: int
program_version: int

class Store(Protocol):
    """A key-value store that all ranks reach, such as ``torch``'s.

    ``get`` waits for the key as long as the store's own timeout if
    ``check`` is missing; with ``check`` it is called for keys that exist.
    """

    def set(self, key: str, value: bytes) -> Any: ...
    def get(self, key: str) -> bytes: ...
    def add(self, key: str, amount: int) -> int: ...

# === Compiler ================================================================

class Diagnostic:
    """What the compiler said, and where (line and column from 1; 0: none)."""

    severity: str  # "error", "warning", "remark" or "note"
    message: str
    file: str
    line: int
    column: int
    def __init__(
        self,
        severity: str,
        message: str,
        file: str = "",
        line: int = 0,
        column: int = 0,
    ) -> None: ...

def passes(
    text: str, pipeline: str, source: str = "<string>"
) -> tuple[str, list[Diagnostic]]:
    """Runs ``pipeline`` (MLIR's textual form); the module and the remarks."""

def find_ptxas(ptxas: str = "") -> tuple[str, str]:
    """Path and version of the CUDA assembler that would be used."""

class Step:
    """A parsed and verified step of levels A and B."""

    def __init__(self, text: str, source: str = "<string>") -> None: ...
    @property
    def facts(self) -> str:
        """Layout, bindings and initial control values, as JSON.

        ``{"layout", "bucket_bytes", "mesh": [{"name", "size"}], "classes":
        [{"name", "rule", "param", "grad", "master", "arrays": [{"name",
        "format"}]}], "groups": [{"index", "hyper": {name: value}}], "params":
        [{"name", "shape", "strides", "format", "class", "group"}],
        "arguments" and "results": [{"role", "class", "part", "format"}],
        "control": {field: value}}``; classes by position.
        """

    def key(
        self,
        target: str = "cpu",
        *,
        chip: str = "",
        format: str = "",
        ptxas: str = "",
        vector_width: int = 0,
        block: int = 0,
        unroll: int = 0,
        max_registers: int = 0,
    ) -> str:
        """A text that is equal if, and only if, the compiled code would be.

        The module without parameters, and everything else that decides the
        code: options, host CPU or chip, versions of compiler and assembler.
        """

    def compile(
        self,
        target: str = "cpu",
        *,
        chip: str = "",
        format: str = "",
        ptxas: str = "",
        vector_width: int = 0,
        block: int = 0,
        unroll: int = 0,
        max_registers: int = 0,
    ) -> Artifact:
        """Machine code and program. Zero and empty mean the default."""

    def report(
        self,
        *,
        bandwidth: float = 0.0,
        link: float = 0.0,
        replicate: int = 0,
        shard: int = 0,
    ) -> str:
        """What the step costs, as JSON (``dfa-opt --dfa-report``)."""

class Artifact:
    """A compiled step. Optimizers made from it keep its code alive."""

    @property
    def target(self) -> str:
        """``"cpu"`` or ``"cuda"``."""

    @property
    def program_text(self) -> str: ...
    @property
    def code(self) -> bytes:
        """The CUDA image, or the host's object file."""

    @property
    def kernels(self) -> dict[str, int]:
        """Addresses of the host's functions by name; empty for CUDA."""

    @staticmethod
    def load(target: str, program_text: str, code: bytes) -> Artifact:
        """The artifact of which these are text and code."""

def compile(
    text: str,
    target: str = "cpu",
    *,
    source: str = "<string>",
    chip: str = "",
    format: str = "",
    ptxas: str = "",
    vector_width: int = 0,
    block: int = 0,
    unroll: int = 0,
    max_registers: int = 0,
) -> Artifact:
    """``Step(text, source).compile(target, ...)``."""

# === Devices =================================================================

def cuda_device_count() -> int: ...
def set_log_level(level: int) -> None: ...

class Device:
    @staticmethod
    def cpu(threads: int = 0) -> Device: ...
    @staticmethod
    def cuda(ordinal: int = 0) -> Device: ...
    @property
    def kind(self) -> str:
        """``"cpu"`` or ``"cuda"``."""

    @property
    def ordinal(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def chip(self) -> str:
        """Such as ``"sm_90"``; empty for the CPU."""

    def set_allocator(
        self,
        allocate: Callable[[int, int], int],
        free: Callable[[int, int], Any],
    ) -> None:
        """Takes memory from ``allocate(bytes, stream) -> address``.

        ``free(address, bytes)`` may come from another thread, and late. Set it
        before anything is allocated. An ``allocate`` that raises or returns 0
        makes the call that needed memory fail with MemoryError.
        """

    def counters(self) -> dict[str, int]:
        """``allocations, module_loads, graphs_instantiated, launches``."""

    def allocate(self, bytes: int) -> int: ...
    def free(self, address: int, bytes: int) -> None: ...
    def copy(
        self, target: int, source: int, bytes: int, stream: int = 0
    ) -> None: ...
    def zero(self, target: int, bytes: int, stream: int = 0) -> None: ...
    def create_stream(self) -> int: ...
    def destroy_stream(self, stream: int) -> None: ...
    def synchronize(self, stream: int = 0) -> None: ...

# === Layouts and programs ====================================================

class Placement:
    elements: int
    storage: int  # the parameter that holds the elements
    bucket: int  # -1: frozen
    start: int  # first element, counted from the bucket's start
    segment: int  # row in its class's tables; -1: frozen

class Bucket:
    class_index: int
    unit: int
    used: int
    shard_elements: int
    full_elements: int
    shard_base: int
    full_base: int

class Layout:
    def __init__(
        self,
        *,
        replicate: int = 1,
        shard: int = 1,
        bucket_bytes: int = 0,
        fill_order: str | Sequence[int] = "reverse",
    ) -> None:
        """``fill_order``: "reverse", "forward", or parameters in order."""

    def add_class(self, name: str, sync_format: str, block: int = 1) -> int: ...
    def add_array(self, name: str, format: str) -> None:
        """Adds an array to the last class."""

    def add_param(
        self,
        name: str,
        shape: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        class_index: int = 0,
        group: int = 0,
        frozen: bool = False,
        shared_with: int = -1,
        unit: int = -1,
        epoch: int = 0,
    ) -> int: ...
    def plan(self) -> None: ...
    def placement(self, param: int) -> Placement: ...
    def placements(self) -> list[Placement]: ...
    def bucket(self, index: int) -> Bucket: ...
    def buckets(self) -> list[Bucket]: ...
    def bucket_at(self, position: int) -> int: ...
    @property
    def text(self) -> str: ...

class Program:
    """A program; indices are -1 for names that it lacks."""

    def __init__(self, text: str, source: str = "program") -> None: ...
    @property
    def text(self) -> str: ...
    @property
    def axes(self) -> list[str]: ...
    def entry(self, name: str) -> int: ...
    def class_index(self, name: str) -> int: ...
    def array(self, class_index: int, name: str) -> int: ...
    def hyper(self, name: str) -> int: ...

# === Groups ==================================================================

class Failure:
    rank: int  # the culprit, or -1
    bucket: int
    collective: str
    reason: str

class Group:
    def __init__(
        self,
        device: Device,
        transport: str,
        axes: Sequence[tuple[str, int]],
        *,
        ranks: Sequence[int] | None = None,
        rank: int = -1,
        world_size: int = 0,
        local_rank: int = 0,
        local_world_size: int = 0,
        run_id: str | None = None,
        instance: int = 0,
        timeout_s: float = 0.0,
        store: Store | None = None,
    ) -> None:
        """Connects all ranks of a mesh; each of them calls it.

        ``transport``: "gloo" or "nccl"; ``axes``: slowest first; ``rank`` -1:
        it and the next three from the environment; ``store`` None: DFA_STORE.
        """

    def axis_rank(self, name: str) -> int: ...
    def axis_size(self, name: str) -> int: ...
    def agree(self, text: str) -> None: ...
    def report(self, reason: str) -> None: ...
    def describe(self) -> str: ...
    def failure(self) -> Failure | None: ...
    def close(self) -> None:
        """Releases the transport; RuntimeError while recordings use it."""

# === Optimizers ==============================================================

class Optimizer:
    def __init__(
        self,
        device: Device,
        program: Program,
        layout: Layout,
        artifact: Artifact,
        *,
        rank: int = 0,
        tile_elements: int = 0,
        group: Group | None = None,
        replay: bool = False,
    ) -> None:
        """``group``: needed if the program has axes; ``rank``: in the mesh."""

    def close(self) -> None:
        """Waits for its work and releases it; later calls are RuntimeErrors."""

    # Arrays.
    def bind_segment(
        self, class_index: int, array: int, segment: int, address: int
    ) -> None: ...
    def bind_segments(
        self, class_index: int, array: int, addresses: Any
    ) -> None:
        """One address a segment, from 0 on; 0 leaves a segment as it is.

        ``addresses``: a sequence of ints, or a contiguous 1-D buffer of 64-bit
        integers (``array.array("Q")``, NumPy), which is read without copies.
        """

    def bind_bucket(
        self, class_index: int, array: int, bucket: int, address: int
    ) -> None: ...
    def segment_address(
        self, class_index: int, array: int, segment: int
    ) -> int:
        """Where a segment lies; 0 if this rank has none of it."""

    def segment_addresses(
        self, class_index: int, array: int, count: int
    ) -> list[int]: ...

    # Hyper-parameters, presence.
    def set_hyper(self, group: int, column: int, value: float) -> None: ...
    def set_hypers(self, group: int, values: Sequence[float]) -> None:
        """A whole row, in the order of the program's ``hyper`` record."""

    def get_hyper(self, group: int, column: int) -> float: ...
    def set_present(
        self, class_index: int, segment: int, present: bool
    ) -> None: ...
    def set_presents(self, class_index: int, present: bytes) -> None:
        """One byte a segment, from 0 on: 0 absent, others present."""

    def push(self, stream: int = 0) -> None: ...

    # Running.
    def prepare(self, stream: int = 0) -> None: ...
    def run(self, entry: int, stream: int = 0) -> None: ...
    def run_bucket(
        self, entry: int, class_index: int, bucket: int, stream: int = 0
    ) -> None: ...
    def join(self, stream: int = 0) -> None:
        """Orders the stream behind buckets that ``run_bucket`` started."""

    # Control and step counts.
    def set_control(
        self, field: str, value: float, stream: int = 0
    ) -> None: ...
    def mirror_control(self, field: str) -> float:
        """What the last finished read-back brought; never waits."""

    def fetch_control(self, field: str, stream: int = 0) -> float:
        """The device's value; waits."""

    def control_address(self, field: str) -> int:
        """Where a control field lies on the device, after ``prepare``."""

    def hyper_address(self, group: int, column: int) -> int:
        """Where a hyper-parameter lies on the device, after ``prepare``.

        An upload of values that changed on the host overwrites the table.
        """

    def step_address(self, class_index: int, segment: int) -> int:
        """Where a parameter's step count (int64) lies, after ``prepare``."""

    def fetch_step(
        self, class_index: int, segment: int, stream: int = 0
    ) -> int: ...
    def set_step(
        self, class_index: int, segment: int, step: int, stream: int = 0
    ) -> None: ...

# === Tensors =================================================================

class TensorInfo:
    """Where a tensor lies; valid as long as the tensor."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    format: str  # "f32", "bf16", "i16", ...
    kind: str  # "cpu" or "cuda"
    ordinal: int

def describe(tensor: Any) -> TensorInfo:
    """Looks at a tensor through DLPack or the buffer protocol."""

def view(
    address: int,
    shape: Sequence[int],
    strides: Sequence[int],
    format: str,
    kind: str,
    ordinal: int,
    owner: Any,
) -> Any:
    """Memory as an object with ``__dlpack__``; keeps ``owner`` alive."""

def widen(
    source: int, source_format: str, target: int, target_format: str, count: int
) -> None:
    """Converts host memory: f16, bf16, f32, f64 into f32 or f64."""

# === torch's tensors =========================================================

def can_read_fast() -> bool:
    """Whether this torch can be read as the next two classes do."""

class TensorWatch:
    """Questions about many tensors of torch, in one native call each."""

    def __init__(self, tensors: list[Any]) -> None: ...
    def changed(self) -> list[int]:
        """Those written to, or moved, since they were marked last."""

    def with_gradient(self) -> list[int]: ...
    def mark(self, index: int) -> None: ...
    def written(self) -> None:
        """Counts a write to each for autograd, and marks them all."""

class Stepper:
    """A step of an optimizer that updates torch's tensors in place."""

    def __init__(
        self,
        optimizer: Optimizer,
        entry: int,
        params: list[Any],
        idle: list[Any],
        row_classes: Sequence[int],
        segments: Sequence[int],
        classes: Sequence[int],
        grad_arrays: Sequence[int],
    ) -> None:
        """``idle``: parameters that must not have a gradient.

        ``row_classes`` and ``segments`` say where a parameter's row is,
        ``row_classes`` by position in ``classes`` (the program's indices).
        """

    def watch_groups(self, groups: list[Any], keys: list[str]) -> None: ...
    def accept_group(self, index: int) -> None:
        """A group's values are known as they are now."""

    def put(self, index: int, address: int) -> None:
        """Gives a parameter a gradient for the next run only."""

    def run(self, stream: int) -> tuple[list[int], list[int], list[int]] | None:
        """Runs the step; or groups that changed, parameters that moved, and
        gradients that lie in another way, if there are any: then nothing ran.
        """
