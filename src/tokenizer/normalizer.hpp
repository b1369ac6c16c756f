// The "normalizer" section of tokenizer.json: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, Sequence.
#pragma once

#include "json_node.hpp"
#include "regex.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lamina {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // Changes valid UTF-8 `text` in place. Returns false when characters at the start were removed.
  [[nodiscard]] virtual bool apply(std::string& text, RegexScratch& scratch) const = 0;
};

class Normalizer {
 public:
  Normalizer() = default;
  // Refuses (DataError) what is not implemented.
  explicit Normalizer(const JsonNode& section) { add(section); }

  [[nodiscard]] bool empty() const { return steps_.empty(); }
  // Returns whether the result still begins where the text began.
  [[nodiscard]] bool apply(std::string& text, RegexScratch& scratch) const;

 private:
  void add(const JsonNode& section);

  std::vector<std::unique_ptr<NormalizerStep>> steps_;
};

// A "pattern" member: {"String": text} or {"Regex": expression}.
[[nodiscard]] Regex parse_pattern(const JsonNode& pattern);

}  // namespace lamina
