// Where the tokens of a binary token file lie, read from its header. Pure functions of bytes, for readers and their
// fuzz tests.
//
// All throw DataError naming the file and the byte offset where the header breaks. Every size and offset they return
// was checked against the size of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lamina/config/run_config.hpp>

namespace lamina {

enum class TokenElement { u8, u16, i16, u32, i32, i64 };
[[nodiscard]] std::size_t size_of(TokenElement element);

struct TokenLayout {
  std::string format;
  TokenElement element = TokenElement::u16;
  std::uint64_t offset = 0;  // bytes before the first token
  std::int64_t count = 0;    // tokens
  std::vector<std::int64_t> document_starts;
  std::optional<std::int64_t> declared_vocab;
};

// llm.c: `head` is the beginning of the file, at least 1024 bytes if it has so many.
[[nodiscard]] bool looks_like_llmc(std::span<const std::byte> head);
[[nodiscard]] TokenLayout read_llmc_layout(std::span<const std::byte> head, std::uint64_t file_size,
                                           const std::string& name);

// What is known of files that are nothing but tokens.
struct HeaderlessRules {
  BinDtype dtype = BinDtype::automatic;
  std::int64_t vocab_size = 0;                 // the model's; 0: not known
  std::string_view option = "data.bin_dtype";  // that sets dtype, for messages
};

// Nothing but uint16 (nanoGPT) or uint32 tokens. `head` is the beginning of the file, 1 MiB if it has so much.
// Automatic means uint16, and refuses a larger vocabulary and whatever reads as wider integers, too. A file that begins
// like one of llm.c is refused.
inline constexpr std::size_t headerless_head_bytes = std::size_t{1} << 20;
[[nodiscard]] TokenLayout read_headerless_layout(std::span<const std::byte> head, std::uint64_t file_size,
                                                 const HeaderlessRules& rules, const std::string& name);

// Megatron-LM indexed datasets: `index` is the whole .idx file, `bin_size` the size of the .bin file.
[[nodiscard]] bool looks_like_megatron_index(std::span<const std::byte> head);
[[nodiscard]] TokenLayout read_megatron_layout(std::span<const std::byte> index, std::uint64_t bin_size,
                                               const std::string& name);

// Throws DataError unless the starts ascend strictly from 0 and lie below `count` (no starts: fine).
void check_document_starts(std::span<const std::int64_t> starts, std::int64_t count, const std::string& name);

}  // namespace lamina
