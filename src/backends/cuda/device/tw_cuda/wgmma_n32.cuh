// wgmma of 32 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 4
#define TW_N "32"
#define TW_SUM(in) TW_PAIRS4(in, 0)
#define TW_SUM_NAMES TW_REGISTERS_0
#define TW_REST "%16", "%17", "%18", "%19", "%20", "%21", "%22"
#include "tw_cuda/wgmma_instruction.cuh"
