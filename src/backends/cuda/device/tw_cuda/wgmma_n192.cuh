// wgmma of 192 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 24
#define TW_N "192"
#define TW_SUM(in) TW_PAIRS16(in, 0), TW_PAIRS8(in, 16)
#define TW_SUM_NAMES                                                                                 \
  TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48 ", " TW_REGISTERS_64 \
                 ", " TW_REGISTERS_80
#define TW_REST "%96", "%97", "%98", "%99", "%100", "%101", "%102"
#include "tw_cuda/wgmma_instruction.cuh"
