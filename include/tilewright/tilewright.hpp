// Everything a user of Tilewright needs. Inside the library include the single headers instead.
#pragma once

#include <tilewright/tensor/attention.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/composites.h>
#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/out_of_memory.h>
#include <tilewright/tensor/tensor.h>
#include <tilewright/tensor/tile_function.h>
#include <tilewright/tile/builder.h>
#include <tilewright/version.h>
