// What CUDA C++ and the PTX of our device headers mean on the host. Compiled with each emulated kernel.
typedef __SIZE_TYPE__ size_t;
extern "C" {
struct EmuIds {
  unsigned thread, block, blocks, threads, rank, cluster, row;
};
EmuIds emu_ids();
void emu_sync_block();
void emu_cluster_arrive();
void emu_cluster_wait();
const unsigned* emu_exchange(unsigned mine);
void* emu_shared(unsigned long bytes);
void* emu_stage();
unsigned emu_shared_address(const void* p);
void* emu_remote(unsigned address);
void emu_copy_async(unsigned address, const void* from, int bytes, int size);
void emu_commit_group();
void emu_wait_group(int pending);
void emu_barrier_init(unsigned address, unsigned arrivals);
void emu_barrier_arrive(unsigned address, int rank, unsigned bytes);
int emu_barrier_passed(unsigned address, unsigned parity);
void emu_tma(unsigned blocks, unsigned to, const void* map, unsigned barrier, const int* at, int rank);
void emu_tma_store(unsigned from, const void* map, const int* at, int rank);
void emu_tma_commit();
void emu_tma_wait_read(int pending);
void emu_write_unseen(unsigned address);
void emu_fence_async();
void emu_bar_sync(int id, int threads);
void emu_bar_arrive(int id, int threads);
unsigned char* emu_shared_at(unsigned address);
void emu_wait_previous();
void emu_unknown_ptx();
void emu_out_of_bounds(unsigned long index, unsigned long extent);
void* memcpy(void*, const void*, size_t);
float expf(float), exp2f(float), expm1f(float), logf(float), log2f(float), log1pf(float), tanhf(float),
    erff(float);
float powf(float, float), atan2f(float, float), fmodf(float, float), fmaf(float, float, float), fabsf(float);
float floorf(float), ceilf(float), rintf(float), truncf(float), sqrtf(float), sinf(float), cosf(float),
    tanf(float);
double exp(double), exp2(double), expm1(double), log(double), log2(double), log1p(double), tanh(double),
    erf(double);
double pow(double, double), atan2(double, double), fmod(double, double), fma(double, double, double),
    fabs(double);
double floor(double), ceil(double), rint(double), trunc(double), sqrt(double), sin(double), cos(double),
    tan(double);
double fmax(double, double), fmin(double, double);
float nextafterf(float, float), copysignf(float, float), fmaxf(float, float), fminf(float, float);
}
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __constant__ const
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__

struct EmuIndex {
  unsigned x, y, z;
};
#define threadIdx (EmuIndex{emu_ids().thread, 0, 0})
#define blockIdx (EmuIndex{emu_ids().block, emu_ids().row, 0})
#define gridDim (EmuIndex{emu_ids().blocks, 1, 1})
#define blockDim (EmuIndex{emu_ids().threads, 1, 1})
inline void __syncthreads() { emu_sync_block(); }
inline void __syncwarp(unsigned = 0xffffffffu) { emu_exchange(0); }

inline unsigned emu_lane() { return emu_ids().thread % 32; }
inline unsigned __shfl_xor_sync(unsigned, unsigned v, int mask) {
  return emu_exchange(v)[(emu_lane() ^ unsigned(mask)) & 31];
}
inline unsigned __shfl_sync(unsigned, unsigned v, int source, int width = 32) {
  const unsigned lane = emu_lane();
  return emu_exchange(v)[lane / unsigned(width) * unsigned(width) + (unsigned(source) & unsigned(width - 1))];
}
inline unsigned __shfl_up_sync(unsigned, unsigned v, int delta, int width = 32) {
  const unsigned lane = emu_lane();
  const unsigned* all = emu_exchange(v);
  return lane % unsigned(width) < unsigned(delta) ? v : all[lane - unsigned(delta)];
}
inline unsigned __shfl_down_sync(unsigned, unsigned v, int delta) {
  const unsigned lane = emu_lane();
  const unsigned* all = emu_exchange(v);
  return lane + unsigned(delta) > 31 ? v : all[lane + unsigned(delta)];
}

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T atomicAdd(T* p, T v) {
  const T old = *p;
  *p = old + v;
  return old;
}
template <class T, unsigned long N>
inline T& emu_at(T (&shared_array)[N], unsigned long i) {
  if (i >= N) emu_out_of_bounds(i, N);
  return shared_array[i];
}
inline void emu_add_vector(float* p, const float* v, int n) {
  if (__builtin_bit_cast(unsigned long long, p) % (4u * unsigned(n)) != 0)
    __builtin_trap();  // a misaligned address
  for (int i = 0; i < n; ++i) p[i] += v[i];
}
inline void ptx_red_global_add_v4_f32(float* p, float a, float b, float c, float d) {
  const float v[] = {a, b, c, d};
  emu_add_vector(p, v, 4);
}
inline void ptx_red_global_add_v2_f32(float* p, float a, float b) {
  const float v[] = {a, b};
  emu_add_vector(p, v, 2);
}
inline unsigned atomicCAS(unsigned* p, unsigned expected, unsigned desired) {
  const unsigned old = *p;
  if (old == expected) *p = desired;
  return old;
}

// Byte i of the result is the one of high:low that the selector's digit i names.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const unsigned long long all = (unsigned long long)high << 32 | low;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i) out |= unsigned(all >> (which >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
  return out;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return unsigned(((unsigned long long)high << 32 | low) >> (by & 31u));
}
inline float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
inline unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
inline double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
inline long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
inline double rsqrt(double x) { return 1. / sqrt(x); }
inline long long __double2ll_rz(double x) {
  return x >= 9223372036854775808.    ? 0x7fffffffffffffffll
         : x <= -9223372036854775808. ? -0x7fffffffffffffffll - 1
                                      : (long long)x;
}
inline long long __float2ll_rz(float x) { return __double2ll_rz(x); }
inline int __double2int_rz(double x) {
  return x >= 2147483647. ? 2147483647 : x <= -2147483648. ? -2147483647 - 1 : int(x);
}
inline int __float2int_rz(float x) { return __double2int_rz(x); }
// Toward zero: what rounding to nearest took too far is taken back.
inline float __double2float_rz(double x) {
  const float y = float(x);
  return fabs(double(y)) > fabs(x) ? nextafterf(y, 0.f) : y;
}
inline float __ll2float_rz(long long x) {
  const float y = float(x);
  const bool beyond = x < 0 ? (__int128)y<(__int128)x : (__int128)y>(__int128) x;
  return beyond ? nextafterf(y, 0.f) : y;
}
inline unsigned __cvta_generic_to_shared(const void* p) { return emu_shared_address(p); }

// --- PTX instructions, by their names
template <class... T>
inline void ptx_(T&...) {}  // no instruction at all
inline void ptx_max_NaN_f32(float& out, float a, float b) { out = a != a ? a : b != b ? b : a > b ? a : b; }
inline void ptx_min_NaN_f32(float& out, float a, float b) { out = a != a ? a : b != b ? b : a < b ? a : b; }
inline float emu_f16(unsigned short bits) { return float(__builtin_bit_cast(_Float16, bits)); }
inline unsigned short emu_to_f16(float x) { return __builtin_bit_cast(unsigned short, (_Float16)x); }
inline unsigned emu_to_bf16(float x) {
  const unsigned b = __float_as_uint(x);
  return x != x ? 0x7fffu : (b + 0x7fffu + (b >> 16 & 1u)) >> 16;
}
inline void ptx_cvt_f32_f16(float& out, unsigned short bits) { out = emu_f16(bits); }
inline void ptx_unpack(float& low, float& high, unsigned pair) {
  low = emu_f16((unsigned short)pair);
  high = emu_f16((unsigned short)(pair >> 16));
}
inline void ptx_cvt_rn_bf16x2_f32(unsigned& out, float high, float low) {
  out = emu_to_bf16(high) << 16 | emu_to_bf16(low);
}
inline void ptx_cvt_rn_f16x2_f32(unsigned& out, float high, float low) {
  out = unsigned(emu_to_f16(high)) << 16 | emu_to_f16(low);
}
template <class Of>
unsigned emu_on_pairs(unsigned a, unsigned b, Of of) {
  return of(a & 0xffffu, b & 0xffffu) | of(a >> 16, b >> 16) << 16;
}
inline unsigned emu_max_bf16(unsigned a, unsigned b) {
  float out;
  ptx_max_NaN_f32(out, __uint_as_float(a << 16), __uint_as_float(b << 16));
  return emu_to_bf16(out);
}
inline unsigned emu_min_bf16(unsigned a, unsigned b) {
  float out;
  ptx_min_NaN_f32(out, __uint_as_float(a << 16), __uint_as_float(b << 16));
  return emu_to_bf16(out);
}
inline unsigned emu_max_f16(unsigned a, unsigned b) {
  float out;
  ptx_max_NaN_f32(out, emu_f16((unsigned short)a), emu_f16((unsigned short)b));
  return emu_to_f16(out);
}
inline unsigned emu_min_f16(unsigned a, unsigned b) {
  float out;
  ptx_min_NaN_f32(out, emu_f16((unsigned short)a), emu_f16((unsigned short)b));
  return emu_to_f16(out);
}
inline void ptx_max_NaN_bf16x2(unsigned& o, unsigned a, unsigned b) { o = emu_on_pairs(a, b, emu_max_bf16); }
inline void ptx_min_NaN_bf16x2(unsigned& o, unsigned a, unsigned b) { o = emu_on_pairs(a, b, emu_min_bf16); }
inline void ptx_max_NaN_f16x2(unsigned& o, unsigned a, unsigned b) { o = emu_on_pairs(a, b, emu_max_f16); }
inline void ptx_min_NaN_f16x2(unsigned& o, unsigned a, unsigned b) { o = emu_on_pairs(a, b, emu_min_f16); }
inline void ptx_fma_rn_bf16x2(unsigned& o, unsigned a, unsigned b, unsigned c) {
  const auto at = [](unsigned pair, int half) { return __uint_as_float(pair >> 16 * half << 16); };
  o = 0;
  for (int half = 0; half < 2; ++half)
    o |= emu_to_bf16(fmaf(at(a, half), at(b, half), at(c, half))) << 16 * half;
}
// lop3 with the table 0x6a.
inline void ptx_lop3_b32(unsigned& o, unsigned a, unsigned b, unsigned c) { o = (a & b) ^ c; }
inline void ptx_ex2_approx_ftz_f32(float& y, float x) { y = exp2f(x); }
inline void ptx_rcp_approx_ftz_f32(float& y, float x) { y = 1.f / x; }
inline void ptx_lg2_approx_f32(float& y, float x) { y = log2f(x); }
inline void ptx_sqrt_approx_f32(float& y, float x) { y = sqrtf(x); }
inline void ptx_tanh_approx_f32(float& y, float x) { y = tanhf(x); }
inline void ptx_rsqrt_approx_ftz_f32(float& y, float x) { y = 1.f / sqrtf(x); }
inline void ptx_rsqrt_approx_f32(float& y, float x) { y = 1.f / sqrtf(x); }
inline void ptx_cp_async_cg_shared_global_L2__128B(unsigned to, const void* from, int bytes) {
  emu_copy_async(to, from, bytes, 16);
}
inline void ptx_cp_async_ca_shared_global(unsigned to, const void* from, int size, int bytes) {
  emu_copy_async(to, from, bytes, size);
}
inline void ptx_cp_async_commit_group() { emu_commit_group(); }
inline void ptx_griddepcontrol_wait() { emu_wait_previous(); }
inline void ptx_griddepcontrol_launch_dependents() {}
inline void ptx_cp_async_wait_group(int pending) { emu_wait_group(pending); }
inline void ptx_cluster_ctarank(unsigned& rank) { rank = emu_ids().rank; }
inline void ptx_cluster_nctarank(unsigned& size) { size = emu_ids().cluster; }
inline void ptx_barrier_cluster_arrive_release_aligned() { emu_cluster_arrive(); }
inline void ptx_barrier_cluster_wait_acquire_aligned() { emu_cluster_wait(); }
inline void ptx_mapa_shared__cluster_u32(unsigned& out, unsigned local, unsigned rank) {
  out = (local & 0xffffffu) | rank << 24;
}
inline void ptx_st_shared__cluster_u32(unsigned address, unsigned word) {
  *static_cast<unsigned*>(emu_remote(address)) = word;
}
inline void ptx_ld_shared__cluster_u32(unsigned& out, unsigned address) {
  out = *static_cast<unsigned*>(emu_remote(address));
}

inline void ptx_bar_sync(int id, int threads) { emu_bar_sync(id, threads); }
inline void ptx_bar_arrive(int id, int threads) { emu_bar_arrive(id, threads); }
inline void ptx_st_shared_u32(unsigned address, unsigned x) { memcpy(emu_shared_at(address), &x, 4); }
inline void ptx_st_shared_v4_u32(unsigned address, unsigned x, unsigned y, unsigned z, unsigned w) {
  *reinterpret_cast<uint4*>(emu_shared_at(address)) = {x, y, z, w};
}
// Lane l gets word l % 4 of row l / 4 of each 8x8 matrix; lane 8 j + i says where row i of matrix j lies.
inline void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& a, unsigned& b, unsigned& c, unsigned& d,
                                                         unsigned address) {
  unsigned rows[32];
  memcpy(rows, emu_exchange(address), sizeof(rows));
  unsigned* const out[] = {&a, &b, &c, &d};
  for (unsigned j = 0; j < 4; ++j)
    memcpy(out[j], emu_shared_at(rows[8 * j + emu_lane() / 4]) + emu_lane() % 4 * 4, 4);
}
inline void ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& a, unsigned& b, unsigned& c,
                                                               unsigned& d, unsigned address) {
  unsigned rows[32];
  memcpy(rows, emu_exchange(address), sizeof(rows));
  unsigned* const out[] = {&a, &b, &c, &d};
  for (unsigned j = 0; j < 4; ++j)
    for (unsigned half = 0; half < 2; ++half)
      memcpy(reinterpret_cast<char*>(out[j]) + 2 * half,
             emu_shared_at(rows[8 * j + emu_lane() % 4 * 2 + half]) + emu_lane() / 4 * 2, 2);
}
template <class Convert>
inline void emu_mma(float* const (&acc)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                    Convert as_float) {
  unsigned left[4][32], right[2][32];
  for (int i = 0; i < 4; ++i) memcpy(left[i], emu_exchange(a[i]), sizeof(left[i]));
  for (int i = 0; i < 2; ++i) memcpy(right[i], emu_exchange(b[i]), sizeof(right[i]));
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = emu_lane() / 4, column = emu_lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned pair = k % 8 / 2, shift = k % 2 * 16;
      *acc[i] += as_float((unsigned short)(left[i / 2 + k / 8 * 2][row * 4 + pair] >> shift)) *
                 as_float((unsigned short)(right[k / 8][column * 4 + pair] >> shift));
    }
  }
}
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float& c0, float& c1, float& c2,
                                                                    float& c3, unsigned a0, unsigned a1,
                                                                    unsigned a2, unsigned a3, unsigned b0,
                                                                    unsigned b1) {
  emu_mma({&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, {b0, b1},
          [](unsigned short bits) { return __uint_as_float(unsigned(bits) << 16); });
}
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float& c0, float& c1, float& c2, float& c3,
                                                                  unsigned a0, unsigned a1, unsigned a2,
                                                                  unsigned a3, unsigned b0, unsigned b1) {
  emu_mma({&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, {b0, b1}, emu_f16);
}
inline void ptx_ld_shared_f32(float& x, unsigned address) { memcpy(&x, emu_shared_at(address), 4); }
inline void ptx_ld_shared_v2_f32(float& x, float& y, unsigned address) {
  ptx_ld_shared_f32(x, address), ptx_ld_shared_f32(y, address + 4);
}
inline void ptx_ld_shared_v4_f32(float& x, float& y, float& z, float& w, unsigned address) {
  ptx_ld_shared_v2_f32(x, y, address), ptx_ld_shared_v2_f32(z, w, address + 8);
}
inline void ptx_ld_shared_u16(unsigned& half, unsigned address) {
  half = 0, memcpy(&half, emu_shared_at(address), 2);
}
inline void ptx_ld_shared_u32(unsigned& word, unsigned address) { memcpy(&word, emu_shared_at(address), 4); }
inline void ptx_ld_shared_v2_u32(unsigned& x, unsigned& y, unsigned address) {
  ptx_ld_shared_u32(x, address), ptx_ld_shared_u32(y, address + 4);
}
inline void ptx_cvt_rna_tf32_f32(unsigned& out, float x) {
  const unsigned bits = __float_as_uint(x);
  out = (bits & 0x7f800000u) == 0x7f800000u ? bits | (bits & 0x1fffu ? 0x400000u : 0u)
                                            : (bits + 0x1000u) & ~0x1fffu;
}
inline void ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(float& c0, float& c1, float& c2, float& c3,
                                                                   unsigned a0, unsigned a1, unsigned a2,
                                                                   unsigned a3, unsigned b0, unsigned b1) {
  const unsigned a[] = {a0, a1, a2, a3}, b[] = {b0, b1};
  float* const acc[] = {&c0, &c1, &c2, &c3};
  unsigned left[4][32], right[2][32];
  for (int i = 0; i < 4; ++i) memcpy(left[i], emu_exchange(a[i]), sizeof(left[i]));
  for (int i = 0; i < 2; ++i) memcpy(right[i], emu_exchange(b[i]), sizeof(right[i]));
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = emu_lane() / 4, column = emu_lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 8; ++k)
      *acc[i] += __uint_as_float(left[i / 2 + k / 4 * 2][row * 4 + k % 4] & ~0x1fffu) *
                 __uint_as_float(right[k / 4][column * 4 + k % 4] & ~0x1fffu);
  }
}
inline void ptx_mbarrier_init_shared__cta_b64(unsigned address, unsigned arrivals) {
  emu_barrier_init(address, arrivals);
}
inline void ptx_fence_mbarrier_init_release_cluster() {}
inline void ptx_mbarrier_arrive_shared__cta_b64(unsigned address) { emu_barrier_arrive(address, -1, 0); }
inline void ptx_mbarrier_arrive_expect_tx_shared__cta_b64(unsigned address, unsigned bytes) {
  emu_barrier_arrive(address, -1, bytes);
}
inline void ptx_mbarrier_arrive_shared__cluster_b64(unsigned address) {
  emu_barrier_arrive(address & 0xffffffu, int(address >> 24), 0);
}
inline void ptx_try_wait(unsigned& passed, unsigned address, unsigned parity) {
  passed = unsigned(emu_barrier_passed(address, parity));
}
template <class... Index>
inline void emu_tma_of(unsigned blocks, unsigned to, const void* map, unsigned barrier, Index... index) {
  const int at[] = {index...};
  emu_tma(blocks, to, map, barrier, at, int(sizeof...(Index)));
}
inline void ptx_cp_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(
    unsigned to, const void* map, unsigned barrier, int x, int y) {
  emu_tma_of(0, to, map, barrier, x, y);
}
inline void ptx_cp_async_bulk_tensor_3d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(
    unsigned to, const void* map, unsigned barrier, int x, int y, int z) {
  emu_tma_of(0, to, map, barrier, x, y, z);
}
inline void ptx_cp_async_bulk_tensor_4d_shared__cluster_global_tile_mbarrier__complete_tx__bytes(
    unsigned to, const void* map, unsigned barrier, int x, int y, int z, int w) {
  emu_tma_of(0, to, map, barrier, x, y, z, w);
}
// clang-format off: the translation looks for a name after a space
inline void ptx_cp_async_bulk_tensor_2d_shared__cluster_global_tile_mbarrier__complete_tx__bytes_multicast__cluster(
    unsigned to, const void* map, unsigned barrier, unsigned short blocks, int x, int y) {
  emu_tma_of(blocks, to, map, barrier, x, y);
}
inline void ptx_cp_async_bulk_tensor_3d_shared__cluster_global_tile_mbarrier__complete_tx__bytes_multicast__cluster(
    unsigned to, const void* map, unsigned barrier, unsigned short blocks, int x, int y, int z) {
  emu_tma_of(blocks, to, map, barrier, x, y, z);
}
inline void ptx_cp_async_bulk_tensor_4d_shared__cluster_global_tile_mbarrier__complete_tx__bytes_multicast__cluster(
    unsigned to, const void* map, unsigned barrier, unsigned short blocks, int x, int y, int z, int w) {
  emu_tma_of(blocks, to, map, barrier, x, y, z, w);
}
// clang-format on

// Lane 8 j + i says where row i of 8x8 matrix j lies; lane l has word l % 4 of row l / 4 of each.
inline void ptx_stmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned address, unsigned a, unsigned b, unsigned c,
                                                         unsigned d) {
  unsigned rows[32];
  memcpy(rows, emu_exchange(address), sizeof(rows));
  const unsigned words[] = {a, b, c, d};
  for (unsigned j = 0; j < 4; ++j)
    memcpy(emu_shared_at(rows[8 * j + emu_lane() / 4]) + emu_lane() % 4 * 4, &words[j], 4);
  emu_write_unseen(address);
}
inline void ptx_st_shared_v2_u32(unsigned address, unsigned x, unsigned y) {
  const unsigned words[] = {x, y};
  memcpy(emu_shared_at(address), words, sizeof(words));
  emu_write_unseen(address);
}
inline void ptx_fence_proxy_async_shared__cta() { emu_fence_async(); }
template <class... Index>
inline void emu_tma_store_of(const void* map, unsigned from, Index... index) {
  const int at[] = {index...};
  emu_tma_store(from, map, at, int(sizeof...(Index)));
}
inline void ptx_cp_async_bulk_tensor_2d_global_shared__cta_tile_bulk_group(const void* map, unsigned from,
                                                                           int x, int y) {
  emu_tma_store_of(map, from, x, y);
}
inline void ptx_cp_async_bulk_tensor_3d_global_shared__cta_tile_bulk_group(const void* map, unsigned from,
                                                                           int x, int y, int z) {
  emu_tma_store_of(map, from, x, y, z);
}
inline void ptx_cp_async_bulk_tensor_4d_global_shared__cta_tile_bulk_group(const void* map, unsigned from,
                                                                           int x, int y, int z, int w) {
  emu_tma_store_of(map, from, x, y, z, w);
}
inline void ptx_cp_async_bulk_commit_group() { emu_tma_commit(); }
inline void ptx_cp_async_bulk_wait_group_read(int pending) { emu_tma_wait_read(pending); }

// --- fp8: two values in 16 bits, low byte first; saturating, to nearest even
inline float emu_f8(unsigned char bits, int mantissa, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  const float units = exponent == 0 ? float(fraction) : float(fraction + (1 << mantissa));
  const float unit = __uint_as_float(unsigned((exponent == 0 ? 1 : exponent) - bias - mantissa + 127) << 23);
  return (bits & 0x80) != 0 ? -units * unit : units * unit;
}
inline unsigned char emu_to_f8(float x, int mantissa, int bias, unsigned char largest) {
  const unsigned char sign = (__float_as_uint(x) >> 31) != 0 ? 0x80 : 0;
  if (x != x) return sign | 0x7f;
  const float magnitude = x < 0 ? -x : x;
  unsigned char best = 0;  // the last one that is not larger
  for (unsigned char step = 64; step > 0; step /= 2)
    if (best + step <= largest && emu_f8(best + step, mantissa, bias) <= magnitude) best += step;
  if (best < largest) {
    const double low = emu_f8(best, mantissa, bias), high = emu_f8(best + 1, mantissa, bias),
                 middle = (low + high) / 2;
    if (magnitude > middle || (magnitude == middle && (best & 1) != 0)) ++best;
  }
  return sign | best;
}
inline void ptx_cvt_rn_satfinite_e4m3x2_f32(unsigned short& out, float high, float low) {
  out = (unsigned short)(emu_to_f8(high, 3, 7, 0x7e) << 8 | emu_to_f8(low, 3, 7, 0x7e));
}
inline void ptx_cvt_rn_satfinite_e5m2x2_f32(unsigned short& out, float high, float low) {
  out = (unsigned short)(emu_to_f8(high, 2, 15, 0x7b) << 8 | emu_to_f8(low, 2, 15, 0x7b));
}
inline void ptx_cvt_rn_f16x2_e4m3x2(unsigned& out, unsigned short pair) {
  const auto half = [](unsigned char b) {
    return (b & 0x7f) == 0x7f ? (unsigned short)0x7fff : emu_to_f16(emu_f8(b, 3, 7));
  };
  out = unsigned(half((unsigned char)(pair >> 8))) << 16 | half((unsigned char)pair);
}
