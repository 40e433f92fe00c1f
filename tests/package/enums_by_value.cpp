// A program of a user's that passes an enum which it has just loaded, beside other bytes, by value. Ends with
// 0 if the library saw the enum alone: a narrow one would come with the bytes beside it
// (scripts/check_headers.py).
#include <tilewright/tilewright.hpp>

#include <cstdio>

namespace {

struct Record {
  tilewright::DType dtype;
  unsigned char beside[7];
};

__attribute__((noinline)) double half(tilewright::Context& context, const Record& record) {
  using tilewright::DType;
  return context.scalar(0.5, record.dtype == DType::f64 ? record.dtype : DType::f32).item();
}

}  // namespace

int main() {
  tilewright::Context context;
  for (const auto dtype : {tilewright::DType::f32, tilewright::DType::f64, tilewright::DType::bf16}) {
    if (const double value = half(context, {dtype, {0x74, 4, 1, 1, 1, 1, 1}}); value != 0.5) {
      std::printf("0.5 came back as %g\n", value);
      return 1;
    }
  }
  return 0;
}
