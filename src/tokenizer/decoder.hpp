// The "decoder" section of tokenizer.json: from the strings of tokens back to text.
#pragma once

#include "json_node.hpp"
#include "regex.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

class Decoder {
 public:
  // Without a section tokens are joined by spaces.
  Decoder() = default;
  // ByteLevel, Sequence, Replace, ByteFallback, Fuse, Strip, Metaspace. Refuses (DataError) any other.
  explicit Decoder(const JsonNode& section);

  // Exactly one step, ByteLevel: text is the concatenation of the tokens' bytes.
  [[nodiscard]] bool concatenates_bytes() const { return concatenates_bytes_; }
  [[nodiscard]] std::string decode(std::vector<std::string> tokens) const;
  // Whether the text of this token still depends on the next one: a byte that may be part of a character.
  [[nodiscard]] bool waits_for_next(std::string_view token) const;

 private:
  void add(const JsonNode& section);

  std::vector<std::unique_ptr<DecoderStep>> steps_;
  bool present_ = false;
  bool concatenates_bytes_ = false;
  bool joins_bytes_ = false;  // has a ByteFallback
};

// What ByteLevel makes of one token: the bytes it spells, or its own UTF-8 when it is not in the byte alphabet.
[[nodiscard]] std::string byte_level_bytes(std::string_view token);

}  // namespace lamina
