// Token files that are nothing but tokens: how wide they are must be said, or must be beyond doubt.
#include <algorithm>
#include <cstring>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/data/token_layout.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::uint64_t llmc_header_bytes = 1024;
constexpr std::size_t few = 8;                 // fewer numbers prove nothing
constexpr std::uint16_t small_high_half = 15;  // of ids below 2^20, beyond every vocabulary in use

template <class T>
std::vector<T> values_of(std::span<const std::byte> head) {
  std::vector<T> values(head.size() / sizeof(T));
  std::memcpy(values.data(), head.data(), values.size() * sizeof(T));
  return values;
}

[[noreturn]] void refuse(const std::string& name, std::string_view problem, std::string_view why,
                         std::string_view fix) {
  throw DataError(one_line(fmt::format("{}: {}", name, problem), why, fix));
}

// Files of llm.c's family begin with 256 int32, the first of them a date. Read as uint16, such a date's first token is
// beyond GPT-2's vocabulary.
void refuse_damaged_llmc(std::span<const std::byte> head, std::uint64_t file_size, const HeaderlessRules& rules,
                         const std::string& name) {
  if (file_size <= llmc_header_bytes || head.size() < llmc_header_bytes) return;
  const auto words = values_of<std::int32_t>(head.first(llmc_header_bytes));
  const std::uint64_t body = file_size - llmc_header_bytes;
  const auto count = static_cast<std::uint64_t>(std::max(words[2], 0));
  const bool counts = count > 0 && (body == count * 2 || body == count * 4);
  const bool dated = words[0] >= 20240000 && words[0] < 20250000;
  const bool zeros = std::all_of(words.begin() + 3, words.end(), [](std::int32_t word) { return word == 0; }) &&
                     std::any_of(words.begin(), words.begin() + 3, [](std::int32_t word) { return word != 0; });
  if (!counts && (rules.dtype != BinDtype::automatic || !(dated || zeros))) return;
  refuse(name, fmt::format("the magic number {} at byte 0 is not that of llm.c tokens", words[0]),
         "the file begins like one of llm.c, which has 20240520 or 20240801 there",
         "make the file again, or name one that holds tokens");
}

// Whether every second value is zero and not all others are: what wider integers look like.
template <class T>
bool upper_halves_are_zero(std::span<const T> values) {
  if (values.size() < 2 * few) return false;
  bool low = false;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    if (values[i + 1] != 0) return false;
    low = low || values[i] != 0;
  }
  return low;
}

bool reads_as_uint32(std::span<const std::uint16_t> values) {
  if (upper_halves_are_zero(values)) return true;
  if (values.size() < 2 * few) return false;
  std::size_t low = 0;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    if (values[i + 1] > small_high_half) return false;
    if (values[i] > small_high_half) ++low;
  }
  return low > values.size() / 4;  // most of the lower halves
}

void doubt_width(std::span<const std::byte> head, std::uint64_t file_size, const HeaderlessRules& rules,
                 const std::string& name) {
  if (rules.dtype == BinDtype::uint16) return;
  if (file_size % 8 == 0 && upper_halves_are_zero<std::uint32_t>(values_of<std::uint32_t>(head))) {
    refuse(name, "its tokens read as int64", "every second uint32 of its beginning is 0",
           "write them as uint32, or as a token set with lamina-tokenize");
  }
  if (rules.dtype == BinDtype::uint32 || file_size % 4 != 0) return;
  if (!reads_as_uint32(values_of<std::uint16_t>(head))) return;
  refuse(name, "the width of its tokens is in doubt",
         "it has no header, and its beginning reads as small uint32 numbers, too",
         fmt::format("set {} to uint32 or to uint16", rules.option));
}

}  // namespace

TokenLayout read_headerless_layout(std::span<const std::byte> head, std::uint64_t file_size,
                                   const HeaderlessRules& rules, const std::string& name) {
  refuse_damaged_llmc(head, file_size, rules, name);
  if (rules.dtype == BinDtype::automatic && rules.vocab_size > 65536) {
    refuse(name, "the width of its tokens is not known",
           fmt::format("it has no header, and the model's vocabulary of {} does not fit uint16", rules.vocab_size),
           fmt::format("set {} to uint32, or to uint16 if all its ids are below 65536", rules.option));
  }
  const TokenElement element = rules.dtype == BinDtype::uint32 ? TokenElement::u32 : TokenElement::u16;
  const std::uint64_t width = size_of(element), rest = file_size % width;
  if (rest != 0) {
    refuse(name, fmt::format("part of a token at byte {}", file_size - rest),
           fmt::format("uint{} tokens take {} bytes each, and the file has {}", 8 * width, width, file_size),
           "make the file again");
  }
  doubt_width(head, file_size, rules, name);
  return {fmt::format("uint{} tokens", 8 * width),      element, 0,
          static_cast<std::int64_t>(file_size / width), {},      std::nullopt};
}

}  // namespace lamina
