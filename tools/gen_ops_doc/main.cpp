// gen_ops_doc > docs/ops.md
#include "gen_ops_doc/ops_document.h"

#include <cstdio>

int main() {
  const std::string text = tilewright::tools::ops_document();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
