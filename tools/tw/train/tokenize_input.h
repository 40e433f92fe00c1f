// The documents that `tw tokenize` reads: files of text, each one document, and files with one on each line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/mapped_file.h"

namespace tilewright::tw {

struct Document {
  std::shared_ptr<const formats::MappedFile> file;
  std::string path;
  std::string_view bytes;  // of the file, or of the line
  std::uint64_t line = 0;  // from 1; 0: the whole file
};

// The text of a document: of a line, which is a JSON object, what `field` holds. Throws Error with the place.
std::string document_text(const Document& document, const std::string& field);

class DocumentReader {
 public:
  // Files that end in .txt or .jsonl, and folders, in which those are found at any depth, in the order of
  // their paths. Throws Error where there are none, and on files with other endings.
  explicit DocumentReader(const std::vector<std::string>& inputs);

  std::uint64_t bytes() const { return bytes_; }  // of all files
  std::uint64_t count() const;                    // documents; reads the files that have several
  // The next documents: at most `most`, or one, and no more once they have `enough` bytes. None at the end.
  std::vector<Document> next(std::size_t most, std::size_t enough);

 private:
  std::vector<std::string> paths_;
  std::uint64_t bytes_ = 0, line_ = 0;
  std::size_t next_path_ = 0, at_ = 0;
  std::shared_ptr<const formats::MappedFile> file_;  // the one that is being read
};

}  // namespace tilewright::tw
