// wgmma of 160 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 20
#define TW_N "160"
#define TW_SUM(in) TW_PAIRS16(in, 0), TW_PAIRS4(in, 16)
#define TW_SUM_NAMES \
  TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48 ", " TW_REGISTERS_64
#define TW_REST "%80", "%81", "%82", "%83", "%84", "%85", "%86"
#include "tw_cuda/wgmma_instruction.cuh"
