// The "post_processor" section of tokenizer.json: special tokens around the ids of one text.
#pragma once

#include "json_node.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lamina {

class PostProcessor {
 public:
  PostProcessor() = default;
  // TemplateProcessing (its "single" template), ByteLevel (offsets only, no effect on ids), Sequence. Refuses
  // (DataError) any other. `is_token` says whether an id names a token.
  template <typename IsToken>
  PostProcessor(const JsonNode& section, const IsToken& is_token) {
    add(section);
    for (const auto& special : specials_) {
      if (!is_token(special.id)) refuse_id(special);
    }
    specials_.clear();
  }

  [[nodiscard]] bool empty() const { return templates_.empty(); }
  // Appends the ids of the whole: special tokens only when asked for.
  void apply(std::span<const std::int32_t> ids, bool add_special_tokens, std::vector<std::int32_t>& out) const;

 private:
  static constexpr std::int32_t the_text = -1;  // in a template: the ids of the text
  struct Special {
    std::int32_t id;
    JsonNode place;
  };
  void add(const JsonNode& section);
  void add_template(const JsonNode& section);
  [[noreturn]] static void refuse_id(const Special& special);

  std::vector<std::vector<std::int32_t>> templates_;
  std::vector<Special> specials_;
};

}  // namespace lamina
