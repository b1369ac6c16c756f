#include "special_tokens.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// The named special tokens, in the order in which transformers adds them.
constexpr std::array<std::string_view, 7> named_keys{"bos_token", "eos_token", "unk_token", "sep_token",
                                                     "pad_token", "cls_token", "mask_token"};
constexpr std::array<const char*, 2> list_keys{"extra_special_tokens", "additional_special_tokens"};

bool is_named_key(std::string_view key) { return std::ranges::find(named_keys, key) != named_keys.end(); }

bool holds_token(const nlohmann::json& value) {
  return value.is_string() || (value.is_object() && value.contains("content"));
}

// A token as a text, or as an object with its flags.
AddedToken token_at(const JsonNode& node, bool special) {
  const bool object = node.raw().is_object();
  AddedToken token;
  token.content = object ? node.at("content").string() : node.string();
  token.special = special || (object && node.flag("special", false));
  token.single_word = object && node.flag("single_word", false);
  token.lstrip = object && node.flag("lstrip", false);
  token.rstrip = object && node.flag("rstrip", false);
  token.normalized = object ? node.flag("normalized", !token.special) : !token.special;
  return token;
}

// A JSON file that is there or not; its document lives as long as this.
class Document {
 public:
  explicit Document(const TokenizerFile& file)
      : file_(file.name),
        json_(file.text.empty() ? nlohmann::json::object() : parse_strict_json(file.text, file.name)) {}
  [[nodiscard]] JsonNode root() const { return {json_, file_, ""}; }

 private:
  std::string file_;
  nlohmann::json json_;
};

// Special tokens by the key that names them, and those without one.
class NamedTokens {
 public:
  void read(const Document& document) {
    const JsonNode root = document.root();
    for (const auto& [key, value] : root.raw().items()) {
      if (value.is_null() || !key.ends_with("_token")) continue;
      if (is_named_key(key) || holds_token(value)) put(key, root.at(key));
    }
    for (const char* key : list_keys) {
      const auto list = root.find(key);
      if (!list) continue;
      if (list->raw().is_object()) {
        for (const auto& item : list->raw().items()) put(item.key(), list->at(item.key()));
      } else {
        for (std::size_t i = 0; i < list->size(); ++i) add_extra(list->at(i));
      }
      if (!list->raw().is_object()) return;  // the newer list hides the older one
    }
  }

  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    const auto found = named_.find(key);
    return found == named_.end() ? std::nullopt : std::optional(found->second.token.content);
  }

  [[nodiscard]] bool contains(std::string_view content) const {
    const auto is_it = [&](const DeclaredToken& token) { return token.token.content == content; };
    return std::ranges::any_of(named_, [&](const auto& entry) { return is_it(entry.second); }) ||
           std::ranges::any_of(extra_, is_it);
  }

  // The seven known ones, then the model's own, then those without a name.
  void append_to(std::vector<DeclaredToken>& out) const {
    for (const std::string_view key : named_keys) {
      if (const auto found = named_.find(std::string(key)); found != named_.end()) out.push_back(found->second);
    }
    for (const auto& [key, token] : named_) {
      if (!is_named_key(key)) out.push_back(token);
    }
    out.insert(out.end(), extra_.begin(), extra_.end());
  }

 private:
  void put(const std::string& key, const JsonNode& node) {
    // An end of text that no vocabulary holds is a mistake, not a new token.
    const bool may_be_new = key != "eos_token" && key != "bos_token";
    named_.insert_or_assign(key, DeclaredToken{token_at(node, true), node.described(), false, may_be_new});
  }
  void add_extra(const JsonNode& node) {
    DeclaredToken token{token_at(node, true), node.described(), false};
    if (!contains(token.token.content)) extra_.push_back(std::move(token));
  }

  std::map<std::string, DeclaredToken> named_;
  std::vector<DeclaredToken> extra_;
};

void sort_by_id(std::vector<DeclaredToken>& tokens) {
  std::ranges::sort(tokens, {}, [](const DeclaredToken& token) { return token.token.id; });
}

// {"151644": {"content": "<|im_start|>", ...}, ...}
std::vector<DeclaredToken> read_decoder(const JsonNode& section) {
  if (!section.raw().is_object()) section.refuse("expected an object of ids and tokens");
  std::vector<DeclaredToken> tokens;
  for (const auto& item : section.raw().items()) {
    const JsonNode node = section.at(item.key());
    std::int32_t id = -1;
    const char* const end = item.key().data() + item.key().size();
    const auto [stop, error] = std::from_chars(item.key().data(), end, id);
    if (error != std::errc() || stop != end || id < 0) node.refuse("its key is no token id");
    if (!node.raw().is_object()) node.refuse("expected an object with the token's content");
    DeclaredToken token{token_at(node, false), node.described(), true};
    token.token.id = id;
    tokens.push_back(std::move(token));
  }
  sort_by_id(tokens);
  return tokens;
}

// {"<|im_start|>": 151644, ...}
std::vector<DeclaredToken> read_added_tokens(const Document& document, const NamedTokens& named) {
  std::vector<DeclaredToken> tokens;
  const JsonNode root = document.root();
  for (const auto& item : root.raw().items()) {
    const JsonNode node = root.at(item.key());
    DeclaredToken token{{}, node.described(), false};
    token.token.id = static_cast<std::int32_t>(node.integer(0, std::numeric_limits<std::int32_t>::max()));
    token.token.content = item.key();
    token.token.special = named.contains(item.key());
    token.token.normalized = !token.token.special;
    tokens.push_back(std::move(token));
  }
  sort_by_id(tokens);
  return tokens;
}

struct ClassDefaults {
  std::string_view tokenizer_class;  // without "Fast"
  std::string_view bos, eos;         // empty: none
};
constexpr ClassDefaults class_defaults[] = {{"LlamaTokenizer", "<s>", "</s>"},
                                            {"CodeLlamaTokenizer", "<s>", "</s>"},
                                            {"GPT2Tokenizer", "<|endoftext|>", "<|endoftext|>"},
                                            {"GemmaTokenizer", "<bos>", "<eos>"},
                                            {"Qwen2Tokenizer", "", "<|endoftext|>"}};

// The class transformers would take: as the files say, else by the model's family.
std::string tokenizer_class(const JsonNode& config, const JsonNode& model) {
  std::string name;
  if (const auto stated = config.find("tokenizer_class")) {
    name = stated->string();
  } else if (const auto of_model = model.find("tokenizer_class")) {
    name = of_model->string();
  } else if (const auto family = model.find("model_type"); family && family->raw().is_string()) {
    if (family->string() == "gpt2") name = "GPT2Tokenizer";
    if (family->string() == "qwen2" || family->string() == "qwen3") name = "Qwen2Tokenizer";
  }
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

void read_defaults(const JsonNode& config, const JsonNode& model, TokenizerConfig& out) {
  const std::string name = tokenizer_class(config, model);
  const auto* found = std::ranges::find(class_defaults, name, &ClassDefaults::tokenizer_class);
  if (found == std::end(class_defaults)) return;
  // A null is an answer, too: none.
  if (!found->bos.empty() && !config.raw().contains("bos_token")) out.default_bos = found->bos;
  if (!found->eos.empty() && !config.raw().contains("eos_token")) out.default_eos = found->eos;
}

// A number, or a list of them.
std::vector<std::int64_t> model_eos(const JsonNode& model) {
  const auto node = model.find("eos_token_id");
  if (!node) return {};
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  if (!node->raw().is_array()) return {node->integer(0, largest)};
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < node->size(); ++i) ids.push_back(node->at(i).integer(0, largest));
  return ids;
}

// A template, or a list of named ones of which "default" counts.
std::optional<std::string> template_text(const JsonNode& root) {
  const auto node = root.find("chat_template");
  if (!node) return std::nullopt;
  if (!node->raw().is_array()) return node->string();
  for (std::size_t i = 0; i < node->size(); ++i) {
    if (node->at(i).at("name").string() == "default") return node->at(i).at("template").string();
  }
  return std::nullopt;
}

// Without added_tokens_decoder transformers would take the map's token, with it the other: nobody can mean both.
void refuse_two_ends(const std::optional<std::string>& of_config, const std::optional<std::string>& of_map,
                     const TokenizerFiles& files) {
  if (!of_config || !of_map || *of_config == *of_map) return;
  throw DataError(one_line(fmt::format("cannot use {}", files.config.name),
                           fmt::format("its eos_token is {}, but {} of {}", in_quotes(*of_config), in_quotes(*of_map),
                                       files.special_tokens_map.name),
                           "make them agree"));
}

}  // namespace

TokenizerConfig parse_tokenizer_files(const TokenizerFiles& files) {
  const Document config(files.config), map(files.special_tokens_map), added(files.added_tokens);
  TokenizerConfig out;
  out.chat_template = template_text(config.root());
  NamedTokens named, mapped;
  named.read(config);
  mapped.read(map);
  out.eos = named.text("eos_token");
  out.bos = named.text("bos_token");
  if (const auto decoder = config.root().find("added_tokens_decoder")) {
    out.tokens = read_decoder(*decoder);
  } else {
    refuse_two_ends(out.eos, mapped.text("eos_token"), files);
    named.read(map);
    out.tokens = read_added_tokens(added, named);
  }
  named.append_to(out.tokens);
  if (!out.eos) out.eos = mapped.text("eos_token");
  if (!out.bos) out.bos = mapped.text("bos_token");
  if (!out.eos || !out.bos) {
    const Document model(files.model_config);
    read_defaults(config.root(), model.root(), out);
    out.model_eos = model_eos(model.root());
  }
  return out;
}

}  // namespace lamina
