// Text files to one HDF5 token set, by several threads, with memory bounded by a few blocks of text a thread.
//
// Documents are those of document_encoder.hpp, in the order of the inputs. The result does not depend on the number of
// threads or on the size of the blocks: a long text is cut only where that changes no id (text_cutter.hpp); where a
// tokenizer allows no such cut, a .txt file is held in memory whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include <lamina/data/text_rules.hpp>
#include <lamina/data/tokenizer_identity.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina {

enum class TextFormat {
  automatic,
  text,
  json_lines
};  // automatic: by the name's extension, before .gz; json_lines: also a list

struct TokenizeProgress {
  std::uint64_t bytes = 0;  // of the files, compressed or not, done
  std::uint64_t total_bytes = 0;
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  std::vector<std::string> notes;  // at the end: what the user should hear about the lines
};

struct TokenizeRequest {
  std::vector<std::filesystem::path> inputs;
  TextFormat format = TextFormat::automatic;
  std::filesystem::path output;
  TokenizerIdentity identity;
  bool append_eos = true;
  TextRules rules;
  std::size_t threads = 1;
  std::size_t block_bytes = std::size_t{1} << 20;
  std::function<void(const TokenizeProgress&)>
      progress;  // called after each block, in the calling thread; may be empty
};

// Throws UsageError or DataError; the output is then as it was.
TokenizeProgress tokenize_files(const TokenizeRequest& request, const Tokenizer& tokenizer);

}  // namespace lamina
