#include "file_kind.hpp"
#include "file_token_source.hpp"
#include "text_token_source.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/data/token_layout.hpp>
#include <lamina/data/token_set.hpp>
#include <lamina/data/token_source.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t head_bytes = 1024;  // llm.c's header; longer than any other mark

bool looks_like_hdf5(std::span<const std::byte> head) {
  constexpr std::string_view signature{"\x89HDF\r\n\x1a\n", 8};
  return head.size() >= signature.size() && std::memcmp(head.data(), signature.data(), signature.size()) == 0;
}

fs::path with_extension(fs::path path, const char* extension) { return path.replace_extension(extension); }

std::unique_ptr<TokenSource> open_megatron(const fs::path& index_path, const fs::path& bin_path) {
  const detail::InputFile index(index_path);
  detail::InputFile bin(bin_path);
  const std::vector<std::byte> bytes = index.head(index.size());
  TokenLayout layout = read_megatron_layout(bytes, bin.size(), index.name());
  return std::make_unique<detail::FileTokenSource>(std::move(bin), std::move(layout));
}

// A .bin file that is not llm.c's: Megatron's if an index lies beside it, else nothing but tokens.
std::unique_ptr<TokenSource> open_bin(const fs::path& path, detail::InputFile file, const HeaderlessRules& rules) {
  const fs::path index = with_extension(path, ".idx");
  if (fs::exists(index)) return open_megatron(index, path);
  TokenLayout layout = read_headerless_layout(file.head(headerless_head_bytes), file.size(), rules, file.name());
  return std::make_unique<detail::FileTokenSource>(std::move(file), std::move(layout));
}

// What PREFIX means when there is no file of this very name.
fs::path resolve(const fs::path& path) {
  std::error_code unreadable;
  if (fs::exists(path, unreadable)) return path;
  const fs::path index = path.string() + ".idx", bin = path.string() + ".bin";
  return fs::exists(index, unreadable) && fs::exists(bin, unreadable) ? index : path;
}

const Tokenizer& needed(const Tokenizer* tokenizer) {
  require(tokenizer != nullptr, "text is opened with a tokenizer");
  return *tokenizer;
}

}  // namespace

bool has_data(const fs::path& path) {
  std::error_code unreadable;  // then opening says what is the matter
  return fs::exists(resolve(path), unreadable);
}

bool needs_tokenizer(const fs::path& path) { return detail::is_text_name(path); }

std::unique_ptr<TokenSource> open_token_source(const fs::path& named, const SourceOptions& options) {
  const fs::path path = resolve(named);
  detail::InputFile file(path);
  const std::vector<std::byte> head = file.head(head_bytes);
  detail::refuse_foreign_kind(head, file.name());
  if (needs_tokenizer(path))
    return detail::open_text_source(path, needed(options.tokenizer), options.append_eos, options.rules);
  const std::string extension = path.extension().string();
  if (looks_like_hdf5(head)) return open_token_set(path);
  if (looks_like_llmc(head)) {
    TokenLayout layout = read_llmc_layout(head, file.size(), file.name());
    return std::make_unique<detail::FileTokenSource>(std::move(file), std::move(layout));
  }
  if (looks_like_megatron_index(head)) return open_megatron(path, with_extension(path, ".bin"));
  if (extension == ".bin") return open_bin(path, std::move(file), options.headerless);
  if (extension == ".h5" || extension == ".hdf5") {
    throw DataError(one_line(fmt::format("{}: not an HDF5 file", path.string()), "the signature at byte 0 is missing",
                             "make the file again"));
  }
  throw DataError(
      one_line(fmt::format("{}: unknown kind of data", path.string()),
               "it is neither an HDF5 token set nor .bin, .idx, .txt, .jsonl or .json, and of these only the "
               "last three may be followed by .gz",
               detail::looks_like_gzip(head) ? "unpack it first: gunzip FILE, or call it by what it holds"
                                             : "turn it into a token set with lamina-tokenize"));
}

}  // namespace lamina
