#pragma once

// Megatron's indexed data sets: PREFIX.bin has the tokens, one after another, PREFIX.idx says where
// sequences and documents begin. Little endian:
//   "MMIDIDX\0\0", u64 version 1, u8 element type, u64 sequences, u64 document entries,
//   i32 length of each sequence, i64 first byte of each sequence,
//   i64 first sequence of each document, and the number of sequences at the end.
// We write a document as one sequence, in u16 where the vocabulary is below 65500, else in i32.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "holmes/base/result.hpp"

namespace holmes::model {

enum class TokenType : std::uint8_t { kU8 = 1, kI8, kI16, kI32, kI64, kF64, kF32, kU16 };
/// 0 for a type that holds no tokens.
std::uint32_t token_bytes(TokenType type);

struct IndexFacts {
  TokenType type = TokenType::kI32;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
};

/// Checks the content of an .idx file against the size of its .bin. kCorrupt: "`name`: what is
/// wrong, and what was expected".
Result<IndexFacts> check_index(std::span<const std::byte> index, std::uint64_t bin_bytes,
                               std::string_view name);

/// Checks both files of a data set as open_indexed_tokens() does (data.hpp).
Result<IndexFacts> inspect_indexed(const std::filesystem::path& prefix, std::uint32_t vocabulary);

/// Writes a data set in bounded memory. Both files appear when finish() succeeds; else nothing is
/// left. For one thread.
class IndexedWriter {
 public:
  /// kIo or kOutOfResources.
  static Result<IndexedWriter> begin(const std::filesystem::path& prefix, std::uint32_t vocabulary);
  IndexedWriter(IndexedWriter&&) noexcept;
  IndexedWriter& operator=(IndexedWriter&&) noexcept;
  ~IndexedWriter();

  /// Appends to the document that is being written.
  Status add(std::span<const std::int32_t> tokens);
  /// Ends it. A document without tokens is left out. kInvalidArgument when it has 2^31 tokens.
  Status end_document();
  /// kInvalidArgument when there is no token at all.
  Result<IndexFacts> finish();

 private:
  struct State;
  explicit IndexedWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holmes::model
