// wgmma of 224 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 28
#define TW_N "224"
#define TW_SUM(in) TW_PAIRS16(in, 0), TW_PAIRS8(in, 16), TW_PAIRS4(in, 24)
#define TW_SUM_NAMES                                                                                 \
  TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48 ", " TW_REGISTERS_64 \
                 ", " TW_REGISTERS_80 ", " TW_REGISTERS_96
#define TW_REST "%112", "%113", "%114", "%115", "%116", "%117", "%118"
#include "tw_cuda/wgmma_instruction.cuh"
