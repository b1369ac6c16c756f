#include "document_line.hpp"

#include <algorithm>
#include <cstring>

#include <lamina/base/error.hpp>
#include <lamina/data/document_encoder.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lamina {

namespace {

// Bytes of the character that begins at `at`, or 0 if it is ill-formed (Unicode 15, table 3-7).
std::size_t well_formed_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const auto tail = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xBF; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned lowest = first == 0xE0 ? 0xA0 : 0x80, highest = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= lowest && byte(1) <= highest && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned lowest = first == 0xF0 ? 0x90 : 0x80, highest = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= lowest && byte(1) <= highest && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<std::size_t> first_ill_formed(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  for (std::size_t at = 0; at < text.size();) {
    std::uint64_t eight = high_bits;
    if (at + sizeof(eight) <= text.size()) std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & high_bits) == 0) {
      at += sizeof(eight);
      continue;
    }
    const std::size_t length = well_formed_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

DocumentEncoder::DocumentEncoder(const Tokenizer& tokenizer, bool append_eos, const TextRules& rules)
    : tokenizer_(&tokenizer), rules_(rules) {
  const std::vector<std::int32_t> plain = tokenizer.encode("a", false), full = tokenizer.encode("a", true);
  const auto inside = std::search(full.begin(), full.end(), plain.begin(), plain.end());
  if (inside == full.end()) {
    throw DataError(one_line("cannot use this tokenizer for documents",
                             "its post-processor changes more than the ends of a text", "use another tokenizer"));
  }
  prefix_.assign(full.begin(), inside);
  suffix_.assign(inside + static_cast<std::ptrdiff_t>(plain.size()), full.end());
  const std::optional<std::int32_t> eos = tokenizer.document_eos();
  lacks_eos_ = append_eos && !eos;  // matters only if a text comes
  // A tokenizer whose post-processor ends texts itself needs no second end.
  if (append_eos && eos && (suffix_.empty() || suffix_.back() != *eos)) suffix_.push_back(*eos);
  try {
    chat_ = ChatTemplate::of(tokenizer, {rules.chat_date, rules.ignored_keys});
  } catch (const DataError& error) {
    no_chat_ = error.what();  // matters only if a conversation comes
    if (!rules.chat_date.empty()) throw;
  }
}

void DocumentEncoder::add_text(std::string_view text, bool begins, bool ends, const std::string& file,
                               std::uint64_t offset, TokenizerWorkspace& workspace, EncodedDocuments& out) const {
  if (!tokenizer_->pure_bytes()) {
    if (const auto wrong = first_ill_formed(text)) {
      throw DataError(one_line(fmt::format("{}: not UTF-8 at byte {}", file, offset + *wrong), "text files are UTF-8",
                               "convert the file to UTF-8"));
    }
  }
  require_eos(file);
  if (begins) {
    out.starts.push_back(out.ids.size());
    out.ids.insert(out.ids.end(), prefix_.begin(), prefix_.end());
  }
  tokenizer_->encode_append(text, false, workspace, out.ids);
  if (ends) out.ids.insert(out.ids.end(), suffix_.begin(), suffix_.end());
  out.loss_mask.resize(out.ids.size(), 1);
}

void DocumentEncoder::require_eos(const std::string& file) const {
  if (!lacks_eos_) return;
  throw UsageError(one_line(fmt::format("{}: cannot end documents with an end-of-text token", file),
                            "the tokenizer names none, nor does the model's config.json",
                            "add eos_token to tokenizer_config.json, or set append_eos to no"));
}

void DocumentEncoder::add_json_line(std::string_view line, const std::string& place, TokenizerWorkspace& workspace,
                                    EncodedDocuments& out) const {
  const detail::DocumentLine document = detail::read_document_line(detail::parse_json_line(line, place), rules_, place);
  for (const std::string& key : document.unused) {
    note(key, fmt::format("{}: the key '{}' is not used, here and in other lines (ignore_keys says that this is meant)",
                          place, key));
  }
  switch (document.kind) {
    case detail::DocumentLine::Kind::text:
      return add_text(document.text, true, true, place, 0, workspace, out);
    case detail::DocumentLine::Kind::conversation:
      return add_conversation(document.conversation, place, workspace, out);
    case detail::DocumentLine::Kind::completion:
      require_eos(place);
      return add_completion(document.text, document.completion, workspace, out);
  }
}

void DocumentEncoder::add_conversation(const nlohmann::ordered_json& conversation, const std::string& place,
                                       TokenizerWorkspace& workspace, EncodedDocuments& out) const {
  if (!chat_) throw DataError(fmt::format("{}: cannot use a conversation: {}", place, no_chat_));
  if (chat_->asks_for_date() && rules_.chat_date.empty()) {
    note("", fmt::format("the chat template asks for today's date and is told {} ([data] date or --date names another)",
                         chat_->date()));
  }
  out.starts.push_back(out.ids.size());
  try {
    const ChatIds chat = chat_->encode(*tokenizer_, conversation, workspace);
    out.ids.insert(out.ids.end(), chat.ids.begin(), chat.ids.end());
    out.loss_mask.insert(out.loss_mask.end(), chat.trained.begin(), chat.trained.end());
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", place, error.what()));
  }
}

void DocumentEncoder::add_completion(const std::string& prompt, const std::string& completion,
                                     TokenizerWorkspace& workspace, EncodedDocuments& out) const {
  const ChatSegment segments[] = {{prompt, false}, {completion, true}};
  const ChatIds ids = encode_segments(*tokenizer_, segments, workspace);
  out.starts.push_back(out.ids.size());
  const auto put = [&](std::span<const std::int32_t> more, std::uint8_t trained) {
    out.ids.insert(out.ids.end(), more.begin(), more.end());
    out.loss_mask.resize(out.ids.size(), trained);
  };
  put(prefix_, 0);
  out.ids.insert(out.ids.end(), ids.ids.begin(), ids.ids.end());
  out.loss_mask.insert(out.loss_mask.end(), ids.trained.begin(), ids.trained.end());
  put(suffix_, 1);
}

void DocumentEncoder::note(const std::string& key, std::string text) const {
  const std::scoped_lock lock(notes_mutex_);
  notes_.try_emplace(key, std::move(text));
}

std::vector<std::string> DocumentEncoder::notes() const {
  const std::scoped_lock lock(notes_mutex_);
  std::vector<std::string> out;
  for (const auto& [key, text] : notes_) out.push_back(text);
  return out;
}

}  // namespace lamina
