// docs/ops.md is what the op table says now.
#include "gen_ops_doc/ops_document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tilewright::tools {
namespace {

TEST(OpsDocument, IsUpToDate) {
  std::ifstream file(TW_DOCS "/ops.md");
  std::stringstream written;
  written << file.rdbuf();
  EXPECT_TRUE(written.str() == ops_document()) << "docs/ops.md is old; run: build/gen_ops_doc > docs/ops.md";
}

TEST(OpsDocument, NamesEveryKindOfRow) {
  const std::string text = ops_document();
  for (const char* part : {"| `tanh` |", "| `matmul` |", "| `scatter_add` |", "| `multiply_by_one` |"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace tilewright::tools
