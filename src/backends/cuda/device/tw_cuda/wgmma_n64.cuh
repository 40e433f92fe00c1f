// wgmma of 64 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 8
#define TW_N "64"
#define TW_SUM(in) TW_PAIRS8(in, 0)
#define TW_SUM_NAMES TW_REGISTERS_0 ", " TW_REGISTERS_16
#define TW_REST "%32", "%33", "%34", "%35", "%36", "%37", "%38"
#include "tw_cuda/wgmma_instruction.cuh"
