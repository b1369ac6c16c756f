#include "file_kind.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

namespace {

using namespace std::string_view_literals;

bool begins(std::span<const std::byte> head, std::string_view magic, std::size_t at = 0) {
  return head.size() >= at + magic.size() && std::memcmp(head.data() + at, magic.data(), magic.size()) == 0;
}

struct Kind {
  std::string_view magic, name, fix;  // {} in fix is the file
  std::size_t at = 0;
};

constexpr std::string_view to_json_lines = "turn it into JSON lines: python3 -c \"import pandas; pandas.read_";
const std::array kinds{
    Kind{"\x28\xb5\x2f\xfd"sv, "compressed with zstd", "decompress it first: zstd -d {}"},
    Kind{"\xfd"
         "7zXZ\0"sv,
         "compressed with xz", "decompress it first: xz -dk {}"},
    Kind{"BZh91AY&SY"sv, "compressed with bzip2", "decompress it first: bzip2 -dk {}"},
    Kind{"\x04\x22\x4d\x18"sv, "compressed with lz4", "decompress it first: lz4 -d {}"},
    Kind{"PK\x03\x04"sv, "a zip archive", "unpack it first: unzip {}"},
    Kind{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", "unpack it first"},
    Kind{"ustar"sv, "a tar archive", "unpack it first: tar -xf {}", 257},
    Kind{"PAR1"sv, "a Parquet table", "parquet"},
    Kind{"ARROW1"sv, "an Arrow table", "feather"},
    Kind{
        "\xff\xff\xff\xff\x10\0\0\0"sv, "an Arrow stream",
        "turn it into JSON lines: python3 -c \"import datasets; datasets.Dataset.from_file('{}').to_json('{}.jsonl')\"",
        0},
    Kind{"\x93NUMPY"sv, "a numpy array", "write its bare tokens: numpy.load('{}').astype('uint32').tofile('{}.bin')"},
    Kind{"SQLite format 3"sv, "an SQLite database", "write its texts as JSON lines"},
};

std::string fix_of(const Kind& kind, const std::string& name) {
  const std::string format(kind.fix);
  if (format == "parquet" || format == "feather") {
    return fmt::format("{}{}('{}').to_json('{}.jsonl', orient='records', lines=True)\"", to_json_lines, format, name,
                       name);
  }
  return fmt::format(fmt::runtime(format), name, name);
}

// Which of two bytes is zero throughout, as in Latin text of 16 bits; 2: none.
std::size_t zero_side(std::span<const std::byte> head) {
  if (head.size() < 8) return 2;
  std::array<bool, 2> zero{true, true};
  for (std::size_t i = 0; i + 1 < head.size(); i += 2) {
    zero[0] = zero[0] && head[i] == std::byte{0};
    zero[1] = zero[1] && head[i + 1] == std::byte{0};
  }
  if (zero[0] == zero[1]) return 2;
  return zero[0] ? 0 : 1;
}

}  // namespace

bool looks_like_gzip(std::span<const std::byte> head) { return begins(head, "\x1f\x8b\x08"sv); }

void refuse_foreign_kind(std::span<const std::byte> head, const std::string& name) {
  for (const Kind& kind : kinds) {
    if (!begins(head, kind.magic, kind.at)) continue;
    throw DataError(
        one_line(fmt::format("{}: {}", name, kind.name), "it is neither tokens nor text", fix_of(kind, name)));
  }
}

void refuse_wide_text(std::span<const std::byte> head, const std::string& name) {
  const auto refuse = [&](std::string_view encoding) {
    throw DataError(one_line(fmt::format("{}: text in {}", name, encoding), "text files are UTF-8",
                             fmt::format("convert it: iconv -f {} -t UTF-8 {} > {}.utf8", encoding, name, name)));
  };
  if (begins(head, "\xff\xfe\0\0"sv) || begins(head, "\0\0\xfe\xff"sv)) refuse("UTF-32");
  if (begins(head, "\xff\xfe"sv) || begins(head, "\xfe\xff"sv)) refuse("UTF-16");
  const std::size_t side = zero_side(head);
  if (side < 2) refuse(side == 1 ? "UTF-16LE" : "UTF-16BE");
}

std::string text_extension(const std::filesystem::path& path) {
  return path.extension() == ".gz" ? path.stem().extension().string() : path.extension().string();
}

bool is_text_name(const std::filesystem::path& path) {
  const std::string extension = text_extension(path);
  return extension == ".txt" || extension == ".jsonl" || extension == ".json";
}

}  // namespace lamina::detail
