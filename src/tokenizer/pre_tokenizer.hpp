// The "pre_tokenizer" section of tokenizer.json: cuts text into the pieces that merges never cross.
//
// Stages run depth first, piece by piece, so that no list of pieces is held however long the text is.
#pragma once

#include "json_node.hpp"
#include "regex.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

struct Piece {
  std::string_view text;
  bool at_start;  // begins where the whole input began
};

class PieceSink {
 public:
  virtual void take(Piece piece) = 0;

 protected:
  ~PieceSink() = default;
};

// Buffers of one thread for one PreTokenizer.
struct PreTokenizerScratch {
  RegexScratch regex;
  std::vector<std::string> rewritten;  // one for each stage
};

class PreTokenizerStage {
 public:
  virtual ~PreTokenizerStage() = default;
  // Hands the non-empty parts of `piece` to `sink`, in order. `buffer` belongs to this stage until the call returns.
  virtual void split(Piece piece, RegexScratch& regex, std::string& buffer, PieceSink& sink) const = 0;
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  // Refuses (DataError) what is not implemented.
  explicit PreTokenizer(const JsonNode& section) { add(section); }

  // Whether the pieces are read as bytes (a ByteLevel stage, always the last).
  [[nodiscard]] bool byte_level() const { return byte_level_; }
  // Whether any byte string passes as one piece: no stage looks at characters.
  [[nodiscard]] bool transparent() const { return stages_.empty(); }

  void split(Piece piece, PreTokenizerScratch& scratch, PieceSink& sink) const;

 private:
  class Link;
  void add(const JsonNode& section);
  void add_byte_level(const JsonNode& section);
  void run(std::size_t stage, Piece piece, PreTokenizerScratch& scratch, PieceSink& sink) const;

  std::vector<std::unique_ptr<PreTokenizerStage>> stages_;
  bool byte_level_ = false;
};

}  // namespace lamina
