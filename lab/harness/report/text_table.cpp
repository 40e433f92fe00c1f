// Alignment of text columns.
#include <fmt/format.h>
#include <tilewright/base/error.h>

#include <algorithm>
#include <numeric>

#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

// Length in bytes of the escape sequence at the start of `text`; 0 when there is none.
std::size_t escape_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const auto end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }  // inside a UTF-8 character

// The first `width` characters, the last of them "…" when something was cut. For text without escapes.
std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if (continues(text[at])) continue;
    if (++seen == width) break;
  }
  return text.substr(0, at) + "…";
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t have = display_width(text);
  const std::string blank(width > have ? width - have : 0, ' ');
  return align == Align::left ? text + blank : blank + text;
}

constexpr std::size_t kGap = 2;    // blanks between columns
constexpr std::size_t kLeast = 8;  // the first column never becomes narrower

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    if (const std::size_t skip = escape_length(text); skip > 0) {
      text.remove_prefix(skip);
      continue;
    }
    if (!continues(text.front())) ++width;
    text.remove_prefix(1);
  }
  return width;
}

void TextTable::column(std::string header, Align align) { columns_.push_back({std::move(header), align}); }

void TextTable::row(std::vector<std::string> cells) {
  TW_CHECK(cells.size() == columns_.size(), "one cell per column");
  rows_.push_back(std::move(cells));
}

void TextTable::rule() {
  if (!rows_.empty() && !rows_.back().empty()) rows_.emplace_back();
}

std::vector<std::size_t> TextTable::widths(int width) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t widest = display_width(columns_[c].header);
    for (const auto& row : rows_) {
      if (!row.empty()) widest = std::max(widest, display_width(row[c]));
    }
    widths.push_back(widest);
  }
  if (widths.empty()) return widths;
  const std::size_t total =
      std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + kGap * (widths.size() - 1);
  const auto allowed = static_cast<std::size_t>(width);
  if (total > allowed) {
    const std::size_t excess = total - allowed;
    widths[0] = widths[0] > excess + kLeast ? widths[0] - excess : std::min(widths[0], kLeast);
  }
  return widths;
}

std::string TextTable::to_string(int width) const {
  const std::vector<std::size_t> wide = widths(width);
  std::size_t total = wide.empty() ? 0 : kGap * (wide.size() - 1);
  for (std::size_t w : wide) total += w;
  const std::string gap(kGap, ' ');
  std::string line_rule;
  for (std::size_t i = 0; i < total; ++i) line_rule += "─";
  std::string text;
  const auto line = [&](const auto& cell_at) {
    std::string out;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = c == 0 ? shortened(cell_at(c), wide[c]) : cell_at(c);
      out += (c == 0 ? "" : gap) + padded(cell, wide[c], columns_[c].align);
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    text += out + "\n";
  };
  line([&](std::size_t c) { return columns_[c].header; });
  text += line_rule + "\n";
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (!rows_[r].empty()) {
      line([&](std::size_t c) { return rows_[r][c]; });
    } else if (r + 1 < rows_.size()) {
      text += line_rule + "\n";
    }
  }
  return text;
}

std::string TextTable::to_markdown() const {
  std::string text = "|";
  for (const Column& c : columns_) text += fmt::format(" {} |", c.header);
  text += "\n|";
  for (const Column& c : columns_) text += c.align == Align::left ? "---|" : "---:|";
  for (const auto& row : rows_) {
    if (row.empty()) continue;
    text += "\n|";
    for (const std::string& cell : row) text += fmt::format(" {} |", cell);
  }
  return text + "\n";
}

}  // namespace tilewright::lab
