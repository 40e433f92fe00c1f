// The parts of the parser that read bodies and the words they share with the header.
#pragma once

#include <tilewright/tile/kernel.h>

#include "tile/lexer.h"

namespace tilewright::tile {

Index parse_int(Lexer& lexer);
DType parse_dtype_name(Lexer& lexer);
// "{ ops }" into kernel.body, filling kernel.values.
void parse_body(Lexer& lexer, Kernel& kernel);

}  // namespace tilewright::tile
