#include "tokenizer_impl.hpp"

#include "utf8.hpp"

#include <algorithm>
#include <unordered_set>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

template <typename Part>
Part optional_part(const JsonNode& root, const char* key) {
  const auto section = root.find(key);
  return section ? Part(*section) : Part();
}

// "truncation" and "padding" are known and without effect, as in transformers: they are what batches are cut and filled
// to where a caller asks for it, not how a text is encoded.
const JsonNode& checked(const JsonNode& root) {
  root.only_keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                  "decoder", "model"});
  if (const auto version = root.find("version"); version && version->string() != "1.0") {
    version->refuse(fmt::format("version {} is not known", in_quotes(version->string())), "only 1.0 is");
  }
  return root;
}

// Receives the pieces of the pre-tokenizer and encodes them on the spot.
class BpeSink final : public PieceSink {
 public:
  BpeSink(const BpeModel& model, BpeScratch& scratch, std::vector<std::int32_t>& out)
      : model_(model), scratch_(scratch), out_(out) {}
  void take(Piece piece) override { model_.encode(piece.text, scratch_, out_); }

 private:
  const BpeModel& model_;
  BpeScratch& scratch_;
  std::vector<std::int32_t>& out_;
};

bool strips_nothing(const AddedToken& token) { return !token.lstrip && !token.rstrip && !token.single_word; }

}  // namespace

Tokenizer::Impl::Impl(const JsonNode& root, const TokenizerConfig& config, const std::string& name)
    : normalizer(optional_part<Normalizer>(checked(root), "normalizer")),
      pre_tokenizer(optional_part<PreTokenizer>(root, "pre_tokenizer")),
      model(root.at("model"), pre_tokenizer.byte_level()),
      added(root.find("added_tokens"), config.tokens, model, normalizer),
      decoder(optional_part<Decoder>(root, "decoder")),
      chat_template(config.chat_template) {
  list_tokens();
  if (const auto section = root.find("post_processor")) {
    post_processor = PostProcessor(*section, [&](std::int32_t id) { return token(id) != nullptr; });
  }
  pure_bytes = model.spells_bytes() && pre_tokenizer.transparent() && normalizer.empty() &&
               decoder.concatenates_bytes() &&
               std::all_of(added.tokens().begin(), added.tokens().end(), strips_nothing);
  resolve_ends(config, name);
}

std::optional<std::int32_t> Tokenizer::Impl::id_of(std::string_view token) const {
  if (const auto id = added.id_of(token)) return id;
  return model.id_of(token);
}

void Tokenizer::Impl::resolve_ends(const TokenizerConfig& config, const std::string& name) {
  const auto resolve = [&](const std::optional<std::string>& text, const std::optional<std::string>& otherwise,
                           const char* key) -> std::optional<std::int32_t> {
    if (!text) return otherwise ? id_of(*otherwise) : std::nullopt;
    if (const auto id = id_of(*text)) return id;
    throw DataError(
        one_line(fmt::format("cannot use {}", name),
                 fmt::format("{} {} of the files beside it is not in the vocabulary", key, in_quotes(*text)),
                 "save the files from the same tokenizer"));
  };
  eos = resolve(config.eos, config.default_eos, "eos_token");
  bos = resolve(config.bos, config.default_bos, "bos_token");
  document_eos = eos;
  if (eos) return;
  const auto named = std::ranges::find_if(
      config.model_eos, [&](std::int64_t id) { return token(static_cast<std::int32_t>(id)) != nullptr; });
  if (named != config.model_eos.end()) document_eos = static_cast<std::int32_t>(*named);
}

void Tokenizer::Impl::list_tokens() {
  std::int32_t largest = model.largest_id();
  for (const auto& entry : added.tokens()) largest = std::max(largest, entry.id);
  tokens.resize(static_cast<std::size_t>(largest) + 1);
  names.resize(tokens.size());
  std::unordered_set<std::string_view> special;
  for (const auto& entry : added.tokens()) {
    if (entry.special) special.insert(entry.content);
  }
  const auto put = [&](std::int32_t id, const std::string& content, const std::string& text) {
    const auto index = static_cast<std::size_t>(id);
    const std::string decoded = decoder.concatenates_bytes() ? byte_level_bytes(text) : text;
    tokens[index] = {decoded, true, special.contains(text)};
    names[index] = content;
  };
  for (const auto& [token, id] : model.vocabulary()) put(id, token, token);
  for (const auto& entry : added.tokens()) put(entry.id, entry.content, entry.decoded);
}

const Tokenizer::Impl::Token* Tokenizer::Impl::token(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens.size()) return nullptr;
  const Token& found = tokens[static_cast<std::size_t>(id)];
  return found.exists ? &found : nullptr;
}

void Tokenizer::Impl::encode(std::string_view text, bool add_special_tokens, TokenizerWorkspace::Impl& workspace,
                             std::vector<std::int32_t>& out) const {
  if (!pure_bytes && utf8::valid_prefix(text) != text.size()) {
    workspace.valid = utf8::replace_invalid(text);
    text = workspace.valid;
  }
  if (post_processor.empty()) return encode_text(text, workspace, out);
  workspace.ids.clear();
  encode_text(text, workspace, workspace.ids);
  post_processor.apply(workspace.ids, add_special_tokens, out);
}

void Tokenizer::Impl::encode_text(std::string_view text, TokenizerWorkspace::Impl& workspace,
                                  std::vector<std::int32_t>& out) const {
  added.cut(text, false, workspace.outer);
  for (const auto& segment : workspace.outer) {
    if (segment.token >= 0) {
      out.push_back(added.tokens()[static_cast<std::size_t>(segment.token)].id);
      continue;
    }
    std::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    bool at_start = segment.begin == 0;
    if (!normalizer.empty()) {
      workspace.normalized.assign(part);
      at_start = normalizer.apply(workspace.normalized, workspace.pre_tokenizer.regex) && at_start;
      part = workspace.normalized;
    }
    encode_segment(part, at_start, workspace, out);
  }
}

void Tokenizer::Impl::encode_segment(std::string_view text, bool at_start, TokenizerWorkspace::Impl& workspace,
                                     std::vector<std::int32_t>& out) const {
  BpeSink sink(model, workspace.bpe, out);
  if (!added.any(true)) return pre_tokenizer.split({text, at_start}, workspace.pre_tokenizer, sink);
  added.cut(text, true, workspace.inner);
  for (const auto& segment : workspace.inner) {
    if (segment.token >= 0) {
      out.push_back(added.tokens()[static_cast<std::size_t>(segment.token)].id);
    } else {
      pre_tokenizer.split({text.substr(segment.begin, segment.end - segment.begin), at_start && segment.begin == 0},
                          workspace.pre_tokenizer, sink);
    }
  }
}

}  // namespace lamina
