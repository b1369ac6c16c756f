#include "byte_alphabet.hpp"

#include "utf8.hpp"

#include <array>

namespace lamina::byte_alphabet {

namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}
constexpr std::size_t code_count = 256 + 68;  // 188 bytes stand for themselves, 68 are moved to 256 and up

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<std::int16_t, code_count> bytes;

  Alphabet() {
    bytes.fill(-1);
    char32_t moved = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t code = is_printable(byte) ? static_cast<char32_t>(byte) : moved++;
      utf8::append(characters[byte], code);
      bytes[code] = static_cast<std::int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

const std::string& character(unsigned char byte) { return alphabet().characters[byte]; }

std::optional<std::string> bytes_of(std::string_view token) {
  std::string out;
  while (!token.empty()) {
    const utf8::Decoded decoded = utf8::decode_first(token);
    if (decoded.code >= code_count || alphabet().bytes[decoded.code] < 0) return std::nullopt;
    out.push_back(static_cast<char>(static_cast<unsigned char>(alphabet().bytes[decoded.code])));
    token.remove_prefix(decoded.size);
  }
  return out;
}

}  // namespace lamina::byte_alphabet
