// Finding and reading documents.
#include "tw/train/tokenize_input.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/plain_message.h"
#include "formats/json.h"

namespace tilewright::tw {

namespace fs = std::filesystem;

namespace {

bool is_lines(const fs::path& path) { return path.extension() == ".jsonl"; }
bool is_input(const fs::path& path) { return path.extension() == ".txt" || is_lines(path); }

std::shared_ptr<const formats::MappedFile> open(const std::string& path) {
  try {
    return formats::MappedFile::open(path);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", path, e.what()));
  }
}

// The line at `at`, without its end; `at` moves behind it.
std::string_view take_line(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view line = text.substr(at, end - at);
  at = end + 1;
  return line;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

std::string document_text(const Document& document, const std::string& field) {
  if (document.line == 0) return std::string(document.bytes);
  try {
    const nlohmann::json object = formats::parse_json(document.bytes, "it");
    if (!object.is_object()) throw Error("it is no JSON object");
    const auto found = object.find(field);
    if (found == object.end()) {
      std::string fields;
      for (const auto& [name, value] : object.items()) fields += (fields.empty() ? "" : ", ") + name;
      throw Error(fmt::format("it has no field \"{}\" (--field); it has: {}", field,
                              fields.empty() ? "none" : fields));
    }
    if (!found->is_string())
      throw Error(fmt::format("its field \"{}\" is no text: {}", field, found->type_name()));
    return found->get<std::string>();
  } catch (const Error& e) {
    throw Error(fmt::format("{} line {}: {}", document.path, document.line, without_place(e)));
  }
}

DocumentReader::DocumentReader(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      const bool is_there = fs::exists(input, error);
      if (!is_input(input))
        throw Error(fmt::format("{}: {}a .txt file, a .jsonl file or a folder of them is wanted", input,
                                is_there ? "" : "there is no such file or folder; "));
      paths_.push_back(input);
      continue;
    }
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(input))
      if (entry.is_regular_file() && is_input(entry.path())) found.push_back(entry.path().string());
    if (found.empty()) throw Error(fmt::format("{}: the folder has no .txt and no .jsonl file", input));
    std::sort(found.begin(), found.end());
    paths_.insert(paths_.end(), found.begin(), found.end());
  }
  for (const std::string& path : paths_) bytes_ += open(path)->bytes().size();
}

std::uint64_t DocumentReader::count() const {
  std::uint64_t documents = 0;
  for (const std::string& path : paths_) {
    if (!is_lines(path)) {
      ++documents;
      continue;
    }
    const auto file = open(path);
    const std::string_view text = formats::text(file->bytes());
    for (std::size_t at = 0; at < text.size();)
      if (!is_blank(take_line(text, at))) ++documents;
  }
  return documents;
}

std::vector<Document> DocumentReader::next(std::size_t most, std::size_t enough) {
  std::vector<Document> documents;
  std::size_t bytes = 0;
  while (documents.size() < std::max<std::size_t>(most, 1) && bytes < enough) {
    if (!file_) {
      if (next_path_ == paths_.size()) break;
      file_ = open(paths_[next_path_]);
      line_ = at_ = 0;
    }
    const std::string& path = paths_[next_path_];
    const std::string_view text = formats::text(file_->bytes());
    if (!is_lines(path)) {
      documents.push_back({file_, path, text});
      at_ = text.size();
    } else if (at_ < text.size()) {
      const std::string_view line = take_line(text, at_);
      ++line_;
      if (!is_blank(line)) documents.push_back({file_, path, line, line_});
    }
    if (at_ >= text.size()) {
      file_.reset();
      ++next_path_;
    }
    if (!documents.empty() && documents.back().file) bytes += documents.back().bytes.size();
  }
  return documents;
}

}  // namespace tilewright::tw
