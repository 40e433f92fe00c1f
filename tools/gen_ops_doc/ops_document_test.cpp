// docs/ops.md is what the op table says now. With TILEWRIGHT_UPDATE set it is rewritten instead.
#include "gen_ops_doc/ops_document.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tilewright::tools {
namespace {

TEST(OpsDocument, IsUpToDate) {
  if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) std::ofstream(TW_DOCS "/ops.md") << ops_document();
  std::ifstream file(TW_DOCS "/ops.md");
  std::stringstream written;
  written << file.rdbuf();
  EXPECT_TRUE(written.str() == ops_document()) << "docs/ops.md is old; `make golden` rewrites it";
}

TEST(OpsDocument, NamesEveryKindOfRow) {
  const std::string text = ops_document();
  for (const char* part : {"| `tanh` |", "| `matmul` |", "| `scatter_add` |", "| `multiply_by_one` |"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace tilewright::tools
