// The wgmma instructions of one number of columns, in every type. It is included by wgmma_n*.cuh, each of
// which says before: TW_COLUMNS, the number of columns by eight; TW_N, the number as the instruction spells
// it; TW_SUM(in), the registers of the sum, and TW_SUM_NAMES, their names; TW_REST, the names of the seven
// operands behind them.

#ifdef TW_COLUMNS  // read for a number of columns

// Four registers of the sum for a column c of pairs; `in` is "+f" or "+r", as floats or integers.
#define TW_PAIR(in, c) in(acc[0][c].v[0]), in(acc[0][c].v[1]), in(acc[1][c].v[0]), in(acc[1][c].v[1])
#define TW_PAIRS4(in, c) TW_PAIR(in, c), TW_PAIR(in, c + 1), TW_PAIR(in, c + 2), TW_PAIR(in, c + 3)
#define TW_PAIRS8(in, c) TW_PAIRS4(in, c), TW_PAIRS4(in, c + 4)
#define TW_PAIRS16(in, c) TW_PAIRS8(in, c), TW_PAIRS8(in, c + 8)
#define TW_REGISTERS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TW_REGISTERS_16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TW_REGISTERS_32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TW_REGISTERS_48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TW_REGISTERS_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define TW_REGISTERS_80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TW_REGISTERS_96 \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define TW_REGISTERS_112 \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// What follows the predicate: operands of 16 bits lie either way round, which the instruction must be told.
#define TW_EITHER_MAJOR(a, b) ", 1, 1, " a ", " b
#define TW_ALWAYS_BY_K(a, b) ", 1, 1"
#define TW_INTEGERS(a, b) ""
#define TW_B_EITHER_MAJOR(b) ", 1, 1, " b
#define TW_B_BY_K(b) ", 1, 1"

// The depth and the types of an instruction, the sum's first; what follows the predicate; how the sum's
// registers are held.
#define TW_MULTIPLY(types, options, in) TW_MULTIPLY_NAMED(types, options, in, TW_REST)
#define TW_MULTIPLY_NAMED(types, options, in, ...) TW_MULTIPLY_AS(types, options, in, __VA_ARGS__)
#define TW_MULTIPLY_AS(types, options, in, a_name, b_name, add_name, major_a, major_b, ...)       \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add_name                                         \
               ", 0; wgmma.mma_async.sync.aligned.m64n" TW_N types " {" TW_SUM_NAMES "}, " a_name \
               ", " b_name ", p" options(major_a, major_b) "; }"                                  \
               : TW_SUM(in)                                                                       \
               : "l"(a), "l"(b), "r"(int(add)), "n"(kA), "n"(kB))

// The same with 32 bytes of a's columns in the threads' registers.
#define TW_MULTIPLY_PARTS(types, options) TW_MULTIPLY_PARTS_NAMED(types, options, TW_REST)
#define TW_MULTIPLY_PARTS_NAMED(types, options, ...) TW_MULTIPLY_PARTS_AS(types, options, __VA_ARGS__)
#define TW_MULTIPLY_PARTS_AS(types, options, a0, a1, a2, a3, b_name, add_name, major_b)                \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add_name                                              \
               ", 0; wgmma.mma_async.sync.aligned.m64n" TW_N types " {" TW_SUM_NAMES "}, {" a0 ", " a1 \
               ", " a2 ", " a3 "}, " b_name ", p" options(major_b) "; }"                               \
               : TW_SUM("+f")                                                                          \
               : "r"(parts[0]), "r"(parts[1]), "r"(parts[2]), "r"(parts[3]), "l"(b), "r"(int(add)), "n"(kB))

namespace tw::detail {

template <>
struct Wgmma<TW_COLUMNS> {
  template <class A, class B, int kA, int kB, class Sum>
  static TW_DEVICE void multiply(Vec<Sum, 2> (*acc)[TW_COLUMNS], u64 a, u64 b, bool add) {
    if constexpr (same<A, bf16>) {
      static_assert(same<B, bf16>, "wgmma of one 16-bit type");
      TW_MULTIPLY("k16.f32.bf16.bf16", TW_EITHER_MAJOR, "+f");
    } else if constexpr (same<A, f16>) {
      static_assert(same<B, f16>, "wgmma of one 16-bit type");
      TW_MULTIPLY("k16.f32.f16.f16", TW_EITHER_MAJOR, "+f");
    } else if constexpr (same<A, i8>) {
      static_assert(same<B, i8> && same<Sum, i32>, "wgmma of 8-bit integers");
      TW_MULTIPLY("k32.s32.s8.s8", TW_INTEGERS, "+r");
    } else if constexpr (same<A, f8e4m3> && same<B, f8e4m3>) {
      TW_MULTIPLY("k32.f32.e4m3.e4m3", TW_ALWAYS_BY_K, "+f");
    } else if constexpr (same<A, f8e4m3> && same<B, f8e5m2>) {
      TW_MULTIPLY("k32.f32.e4m3.e5m2", TW_ALWAYS_BY_K, "+f");
    } else if constexpr (same<A, f8e5m2> && same<B, f8e4m3>) {
      TW_MULTIPLY("k32.f32.e5m2.e4m3", TW_ALWAYS_BY_K, "+f");
    } else if constexpr (same<A, f32>) {
      static_assert(same<B, f32>, "wgmma of f32 as tf32");
      TW_MULTIPLY("k8.f32.tf32.tf32", TW_ALWAYS_BY_K, "+f");
    } else {
      static_assert(same<A, f8e5m2> && same<B, f8e5m2>,
                    "wgmma of bf16, f16, f32 as tf32, i8, f8e4m3 or f8e5m2");
      TW_MULTIPLY("k32.f32.e5m2.e5m2", TW_ALWAYS_BY_K, "+f");
    }
  }

  template <class A, class B, int kB>
  static TW_DEVICE void multiply_parts(Vec<f32, 2> (*acc)[TW_COLUMNS], const u32 (&parts)[4], u64 b,
                                       bool add) {
    if constexpr (same<A, bf16>) {
      TW_MULTIPLY_PARTS("k16.f32.bf16.bf16", TW_B_EITHER_MAJOR);
    } else if constexpr (same<A, f16>) {
      TW_MULTIPLY_PARTS("k16.f32.f16.f16", TW_B_EITHER_MAJOR);
    } else if constexpr (same<A, f8e4m3> && same<B, f8e4m3>) {
      TW_MULTIPLY_PARTS("k32.f32.e4m3.e4m3", TW_B_BY_K);
    } else if constexpr (same<A, f8e4m3>) {
      TW_MULTIPLY_PARTS("k32.f32.e4m3.e5m2", TW_B_BY_K);
    } else if constexpr (same<B, f8e4m3>) {
      TW_MULTIPLY_PARTS("k32.f32.e5m2.e4m3", TW_B_BY_K);
    } else {
      static_assert(same<A, f8e5m2> && same<B, f8e5m2>, "wgmma with bf16, f16 or 8-bit floats in registers");
      TW_MULTIPLY_PARTS("k32.f32.e5m2.e5m2", TW_B_BY_K);
    }
  }
};

}  // namespace tw::detail

#undef TW_PAIR
#undef TW_PAIRS4
#undef TW_PAIRS8
#undef TW_PAIRS16
#undef TW_REGISTERS_0
#undef TW_REGISTERS_16
#undef TW_REGISTERS_32
#undef TW_REGISTERS_48
#undef TW_REGISTERS_64
#undef TW_REGISTERS_80
#undef TW_REGISTERS_96
#undef TW_REGISTERS_112
#undef TW_EITHER_MAJOR
#undef TW_ALWAYS_BY_K
#undef TW_INTEGERS
#undef TW_B_EITHER_MAJOR
#undef TW_B_BY_K
#undef TW_MULTIPLY
#undef TW_MULTIPLY_NAMED
#undef TW_MULTIPLY_AS
#undef TW_MULTIPLY_PARTS
#undef TW_MULTIPLY_PARTS_NAMED
#undef TW_MULTIPLY_PARTS_AS
#undef TW_COLUMNS
#undef TW_N
#undef TW_SUM
#undef TW_SUM_NAMES
#undef TW_REST
#endif
