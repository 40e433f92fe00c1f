// Everything a user of Tilewright needs. Inside the library include the single headers instead.
#pragma once

#if __cplusplus < 202002L
#error "Tilewright's headers are C++20: compile with -std=c++20 or later"
#else

#include <tilewright/formats/npy.h>
#include <tilewright/formats/npz.h>
#include <tilewright/formats/program.h>
#include <tilewright/formats/safetensors.h>
#include <tilewright/tensor/attention.h>
#include <tilewright/tensor/borrow.h>
#include <tilewright/tensor/checkpoint.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/composites.h>
#include <tilewright/tensor/dlpack.h>
#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/gradient.h>
#include <tilewright/tensor/out_of_memory.h>
#include <tilewright/tensor/print.h>
#include <tilewright/tensor/tensor.h>
#include <tilewright/tensor/tile_function.h>
#include <tilewright/tensor/tree.h>
#include <tilewright/tile/builder.h>
#include <tilewright/version.h>

#endif
