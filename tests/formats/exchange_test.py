#!/usr/bin/python3
"""Tensors exchanged with NumPy and PyTorch by DLPack in one process, and files with NumPy and safetensors. What this Python lacks is
left out, and said.

Usage: tests/formats/exchange_test.py LIBRARY          (built from exchange.cpp)"""
import ctypes
import gc
import importlib
import pathlib
import sys
import tempfile

library = ctypes.CDLL(sys.argv[1])
library.last_error.restype = ctypes.c_char_p
library.export_counted.restype = ctypes.c_void_p
library.import_doubled_sum.restype = ctypes.c_double
library.import_doubled_sum.argtypes = [ctypes.c_void_p, ctypes.c_int]
COUNTED = [[0, 1, 2], [3, 4, 0]]
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}  # of capsules

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def check(condition, what):
    if not condition:
        sys.exit(f"exchange: {what}: {library.last_error().decode()}")


def has(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"exchange: left out: this Python has no {name}")
        return None


class Exported:
    """A tensor of ours as an object with __dlpack__."""

    def __init__(self, dtype, versioned):
        self.dtype, self.versioned = dtype, versioned

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        managed = library.export_counted(self.dtype.encode(), int(self.versioned))
        check(managed, f"export of {self.dtype}")
        return python.PyCapsule_New(managed, NAMES[self.versioned], None)


USED = {True: ctypes.c_char_p(b"used_dltensor_versioned"), False: ctypes.c_char_p(b"used_dltensor")}  # a capsule keeps no copy


def doubled_sum(array, versioned):
    capsule = array.__dlpack__(max_version=(1, 1)) if versioned else array.__dlpack__()
    versioned = bool(python.PyCapsule_IsValid(capsule, NAMES[True]))
    managed = python.PyCapsule_GetPointer(capsule, NAMES[versioned])
    python.PyCapsule_SetName(capsule, USED[versioned])
    result = library.import_doubled_sum(managed, int(versioned))
    check(result != -1, "import")
    return result


def exchange_numpy(np):
    versioned = int(np.__version__.split(".")[0]) > 2 or np.__version__.startswith(("2.1", "2.2", "2.3", "2.4"))
    names = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8"}
    for ours, theirs in names.items():
        for form in {False, versioned}:
            array = np.from_dlpack(Exported(ours, form))
            check(array.dtype == theirs and array.tolist() == COUNTED, f"NumPy reads {ours}: {array}")
            check(doubled_sum(np.array(COUNTED, theirs), form) == 20, f"NumPy's {theirs}")
    turned = np.arange(12.0).reshape(3, 4)[::-1, ::2].T
    count = sys.getrefcount(turned)
    check(doubled_sum(turned, versioned) == 2 * turned.sum(), "strides of NumPy")
    gc.collect()
    check(sys.getrefcount(turned) == count, "NumPy's array was let go")
    if versioned:
        turned.flags.writeable = False
        check(doubled_sum(turned, True) == 2 * turned.sum(), "a read-only array of NumPy")
    print(f"exchange: NumPy {np.__version__}, {'both forms' if versioned else 'the unversioned form'} of DLPack")


def exchange_torch(torch):
    for ours, theirs in {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
                         "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8}.items():
        tensor = torch.utils.dlpack.from_dlpack(Exported(ours, False).__dlpack__())
        check(tensor.dtype == theirs and tensor.tolist() == COUNTED, f"PyTorch reads {ours}: {tensor}")
        check(doubled_sum(torch.tensor(COUNTED, dtype=theirs), False) == 20, f"PyTorch's {theirs}")
    check(doubled_sum(torch.arange(12.0).reshape(3, 4).t()[1:, :2], False) == 2 * (1 + 5 + 2 + 6 + 3 + 7), "strides of PyTorch")
    check(doubled_sum(torch.ones(1).expand(5), False) == 10, "PyTorch's expanded tensor")
    print(f"exchange: PyTorch {torch.__version__}, the unversioned form of DLPack")


def exchange_files(np):
    safetensors = has("safetensors.numpy")
    arrays = {"a": np.arange(12, dtype=np.float32).reshape(3, 4), "b": np.array([[True, False]]), "c": np.zeros((0, 3), np.int64)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "x.npy", np.asfortranarray(arrays["a"]).astype(">f4"))
        np.savez_compressed(folder / "x.npz", **arrays)
        if safetensors:
            safetensors.save_file(arrays, folder / "x.safetensors", metadata={"k": "v"})
        else:
            (folder / "x.safetensors").write_bytes(b"\2" + bytes(7) + b"{}")
        check(library.rewrite(name.encode()) == 0, "files")
        check((np.load(folder / "y.npy") == arrays["a"]).all(), "NumPy reads our .npy")
        read = [np.load(folder / "y.npz"), np.load(folder / "y.deflated.npz")]
        if safetensors:
            read.append(safetensors.load_file(folder / "y.safetensors"))
        for each in read:
            check(set(each) == set(arrays), f"names: {set(each)}")
            for key, array in arrays.items():
                check(each[key].dtype == array.dtype and each[key].shape == array.shape and (each[key] == array).all(), f"{key} comes back")
    print("exchange: files with NumPy" + (" and safetensors" if safetensors else ""))


numpy, torch = has("numpy"), has("torch")
if numpy:
    exchange_numpy(numpy)
    exchange_files(numpy)
if torch:
    exchange_torch(torch)
