#include "post_processor.hpp"

#include <limits>

#include <fmt/format.h>

namespace lamina {

void PostProcessor::refuse_id(const Special& special) {
  special.place.refuse(fmt::format("id {} names no token", special.id));
}

void PostProcessor::add(const JsonNode& section) {
  const std::string& type = section.at("type").string();
  if (type == "Sequence") {
    section.only_keys({"type", "processors"});
    const JsonNode list = section.at("processors");
    for (std::size_t i = 0; i < list.size(); ++i) add(list.at(i));
  } else if (type == "TemplateProcessing") {
    add_template(section);
  } else if (type == "ByteLevel") {
    section.only_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else {
    section.at("type").refuse(fmt::format("post_processor {} is not implemented", in_quotes(type)),
                              "known: TemplateProcessing ByteLevel Sequence");
  }
}

void PostProcessor::add_template(const JsonNode& section) {
  section.only_keys({"type", "single", "pair", "special_tokens"});
  const JsonNode single = section.at("single");
  const JsonNode tokens = section.at("special_tokens");
  std::vector<std::int32_t> items;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const JsonNode piece = single.at(i);
    piece.only_keys({"Sequence", "SpecialToken"});
    if (const auto sequence = piece.find("Sequence")) {
      if (sequence->at("id").string() != "A")
        sequence->at("id").refuse("a template for one text can only name sequence A");
      items.push_back(the_text);
      continue;
    }
    const JsonNode name = piece.at("SpecialToken").at("id");
    const auto token = tokens.find(name.string());
    if (!token) name.refuse(fmt::format("special token {} is not among special_tokens", in_quotes(name.string())));
    const JsonNode ids = token->at("ids");
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const JsonNode id = ids.at(k);
      items.push_back(static_cast<std::int32_t>(id.integer(0, std::numeric_limits<std::int32_t>::max())));
      specials_.push_back({items.back(), id});
    }
  }
  templates_.push_back(std::move(items));
}

void PostProcessor::apply(std::span<const std::int32_t> ids, bool add_special_tokens,
                          std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> inner;
  for (std::size_t i = 0; i < templates_.size(); ++i) {
    std::vector<std::int32_t> outer;
    std::vector<std::int32_t>& target = i + 1 == templates_.size() ? out : outer;
    for (const std::int32_t item : templates_[i]) {
      if (item == the_text) {
        target.insert(target.end(), ids.begin(), ids.end());
      } else if (add_special_tokens) {
        target.push_back(item);
      }
    }
    if (&target == &outer) {
      inner = std::move(outer);
      ids = inner;
    }
  }
}

}  // namespace lamina
