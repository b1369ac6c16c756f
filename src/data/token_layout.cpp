#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <lamina/base/error.hpp>
#include <lamina/data/token_layout.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read as they are");

constexpr std::size_t llmc_header_bytes = 256 * 4;
constexpr std::string_view megatron_magic{"MMIDIDX\0\0", 9};

[[noreturn]] void refuse(const std::string& name, std::uint64_t offset, std::string_view problem, std::string_view why,
                         std::string_view fix = "make the file again") {
  throw DataError(one_line(fmt::format("{}: {} at byte {}", name, problem, offset), why, fix));
}

// Reads values one after another and never past the end.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - position_; }

  template <class T>
  T take(std::string_view what) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (left() < sizeof(T)) {
      refuse(name_, position_, "the file ends",
             fmt::format("{} needs {} bytes and {} are left", what, sizeof(T), left()));
    }
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::uint64_t position_ = 0;
};

struct LlmcKind {
  std::int32_t magic;
  std::int32_t version;
  TokenElement element;
};
constexpr std::array llmc_kinds{LlmcKind{20240520, 1, TokenElement::u16}, LlmcKind{20240801, 7, TokenElement::u32}};

std::optional<LlmcKind> llmc_kind(std::int32_t magic) {
  for (const LlmcKind& kind : llmc_kinds) {
    if (kind.magic == magic) return kind;
  }
  return std::nullopt;
}

TokenElement megatron_element(ByteReader& in, const std::string& name) {
  const std::uint64_t at = in.position();
  const auto code = in.take<std::uint8_t>("the element type");
  switch (code) {
    case 1:
      return TokenElement::u8;
    case 3:
      return TokenElement::i16;
    case 4:
      return TokenElement::i32;
    case 5:
      return TokenElement::i64;
    case 8:
      return TokenElement::u16;
    default:
      break;
  }
  refuse(name, at, fmt::format("unusable element type {}", code),
         "tokens are uint8 (1), int16 (3), int32 (4), int64 (5) or uint16 (8)");
}

// Lengths of the sequences; their sum must be the tokens of the .bin file, and each must begin where the one before
// ends.
std::vector<std::int64_t> megatron_sequence_starts(ByteReader& in, std::uint64_t sequences, std::size_t element_size,
                                                   std::int64_t tokens, const std::string& name) {
  std::vector<std::int64_t> starts;
  starts.reserve(sequences + 1);
  std::int64_t sum = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const std::uint64_t at = in.position();
    const auto length = in.take<std::int32_t>("a sequence length");
    if (length < 0 || length > tokens - sum) {
      refuse(name, at, fmt::format("sequence {} has {} tokens", i, length),
             fmt::format("{} of {} tokens of the .bin file are left", tokens - sum, tokens));
    }
    starts.push_back(sum);
    sum += length;
  }
  starts.push_back(sum);
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const std::uint64_t at = in.position();
    const auto pointer = in.take<std::int64_t>("a sequence pointer");
    if (pointer != starts[i] * static_cast<std::int64_t>(element_size)) {
      refuse(name, at, fmt::format("sequence {} is said to begin at byte {}", i, pointer),
             fmt::format("the lengths before it end at byte {}", starts[i] * static_cast<std::int64_t>(element_size)));
    }
  }
  if (sum != tokens) {
    refuse(name, in.position(), fmt::format("sequences of {} tokens in all", sum),
           fmt::format("the .bin file holds {}", tokens));
  }
  return starts;
}

std::vector<std::int64_t> megatron_documents(ByteReader& in, std::uint64_t documents,
                                             const std::vector<std::int64_t>& starts, const std::string& name) {
  std::vector<std::int64_t> out;
  std::int64_t last = -1;
  for (std::uint64_t i = 0; i < documents; ++i) {
    const std::uint64_t at = in.position();
    const auto sequence = in.take<std::int64_t>("a document index");
    const auto most = static_cast<std::int64_t>(starts.size()) - 1;
    if (sequence < 0 || sequence > most || sequence < last || (i == 0 && sequence != 0)) {
      refuse(name, at, fmt::format("document {} begins at sequence {}", i, sequence),
             fmt::format("indices ascend from 0 to {}", most));
    }
    last = sequence;
    const std::int64_t token = starts[static_cast<std::size_t>(sequence)];
    // The last index is the end; empty documents have no token of their own.
    if (token < starts.back() && (out.empty() || out.back() < token)) out.push_back(token);
  }
  return out;
}

}  // namespace

std::size_t size_of(TokenElement element) {
  switch (element) {
    case TokenElement::u8:
      return 1;
    case TokenElement::u16:
    case TokenElement::i16:
      return 2;
    case TokenElement::u32:
    case TokenElement::i32:
      return 4;
    case TokenElement::i64:
      return 8;
  }
  throw InternalError("size_of: unknown token element");
}

bool looks_like_llmc(std::span<const std::byte> head) {
  // A nanoGPT file cannot begin like this: its first token would be 55432 or 55713, beyond GPT-2's vocabulary of 50257.
  std::int32_t magic = 0;
  if (head.size() < sizeof(magic)) return false;
  std::memcpy(&magic, head.data(), sizeof(magic));
  return llmc_kind(magic).has_value();
}

TokenLayout read_llmc_layout(std::span<const std::byte> head, std::uint64_t file_size, const std::string& name) {
  ByteReader in(head, name);
  const auto kind = llmc_kind(in.take<std::int32_t>("the magic number"));
  if (!kind) refuse(name, 0, "no magic number of llm.c tokens", "it must be 20240520 or 20240801");
  const auto version = in.take<std::int32_t>("the version");
  if (version != kind->version) {
    refuse(name, 4, fmt::format("version {} of llm.c tokens", version),
           fmt::format("this magic number has version {}", kind->version));
  }
  const auto count = in.take<std::int32_t>("the number of tokens");
  if (file_size < llmc_header_bytes) {
    refuse(name, file_size, "the file ends", fmt::format("the header has {} bytes", llmc_header_bytes));
  }
  const std::uint64_t body = file_size - llmc_header_bytes;
  const std::uint64_t width = size_of(kind->element);
  // The count is 32 bits wide: llm.c's files of more tokens than that do not exist.
  if (count < 0 || body != static_cast<std::uint64_t>(count) * width) {
    refuse(name, 8, fmt::format("a count of {} tokens", count),
           fmt::format("the file has {} bytes of tokens of {} bytes each", body, width));
  }
  return {"llm.c tokens", kind->element, llmc_header_bytes, count, {}, std::nullopt};
}

bool looks_like_megatron_index(std::span<const std::byte> head) {
  return head.size() >= megatron_magic.size() &&
         std::memcmp(head.data(), megatron_magic.data(), megatron_magic.size()) == 0;
}

TokenLayout read_megatron_layout(std::span<const std::byte> index, std::uint64_t bin_size, const std::string& name) {
  if (!looks_like_megatron_index(index)) refuse(name, 0, "no magic number of a Megatron index", "it must be MMIDIDX");
  ByteReader in(index, name);
  in.take<std::array<std::byte, 9>>("the magic number");
  const auto version = in.take<std::uint64_t>("the version");
  if (version != 1) refuse(name, 9, fmt::format("version {} of a Megatron index", version), "only version 1 is known");
  TokenLayout out{"Megatron tokens", megatron_element(in, name), 0, 0, {}, std::nullopt};
  const std::uint64_t counts_at = in.position();
  const auto sequences = in.take<std::uint64_t>("the number of sequences");
  const auto documents = in.take<std::uint64_t>("the number of documents");
  // Checked one by one first, so that the sum cannot overflow. Multimodal sets append one mode byte a sequence: not
  // tokens only.
  if (sequences > in.left() / 12 || documents > in.left() / 8 || sequences * 12 + documents * 8 != in.left()) {
    refuse(name, counts_at, fmt::format("{} sequences and {} document indices", sequences, documents),
           fmt::format("{} bytes follow, and they take 12 and 8 bytes each", in.left()));
  }
  const std::size_t width = size_of(out.element);
  if (bin_size % width != 0) {
    refuse(name, 17, fmt::format("tokens of {} bytes", width), fmt::format("the .bin file has {} bytes", bin_size));
  }
  out.count = static_cast<std::int64_t>(bin_size / width);
  const std::vector<std::int64_t> starts = megatron_sequence_starts(in, sequences, width, out.count, name);
  out.document_starts = megatron_documents(in, documents, starts, name);
  return out;
}

void check_document_starts(std::span<const std::int64_t> starts, std::int64_t count, const std::string& name) {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if ((i == 0 && starts[i] != 0) || starts[i] <= last || starts[i] >= count) {
      throw DataError(one_line(fmt::format("{}: document {} begins at token {}", name, i, starts[i]),
                               fmt::format("starts ascend from 0 and lie below {}", count), "make the file again"));
    }
    last = starts[i];
  }
}

}  // namespace lamina
