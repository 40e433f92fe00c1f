// wgmma of 128 columns.
#pragma once

#include "tw_cuda/wgmma.cuh"

#define TW_COLUMNS 16
#define TW_N "128"
#define TW_SUM(in) TW_PAIRS16(in, 0)
#define TW_SUM_NAMES TW_REGISTERS_0 ", " TW_REGISTERS_16 ", " TW_REGISTERS_32 ", " TW_REGISTERS_48
#define TW_REST "%64", "%65", "%66", "%67", "%68", "%69", "%70"
#include "tw_cuda/wgmma_instruction.cuh"
