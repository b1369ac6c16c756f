#include "tokenizer_impl.hpp"
#include "utf8.hpp"

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/tokenizer/byte_tokenizer.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Lends a workspace from the pool and brings it back.
template <typename Pool, typename Make>
class Lease {
 public:
  Lease(std::mutex& mutex, Pool& pool, const Make& make) : mutex_(mutex), pool_(pool), workspace_(take(make)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    const std::lock_guard lock(mutex_);
    // Room was made when the workspace was taken.
    if (pool_.size() < pool_.capacity()) pool_.push_back(std::move(workspace_));
  }
  [[nodiscard]] TokenizerWorkspace& get() { return workspace_; }

 private:
  TokenizerWorkspace take(const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!pool_.empty()) {
        TokenizerWorkspace workspace = std::move(pool_.back());
        pool_.pop_back();
        return workspace;
      }
      pool_.reserve(pool_.capacity() + 1);
    }
    return make();
  }
  std::mutex& mutex_;
  Pool& pool_;
  TokenizerWorkspace workspace_;
};

std::string text_if_there(const std::filesystem::path& file) {
  std::error_code unreadable;  // reading the file says more
  return std::filesystem::exists(file, unreadable) ? read_file(file) : std::string();
}

TokenizerFiles files_beside(const std::filesystem::path& tokenizer_json) {
  TokenizerFiles files;
  for (TokenizerFile* file : {&files.config, &files.special_tokens_map, &files.added_tokens, &files.model_config}) {
    const std::filesystem::path path = tokenizer_json.parent_path() / file->name;
    *file = {path.string(), text_if_there(path)};
  }
  return files;
}

}  // namespace

TokenizerWorkspace::TokenizerWorkspace() : impl_(std::make_unique<Impl>()) {}
TokenizerWorkspace::TokenizerWorkspace(TokenizerWorkspace&&) noexcept = default;
TokenizerWorkspace& TokenizerWorkspace::operator=(TokenizerWorkspace&&) noexcept = default;
TokenizerWorkspace::~TokenizerWorkspace() = default;

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  std::error_code unreadable;  // reading the file says more
  const bool folder = std::filesystem::is_directory(path, unreadable);
  const std::filesystem::path file = folder ? path / "tokenizer.json" : path;
  const std::string text = read_file(file);
  TokenizerConfig config = parse_tokenizer_files(files_beside(file));
  if (const std::string own = text_if_there(file.parent_path() / "chat_template.jinja"); !own.empty()) {
    config.chat_template = own;
  }
  const std::string name = file.string();
  const nlohmann::json document = parse_strict_json(text, name);
  return Tokenizer(std::make_unique<Impl>(JsonNode(document, name, ""), config, name));
}

Tokenizer Tokenizer::parse(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                           const std::string& name) {
  const nlohmann::json document = parse_strict_json(tokenizer_json, name);
  TokenizerFiles files;
  files.config.text = tokenizer_config_json;
  const TokenizerConfig config = parse_tokenizer_files(files);
  return Tokenizer(std::make_unique<Impl>(JsonNode(document, name, ""), config, name));
}

Tokenizer Tokenizer::byte() {
  return parse(make_byte_tokenizer_json(), make_byte_tokenizer_config_json(), "the built-in byte tokenizer");
}

Tokenizer Tokenizer::named(const std::string& name_or_path) {
  return name_or_path == "byte" ? byte() : load(name_or_path);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::vector<std::int32_t> ids;
  const auto make = [this] { return make_workspace(); };
  Lease lease(impl_->pool_mutex, impl_->pool, make);
  encode_append(text, add_special_tokens, lease.get(), ids);
  return ids;
}

void Tokenizer::encode_append(std::string_view text, bool add_special_tokens, TokenizerWorkspace& workspace,
                              std::vector<std::int32_t>& out) const {
  impl_->encode(text, add_special_tokens, *workspace.impl_, out);
}

TokenizerWorkspace Tokenizer::make_workspace() const { return TokenizerWorkspace(); }

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::string text = decode_bytes(ids, skip_special_tokens);
  return utf8::valid_prefix(text) == text.size() ? text : utf8::replace_invalid(text);
}

std::string Tokenizer::decode_bytes(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  const bool concatenate = impl_->decoder.concatenates_bytes();
  std::string text;
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    const Impl::Token* token = impl_->token(id);
    if (token == nullptr || (skip_special_tokens && token->special)) continue;
    if (concatenate) {
      text += token->decoded;
    } else {
      tokens.push_back(token->decoded);
    }
  }
  return concatenate ? text : impl_->decoder.decode(std::move(tokens));
}

std::int64_t Tokenizer::text_bytes(std::int32_t id) const {
  const Impl::Token* token = impl_->token(id);
  if (token == nullptr || token->special) return 0;
  if (impl_->decoder.concatenates_bytes()) return std::ssize(token->decoded);
  if (impl_->decoder.waits_for_next(token->decoded)) return 1;  // a byte of a character
  const std::string before = "a";
  return std::max<std::int64_t>(
      0, std::ssize(impl_->decoder.decode({before, token->decoded})) - std::ssize(impl_->decoder.decode({before})));
}

std::int64_t Tokenizer::vocab_size() const { return static_cast<std::int64_t>(impl_->tokens.size()); }

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const { return impl_->id_of(token); }

std::optional<std::string> Tokenizer::token_of(std::int32_t id) const {
  if (impl_->token(id) == nullptr) return std::nullopt;
  return impl_->names[static_cast<std::size_t>(id)];
}

bool Tokenizer::is_special(std::int32_t id) const {
  const Impl::Token* token = impl_->token(id);
  return token != nullptr && token->special;
}

bool Tokenizer::pure_bytes() const { return impl_->pure_bytes; }
std::optional<std::int32_t> Tokenizer::eos() const { return impl_->eos; }
std::optional<std::int32_t> Tokenizer::document_eos() const { return impl_->document_eos; }
std::optional<std::int32_t> Tokenizer::bos() const { return impl_->bos; }
const std::optional<std::string>& Tokenizer::chat_template() const { return impl_->chat_template; }

}  // namespace lamina
