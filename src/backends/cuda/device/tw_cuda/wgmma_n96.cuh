// wgmma of 96 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 12
#define TW_N "96"
#define TW_SUM(in) TW_PAIRS8(in, 0), TW_PAIRS4(in, 8)
#define TW_SUM_NAMES TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32
#define TW_REST "%48", "%49", "%50", "%51", "%52", "%53", "%54"
#include "tw_cuda/wgmma_instruction.cuh"
