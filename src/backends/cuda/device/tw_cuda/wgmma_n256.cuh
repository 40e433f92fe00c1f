// wgmma of 256 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 32
#define TW_N "256"
#define TW_SUM(in) TW_PAIRS16(in, 0), TW_PAIRS16(in, 16)
#define TW_SUM_NAMES                                                                                 \
  TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48 ", " TW_REGISTERS_64 \
                 ", " TW_REGISTERS_80 ", " TW_REGISTERS_96 ", " TW_REGISTERS_112
#define TW_REST "%128", "%129", "%130", "%131", "%132", "%133", "%134"
#include "tw_cuda/wgmma_instruction.cuh"
