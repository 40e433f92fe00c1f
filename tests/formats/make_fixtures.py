#!/usr/bin/env python3
"""Writes fixtures/ with NumPy, ml_dtypes and safetensors, as they write files: python3 -m pip install numpy ml_dtypes safetensors.
Those in the tree are of NumPy 2.4.6 (zip64.npz: 1.24.2), ml_dtypes 0.6.0 and safetensors 0.8.0."""
import pathlib
import zipfile

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures"
HALVES = [0.5, -1.5, 3.140625]

np.save(FOLDER / "fortran_f8.npy", np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)))
np.save(FOLDER / "bfloat16.npy", np.array(HALVES, ml_dtypes.bfloat16))
np.save(FOLDER / "float8.npy", np.array(HALVES, ml_dtypes.float8_e4m3fn))
arrays = {"counted": np.arange(6, dtype=np.float32).reshape(2, 3), "flags": np.array([True, False, True])}
np.savez(FOLDER / "stored.npz", **arrays)
np.savez_compressed(FOLDER / "deflated.npz", **arrays)
# As archives beyond 4 GB are: NumPy writes by zipfile.
zipfile.ZIP64_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT = 0
np.savez(FOLDER / "zip64.npz", **arrays)
save_file({**arrays, "half": np.array(HALVES, np.float16), "words": np.arange(3, dtype=np.uint16)},
          FOLDER / "package.safetensors", metadata={"format": "np"})
