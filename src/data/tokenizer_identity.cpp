#include <filesystem>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/data/tokenizer_identity.hpp>
#include <lamina/tokenizer/byte_tokenizer.hpp>

#include <fmt/format.h>

namespace lamina {

TokenizerIdentity identify_tokenizer(const std::string& name_or_path) {
  std::string json;
  if (name_or_path == "byte") {
    json = make_byte_tokenizer_json();
  } else {
    std::filesystem::path path = name_or_path;
    if (std::filesystem::is_directory(path)) path /= "tokenizer.json";
    json = read_file(path);
  }
  return {name_or_path, fmt::format("{:016x}", xxh3_64(json.data(), json.size()))};
}

void check_tokenizer(const TokenSource& source, const TokenizerIdentity& expected) {
  if (source.tokenizer_hash().empty() || source.tokenizer_hash() == expected.hash) return;
  throw DataError(one_line(fmt::format("{}: made with another tokenizer than {}", source.name(), expected.name),
                           fmt::format("its tokenizer was {} (hash {}, expected {})", source.tokenizer_name(),
                                       source.tokenizer_hash(), expected.hash),
                           "make the data again with the model's tokenizer"));
}

}  // namespace lamina
