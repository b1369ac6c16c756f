// Ids and texts equal to those of the `tokenizers` library (tools/goldens/make_tokenizer_goldens.py wrote them).
#include <algorithm>
#include <array>
#include <filesystem>

#include <lamina/base/file.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lamina {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

const std::filesystem::path goldens = std::filesystem::path(LAMINA_SOURCE_DIR) / "tests/tokenizer/goldens";

// CRC-32 (ISO 3309) of the ids as little-endian 32-bit integers.
std::uint32_t crc(const Ids& ids) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xEDB88320U : value >> 1;
      out[i] = value;
    }
    return out;
  }();
  std::uint32_t value = 0xFFFFFFFF;
  for (const auto id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      value = value >> 8 ^ table[(value ^ (static_cast<std::uint32_t>(id) >> shift)) & 0xFF];
    }
  }
  return ~value;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) return put(code);
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const std::array<std::uint32_t, 4> lead{0, 0xC0, 0xE0, 0xF0};
  put(lead[static_cast<std::size_t>(more)] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) put(0x80 | (code >> (6 * i) & 0x3F));
}

std::vector<std::uint32_t> page_starts() {
  std::vector<std::uint32_t> out;
  for (std::uint32_t start = 0; start < 0x32400; start += 256) out.push_back(start);
  out.insert(out.end(), {0xE0000, 0xE0100, 0xF0000, 0x10FF00});
  return out;
}

std::string page_text(std::uint32_t start) {
  std::string out;
  for (std::uint32_t code = start; code < start + 256; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    append_utf8(out, code);
    out += 'a';
    append_utf8(out, code);
    out += "1 ";
  }
  return out;
}

void expect_ids(const Ids& got, const Json& expected, const std::string& text) {
  if (expected.is_array()) {
    EXPECT_EQ(got, expected.get<Ids>()) << "text: " << Json(text.substr(0, 300));
  } else {
    EXPECT_EQ(got.size(), expected.at("count").get<std::size_t>()) << "text: " << Json(text.substr(0, 300));
    EXPECT_EQ(crc(got), expected.at("crc").get<std::uint32_t>()) << "text: " << Json(text.substr(0, 300));
  }
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  Golden()
      : case_(Json::parse(read_file(goldens / "cases" / (GetParam() + ".json")))),
        texts_(Json::parse(read_file(goldens / "texts.json"))),
        tokenizer_(load()) {}

  Json case_, texts_;
  Tokenizer tokenizer_;

 private:
  Tokenizer load() {
    Json file = Json::parse(read_file(goldens / ("base_" + case_.at("base").get<std::string>() + ".json")));
    for (const auto& [key, value] : case_.at("patch").items()) {
      if (key == "model") {
        file[key].update(value);
      } else {
        file[key] = value;
      }
    }
    return Tokenizer::parse(file.dump());
  }
};

TEST_P(Golden, encodes_as_the_library_does) {
  const Json& expected = case_.at("encode");
  ASSERT_EQ(expected.size(), texts_.size());
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto text = texts_[i].get<std::string>();
    expect_ids(tokenizer_.encode(text, true), expected[i], text);
  }
  for (std::size_t i = 0; i < case_.at("plain").size(); ++i) {
    const auto text = texts_[i].get<std::string>();
    expect_ids(tokenizer_.encode(text, false), case_.at("plain")[i], text);
  }
}

TEST_P(Golden, encodes_every_block_of_unicode) {
  const Json& expected = case_.at("pages");
  if (expected.empty()) return;
  const auto starts = page_starts();
  ASSERT_EQ(expected.size(), starts.size());
  auto workspace = tokenizer_.make_workspace();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    Ids ids;
    tokenizer_.encode_append(page_text(starts[i]), true, workspace, ids);
    EXPECT_EQ(crc(ids), expected[i].get<std::uint32_t>()) << "code points from U+" << std::hex << starts[i];
  }
}

TEST_P(Golden, decodes_as_the_library_does) {
  ASSERT_GT(case_.at("decode").size(), 20U);
  for (const auto& item : case_.at("decode")) {
    const auto ids = item.at("ids").get<Ids>();
    EXPECT_EQ(tokenizer_.decode(ids, false), item.at("text").get<std::string>()) << item.at("ids");
    EXPECT_EQ(tokenizer_.decode(ids, true), item.at("skipped").get<std::string>()) << item.at("ids");
  }
}

TEST_P(Golden, streams_what_it_decodes) {
  for (const auto& text : texts_) {
    Ids ids = tokenizer_.encode(text.get<std::string>(), false);
    ids.resize(std::min<std::size_t>(ids.size(), 300));
    StreamDecoder stream(tokenizer_, false);
    std::string out;
    for (const auto id : ids) out += stream.push(id);
    out += stream.finish();
    EXPECT_EQ(out, tokenizer_.decode(ids, false));
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(goldens / "cases")) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(cases, Golden, testing::ValuesIn(case_names()), [](const auto& name) { return name.param; });

TEST(GoldenFiles, are_there) { EXPECT_GE(case_names().size(), 35U); }

}  // namespace
}  // namespace lamina
