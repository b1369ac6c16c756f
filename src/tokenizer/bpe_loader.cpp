// Reading and checking of the model section.
#include "bpe_model.hpp"
#include "byte_alphabet.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::string_view lower_block = "\xE2\x96\x81";
constexpr std::int64_t id_slack = 65536;  // ids may leave gaps, within reason: tables are as long as the largest id

void refuse_unless_empty(const JsonNode& section, const char* key) {
  const auto value = section.find(key);
  if (value && !value->string().empty()) value->refuse(fmt::format("{} is not implemented", key));
}

// The two tokens of a merge, as a pair or in one string.
std::pair<std::string, std::string> merge_parts(const JsonNode& merge) {
  if (merge.raw().is_array()) {
    if (merge.size() != 2) merge.refuse("expected a pair of tokens");
    return {merge.at(std::size_t{0}).string(), merge.at(std::size_t{1}).string()};
  }
  const std::string& text = merge.string();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    merge.refuse(fmt::format("{} is not two tokens with one space between them", in_quotes(text)));
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

BpeModel::BpeModel(const JsonNode& section, bool byte_level) : byte_level_(byte_level) {
  // Files older than the "type" key hold BPE too when they have merges.
  if (const auto type = section.find("type"); type && type->string() != "BPE") {
    type->refuse(fmt::format("model {} is not implemented", in_quotes(type->string())), "only BPE is");
  }
  section.only_keys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                     "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (const auto dropout = section.find("dropout")) {
    if (!dropout->raw().is_number() || dropout->raw().get<double>() != 0) dropout->refuse("dropout is not implemented");
  }
  refuse_unless_empty(section, "continuing_subword_prefix");
  refuse_unless_empty(section, "end_of_word_suffix");
  fuse_unknown_ = section.flag("fuse_unk", false);
  byte_fallback_ = section.flag("byte_fallback", false);
  ignore_merges_ = section.flag("ignore_merges", false);
  parse_vocabulary(section.at("vocab"));
  parse_unknown(section);
  parse_merges(section.at("merges"));
  prepare_bytes();
  prepare_characters();
}

void BpeModel::parse_vocabulary(const JsonNode& section) {
  if (!section.raw().is_object()) section.refuse("expected an object of tokens and ids");
  const auto& entries = section.raw().get_ref<const nlohmann::json::object_t&>();
  if (entries.empty()) section.refuse("the vocabulary is empty");
  const auto limit = static_cast<std::int64_t>(entries.size()) * 2 + id_slack;
  std::vector<const std::string*> by_id;
  vocabulary_.reserve(entries.size());
  for (const auto& [token, value] : entries) {
    if (!value.is_number_integer() || value < 0 || value > limit) {
      section.refuse(fmt::format("token {} has id {}, expected an integer from 0 to {}", in_quotes(token),
                                 in_quotes(value.dump()), limit));
    }
    const auto id = value.get<std::int32_t>();
    if (static_cast<std::size_t>(id) >= by_id.size()) by_id.resize(static_cast<std::size_t>(id) + 1);
    auto& owner = by_id[static_cast<std::size_t>(id)];
    if (owner != nullptr) {
      section.refuse(fmt::format("tokens {} and {} share id {}", in_quotes(*owner), in_quotes(token), id));
    }
    owner = &token;
    vocabulary_.emplace(token, id);
    largest_id_ = std::max(largest_id_, id);
  }
}

void BpeModel::parse_unknown(const JsonNode& section) {
  const auto token = section.find("unk_token");
  if (!token) return;
  const auto id = id_of(token->string());
  if (!id) token->refuse(fmt::format("token {} is not in the vocabulary", in_quotes(token->string())));
  unknown_ = *id;
}

void BpeModel::parse_merges(const JsonNode& section) {
  merge_count_ = section.size();
  merges_.reserve(merge_count_);
  merged_.resize(merge_count_);
  for (std::size_t i = 0; i < merge_count_; ++i) {
    const JsonNode merge = section.at(i);
    const auto [left, right] = merge_parts(merge);
    const auto known = [&](const std::string& token) {
      const auto id = id_of(token);
      if (!id) merge.refuse(fmt::format("token {} is not in the vocabulary", in_quotes(token)));
      return *id;
    };
    const Merge result{static_cast<std::uint32_t>(i), known(left + right)};
    merges_.insert(known(left), known(right), result);
    merged_[i] = result.merged;
  }
}

void BpeModel::prepare_bytes() {
  for (unsigned byte = 0; byte < 256; ++byte) {
    fallback_[byte] = id_of(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  all_bytes_ = true;
  const unsigned count = byte_level_ ? 256 : 128;
  for (unsigned byte = 0; byte < count; ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    bytes_[byte] = symbol_of(byte_level_ ? byte_alphabet::character(value) : std::string(1, static_cast<char>(value)));
    all_bytes_ = all_bytes_ && bytes_[byte].id >= 0;
  }
}

void BpeModel::prepare_characters() {
  for (const auto& [token, id] : vocabulary_) {
    if (!byte_level_ && !token.empty()) {
      const utf8::Decoded decoded = utf8::decode_first(token);
      if (decoded.size == token.size()) characters_.emplace(decoded.code, id);
    }
    if (!ignore_merges_) continue;
    if (!byte_level_) {
      whole_words_.emplace(token, id);
    } else if (const auto bytes = byte_alphabet::bytes_of(token)) {
      whole_words_.emplace(*bytes, id);
    }
  }
  cut_at_spaces_ = !byte_level_ && !ignore_merges_ && id_of(lower_block) && !merges_cross_spaces();
}

bool BpeModel::merges_cross_spaces() const {
  const std::set<std::int32_t> results(merged_.begin(), merged_.end());
  for (const auto& [token, id] : vocabulary_) {
    if (!results.contains(id)) continue;
    std::string_view rest = token;
    while (rest.starts_with(lower_block)) rest.remove_prefix(lower_block.size());
    if (rest.find(lower_block) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace lamina
