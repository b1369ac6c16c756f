"""The layers of Lamina: which module may include which, and where third-party headers may appear.

src/README.md shows the same table to people. structure.py compares the tree with it.
"""

# module -> (layer, modules it may include besides itself). A module may use what lies below it, and in the same layer only what
# is named here.
LAYERS = {
    "base": (0, ""),
    "shard/layout": (1, "base"),  # unit_spec, flat_layout, packed_tensors: pure arithmetic, so that tools and checkpoints link no communication
    "config": (1, "base"),
    "mpi": (1, "base"),
    "device": (1, "base"),
    "hdf5": (1, "base"),
    "tokenizer": (1, "base"),
    "data": (1, "base config hdf5 tokenizer"),
    "tensor": (2, "base device"),
    "topology": (2, "base config mpi"),
    "schedule": (2, "base shard/layout"),  # the order of a step as data; streams and a simulated clock that execute it
    "ops": (3, "base device tensor"),
    "comm": (3, "base device tensor mpi topology"),
    "safetensors": (3, "base tensor"),
    "backends": (4, "base device tensor ops"),  # the seam: what every backend declares
    "backends/cpu": (4, "base device tensor ops backends"),
    "backends/cuda": (4, "base device tensor ops backends"),
    "backends/registry": (4, "base device tensor ops backends backends/cpu backends/cuda"),  # name -> backend
    "comm/mpi": (4, "base device tensor mpi topology comm"),
    "comm/nccl": (4, "base device tensor mpi topology comm"),
    "comm/registry": (4, "base device tensor mpi topology comm comm/mpi comm/nccl"),  # name -> fabric
    "shard": (4, "base config device tensor topology ops comm shard/layout"),
    "model": (5, "base config device tensor ops safetensors shard shard/layout"),
    "optim": (5, "base config device tensor ops comm shard shard/layout"),
    "checkpoint": (5, "base config hdf5 tensor safetensors shard/layout"),
    "train": (6, "base config mpi device hdf5 tokenizer data tensor topology schedule ops comm safetensors shard shard/layout model optim"
                 " checkpoint"),
    "app": (7, "*"),
    # The tools for a login node: no MPI, no CUDA, no communication.
    "tools": (7, "base config hdf5 tokenizer data tensor safetensors shard/layout model checkpoint"),
    "tools/bench": (7, "*"),
    "tests": (8, "*"),
}

# Files of a module folder that are a module of their own: path prefix -> module.
FILE_MODULES = {
    "include/lamina/shard/unit_spec": "shard/layout",
    "include/lamina/shard/flat_layout": "shard/layout",
    "include/lamina/shard/packed_tensors": "shard/layout",
    "src/shard/unit_spec": "shard/layout",
    "src/shard/flat_layout": "shard/layout",
    "src/shard/packed_tensors": "shard/layout",
    "include/lamina/comm/mpi_fabric": "comm/mpi",
    "src/comm/fabric_registry": "comm/registry",
    "src/backends/registry": "backends/registry",
}
# Folders inside a module folder that are modules of their own.
SUBMODULES = {"backends/cpu", "backends/cuda", "comm/mpi", "comm/nccl"}

# (pattern of the included name, modules or folders that may include it)
CONFINED_HEADERS = [
    (r"mpi(-ext)?\.h", {"mpi", "comm/mpi", "tools/bench", "tests/support", "tests/mpi"}),
    (r"nccl.*\.h", {"comm/nccl"}),
    (r"(cuda|cublas|curand|nvToolsExt|nvtx3/).*", {"backends/cuda", "comm/nccl"}),
    (r"(hdf5|hdf5_hl|H5\w+)\.h", {"hdf5"}),
    (r"boost/.*", {"config"}),
    (r"(cblas|openblas.*|lapacke?|f77blas)\.h", {"backends/cpu"}),
    (r"(pcre2|utf8proc)\.h", {"tokenizer"}),
    (r"xxh(ash|3)\.h", {"base"}),
    (r"spdlog/.*", {"base"}),
]
# What the tools for a login node must not reach, not even through other headers.
NOT_ON_LOGIN_NODES = r"(mpi(-ext)?|nccl.*|cuda.*|cublas.*)\.h"

# Compile-time questions about backends belong where implementations are chosen.
GUARD_MACROS = r"\b(LAMINA_(WITH_)?(CUDA|NCCL)\w*|__CUDACC__)\b"
GUARD_MODULES = {"backends/registry", "comm/registry", "app"}

# The trainer must not know which backend or fabric it runs on.
BACKEND_NAMES = r'\b(cpu|cuda|nccl)::|\b(Cpu|Cuda|Nccl|Mpi|Loopback)(Device|Ops|Fabric|Backend)\b|"(cpu|cuda|nccl)"'
BACKEND_BLIND_MODULES = {"train", "model", "optim", "shard"}

FILE_LINES_LIMIT, FILE_LINES_WARN = 400, 300
FUNCTION_LINES_LIMIT, FUNCTION_LINES_WARN = 80, 40


def allowed(module):
    """The set of modules that `module` may include, itself included."""
    _, names = LAYERS[module]
    return set(LAYERS) if names == "*" else {module, *names.split()}


def table_defects():
    """Defects of the table itself: unknown names, and anything that may look upward."""
    found = []
    for module, (layer, names) in LAYERS.items():
        for name in ([] if names == "*" else names.split()):
            if name not in LAYERS:
                found.append(f"{module} may use {name}, which is no module")
            elif LAYERS[name][0] > layer:
                found.append(f"{module} (layer {layer}) may use {name} (layer {LAYERS[name][0]}), which lies above it")
    return found
