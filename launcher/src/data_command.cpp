#include "data_command.hpp"

#include <fstream>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/model/data.hpp"
#include "holmes/model/indexed.hpp"
#include "holmes/model/tokenizer.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;

constexpr double kMega = 1e6;

/// Says now and then how far it is, on stderr.
class BuildProgress {
 public:
  BuildProgress(Console& console, const Clock& clock, bool quiet)
      : console_(console), clock_(clock), quiet_(quiet), last_(clock.now()), start_(last_) {}

  void at(const model::DocumentReader& reader, std::uint64_t tokens) {
    constexpr std::chrono::seconds kEvery{2};
    if (quiet_ || clock_.now() - last_ < kEvery) return;
    last_ = clock_.now();
    const auto read = static_cast<double>(reader.bytes_read());
    const auto total = static_cast<double>(std::max<std::uint64_t>(reader.bytes_total(), 1));
    console_.log(fmt::format("{:.0f} % read, {:.1f} MB/s, {:.1f} M tokens", 100 * read / total,
                             read / kMega / seconds(), static_cast<double>(tokens) / kMega));
  }
  double seconds() const { return std::chrono::duration<double>(clock_.now() - start_).count(); }

 private:
  Console& console_;
  const Clock& clock_;
  bool quiet_;
  TimePoint last_;
  TimePoint start_;
};

/// Text for one thread, and what it becomes.
struct Batch {
  std::vector<model::DocumentPiece> pieces;
  std::size_t bytes = 0;
  std::vector<std::int32_t> ids;
  std::vector<std::size_t> ends;  ///< In ids, of each piece.
};

/// Reads about a megabyte for each thread. Fewer batches at the end of the text.
Status read_round(model::DocumentReader& reader, std::size_t threads, std::vector<Batch>& round) {
  constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
  round.assign(threads, {});
  for (Batch& batch : round) {
    while (batch.bytes < kBatchBytes) {
      model::DocumentPiece piece;
      HOLMES_TRY_ASSIGN(const bool found, reader.next(piece));
      if (!found) return {};
      batch.bytes += piece.text.size();
      batch.pieces.push_back(std::move(piece));
    }
  }
  return {};
}

void encode(Batch& batch, model::Encoder& encoder, std::optional<std::int32_t> end) {
  for (const auto& piece : batch.pieces) {
    encoder.encode(piece.text, batch.ids);
    if (piece.ends_document && end) batch.ids.push_back(*end);
    batch.ends.push_back(batch.ids.size());
  }
}

Status write(const Batch& batch, model::IndexedWriter& writer) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
    HOLMES_TRY(writer.add(std::span(batch.ids).subspan(begin, batch.ends[i] - begin)));
    begin = batch.ends[i];
    if (batch.pieces[i].ends_document) HOLMES_TRY(writer.end_document());
  }
  return {};
}

Status refuse_to_overwrite(const DataCommand& command, const fs::path& path) {
  std::error_code ignored;
  if (command.overwrite || !fs::exists(path, ignored)) return {};
  return Error(ErrorCode::kInvalidArgument,
               path.string() + " is there already; choose another --out, or give --overwrite");
}

void print(const DataCommand& command, const model::IndexFacts& facts, double seconds,
           std::uint64_t bytes, Console& console) {
  nlohmann::ordered_json object{{"documents", facts.documents},
                                {"tokens", facts.tokens},
                                {"token_bytes", model::token_bytes(facts.type)}};
  std::string text = fmt::format("{}: {} documents, {} tokens of {} bytes", command.out.string(),
                                 facts.documents, facts.tokens, model::token_bytes(facts.type));
  if (bytes > 0) {
    object["seconds"] = seconds;
    object["input_bytes"] = bytes;
    text += fmt::format(", in {:.1f} s ({:.1f} MB/s)", seconds,
                        static_cast<double>(bytes) / kMega / seconds);
  }
  console.print(command.json ? object.dump() : text);
}

Status build(const DataCommand& command, Console& console, const Clock& clock) {
  for (const char* suffix : {".bin", ".idx"})
    HOLMES_TRY(refuse_to_overwrite(command, command.out.string() + suffix));
  HOLMES_TRY_ASSIGN(const auto tokenizer, model::make_tokenizer(command.tokenizer));
  const auto end = command.append_end ? tokenizer->end_of_document() : std::nullopt;
  HOLMES_TRY_ASSIGN(auto reader, model::DocumentReader::open(command.source));
  HOLMES_TRY_ASSIGN(auto writer, model::IndexedWriter::begin(command.out, tokenizer->vocabulary()));
  const std::size_t threads =
      command.threads > 0 ? command.threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<model::Encoder>> encoders;
  for (std::size_t i = 0; i < threads; ++i)
    encoders.push_back(tokenizer->make_encoder(model::SpecialTokens::kAsText));
  BuildProgress progress(console, clock, command.quiet);
  std::uint64_t tokens = 0;
  std::vector<Batch> round;
  std::vector<Batch> next;
  HOLMES_TRY(read_round(reader, threads, round));
  while (!round.front().pieces.empty()) {
    Status read;
    {
      std::vector<std::jthread> workers;  // joined at the end of the block
      for (std::size_t i = 0; i < threads; ++i)
        workers.emplace_back([&, i] { encode(round[i], *encoders[i], end); });
      read = read_round(reader, threads, next);
    }
    HOLMES_TRY(read);
    for (const Batch& batch : round) {
      HOLMES_TRY(write(batch, writer));
      tokens += batch.ids.size();
    }
    progress.at(reader, tokens);
    round.swap(next);
  }
  HOLMES_TRY_ASSIGN(const auto facts, writer.finish());
  print(command, facts, progress.seconds(), reader.bytes_total(), console);
  return {};
}

/// Under its name only when it is whole.
Status write_whole(const fs::path& path, const std::string& content) {
  const fs::path unfinished = path.string() + ".tmp";
  std::ofstream out(unfinished, std::ios::binary);
  out << content;
  out.close();
  std::error_code failed;
  if (out) fs::rename(unfinished, path, failed);
  if (out && !failed) return {};
  const int why = failed ? failed.value() : errno;
  fs::remove(unfinished, failed);
  return system_error("cannot write " + path.string(), why);
}

Status learn(const DataCommand& command, Console& console, const Clock& clock) {
  HOLMES_TRY(refuse_to_overwrite(command, command.out));
  HOLMES_TRY_ASSIGN(auto reader, model::DocumentReader::open(command.source));
  BuildProgress progress(console, clock, command.quiet);
  model::BpeTrainer trainer;
  model::DocumentPiece piece;
  for (;;) {
    HOLMES_TRY_ASSIGN(const bool found, reader.next(piece));
    if (!found) break;
    trainer.add(piece.text);
    progress.at(reader, 0);
  }
  HOLMES_TRY_ASSIGN(const std::string content, trainer.train(command.vocabulary));
  HOLMES_TRY(write_whole(command.out, content));
  HOLMES_TRY_ASSIGN(const auto tokenizer,
                    model::parse_tokenizer_json(content, command.out.string()));
  const nlohmann::ordered_json object{{"tokens", tokenizer->vocabulary()},
                                      {"seconds", progress.seconds()}};
  console.print(command.json ? object.dump()
                             : fmt::format("{}: {} tokens, in {:.1f} s", command.out.string(),
                                           tokenizer->vocabulary(), progress.seconds()));
  return {};
}

Status inspect(const DataCommand& command, Console& console) {
  constexpr std::uint32_t kAnyToken = std::numeric_limits<std::int32_t>::max();
  HOLMES_TRY_ASSIGN(const auto facts, model::inspect_indexed(command.out, kAnyToken));
  print(command, facts, 0, 0, console);
  return {};
}

}  // namespace

int data(const DataCommand& command, Console& console, const Clock& clock) {
  Status status;
  switch (command.action) {
    case DataCommand::Action::kBuild:
      status = build(command, console, clock);
      break;
    case DataCommand::Action::kLearn:
      status = learn(command, console, clock);
      break;
    case DataCommand::Action::kInspect:
      status = inspect(command, console);
      break;
  }
  if (status) return kExitDone;
  return report_failure(status.error(), console, command.json);
}

}  // namespace holmes::launcher
