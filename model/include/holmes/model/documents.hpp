#pragma once

// Documents of files as they lie about: plain text (a file is a document), JSON lines (a line is
// one, its text under a key), each also gzipped, and folders of such files. Read piece by piece, in
// bounded memory. For one thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::model {

struct DocumentSource {
  std::vector<std::filesystem::path> inputs;  ///< Files, and folders of files (hidden ones not).
  std::string key = "text";                   ///< Of the text in a JSON line.
};

/// Some text of a document. Cut where a word ends, so that pieces can be encoded one by one.
struct DocumentPiece {
  std::string text;
  bool ends_document = false;
};

class DocumentReader {
 public:
  /// kInvalidArgument when an input does not exist or a folder has no file.
  static Result<DocumentReader> open(const DocumentSource& source);
  DocumentReader(DocumentReader&&) noexcept;
  DocumentReader& operator=(DocumentReader&&) noexcept;
  ~DocumentReader();

  /// False at the end. kCorrupt: "file:line: what is wrong" for a bad JSON line or gzip data.
  Result<bool> next(DocumentPiece& piece);
  /// Of all files, as they lie on the disk, and how many of them have been read.
  std::uint64_t bytes_total() const;
  std::uint64_t bytes_read() const;

 private:
  struct State;
  explicit DocumentReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holmes::model
