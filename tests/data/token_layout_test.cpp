#include "data/scratch_folder.hpp"

#include <array>
#include <cstring>
#include <functional>

#include <lamina/base/random.hpp>
#include <lamina/data/token_layout.hpp>
#include <lamina/data/token_source.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using test::error_of;
using test::ScratchFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& out, T value) {
  for (const std::byte byte : std::as_bytes(std::span(&value, 1))) out.push_back(byte);
}

Bytes llmc_head(std::int32_t magic, std::int32_t version, std::int32_t count) {
  Bytes out;
  for (const std::int32_t value : {magic, version, count}) put(out, value);
  out.resize(1024);
  return out;
}

// Three sequences of 2, 3 and 1 tokens; documents begin at sequences 0 and 2.
Bytes megatron_index(std::uint8_t code = 8, std::int64_t width = 2) {
  Bytes out;
  for (const char c : std::string("MMIDIDX\0\0", 9)) put(out, c);
  put(out, std::uint64_t{1});
  put(out, code);
  put(out, std::uint64_t{3});
  put(out, std::uint64_t{3});
  for (const std::int32_t length : {2, 3, 1}) put(out, length);
  for (const std::int64_t start : {0, 2, 5}) put(out, start * width);
  for (const std::int64_t document : {0, 2, 3}) put(out, document);
  return out;
}

TEST(TokenLayout, LlmcHeaders) {
  const TokenLayout narrow = read_llmc_layout(llmc_head(20240520, 1, 5), 1024 + 10, "f");
  EXPECT_EQ(narrow.element, TokenElement::u16);
  EXPECT_EQ(narrow.count, 5);
  EXPECT_EQ(narrow.offset, 1024U);
  EXPECT_EQ(read_llmc_layout(llmc_head(20240801, 7, 5), 1024 + 20, "f").element, TokenElement::u32);
  const auto refusal = [](const Bytes& head, std::uint64_t size) {
    return error_of([&] { static_cast<void>(read_llmc_layout(head, size, "f.bin")); });
  };
  EXPECT_THAT(refusal(llmc_head(20240520, 2, 5), 1034), HasSubstr("f.bin: version 2 of llm.c tokens at byte 4"));
  EXPECT_THAT(refusal(llmc_head(20240520, 1, 6), 1034), AllOf(HasSubstr("at byte 8"), HasSubstr("10 bytes of tokens")));
  EXPECT_THAT(refusal(llmc_head(20240520, 1, -1), 1034), HasSubstr("at byte 8"));
  EXPECT_THAT(refusal(llmc_head(1, 1, 1), 1026), HasSubstr("at byte 0"));
  EXPECT_THAT(refusal(Bytes{}, 0), HasSubstr("at byte 0"));
  Bytes cut = llmc_head(20240520, 1, 0);
  cut.resize(600);
  EXPECT_THAT(refusal(cut, 600), HasSubstr("the file ends at byte 600"));
}

TEST(TokenLayout, MegatronIndex) {
  const TokenLayout layout = read_megatron_layout(megatron_index(), 12, "f");
  EXPECT_EQ(layout.count, 6);
  EXPECT_EQ(layout.element, TokenElement::u16);
  EXPECT_THAT(layout.document_starts, ElementsAre(0, 5));
  EXPECT_EQ(read_megatron_layout(megatron_index(4, 4), 24, "f").element, TokenElement::i32);
}

TEST(TokenLayout, MegatronRefusals) {
  const auto refusal = [](const std::function<void(Bytes&)>& spoil, std::uint64_t bin = 12) {
    Bytes index = megatron_index();
    spoil(index);
    return error_of([&] { static_cast<void>(read_megatron_layout(index, bin, "f.idx")); });
  };
  const auto set = [](Bytes& index, std::size_t at, auto value) {
    std::memcpy(index.data() + at, &value, sizeof(value));
  };
  EXPECT_THAT(refusal([&](Bytes& b) { b[0] = std::byte{0}; }), HasSubstr("at byte 0"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 9, std::uint64_t{2}); }), HasSubstr("at byte 9"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 17, std::uint8_t{6}); }), HasSubstr("at byte 17"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 18, std::uint64_t{1} << 61); }), HasSubstr("at byte 18"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 26, ~std::uint64_t{0}); }), HasSubstr("at byte 18"));
  EXPECT_THAT(refusal([&](Bytes& b) { b.pop_back(); }), HasSubstr("at byte 18"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 34 + 4, std::int32_t{-1}); }), HasSubstr("at byte 38"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 34 + 4, std::int32_t{2}); }), HasSubstr("at byte"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 46 + 8, std::int64_t{6}); }), HasSubstr("at byte 54"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 70, std::int64_t{1}); }), HasSubstr("at byte 70"));
  EXPECT_THAT(refusal([&](Bytes& b) { set(b, 86, std::int64_t{4}); }), HasSubstr("at byte 86"));
  EXPECT_THAT(refusal([&](Bytes& b) { b.resize(12); }), HasSubstr("at byte 9"));
  EXPECT_THAT(refusal([](Bytes&) {}, 14), HasSubstr("the .bin file holds 7"));
  EXPECT_THAT(refusal([](Bytes&) {}, 11), HasSubstr("11 bytes"));
}

TEST(TokenLayout, DocumentStartsAscendFromZero) {
  const auto refusal = [](std::vector<std::int64_t> starts) {
    return error_of([&] { check_document_starts(starts, 5, "f"); });
  };
  EXPECT_EQ(refusal({}), "no error");
  EXPECT_EQ(refusal({0, 2, 4}), "no error");
  EXPECT_THAT(refusal({1}), HasSubstr("document 0"));
  EXPECT_THAT(refusal({0, 2, 2}), HasSubstr("document 2"));
  EXPECT_THAT(refusal({0, 5}), HasSubstr("document 1"));
  EXPECT_THAT(refusal({0, -1}), HasSubstr("document 1"));
}

// Whatever bytes come: a layout inside the file, or a DataError.
TEST(TokenLayoutFuzz, MutatedHeaders) {
  const std::array<Bytes, 2> seeds{megatron_index(), llmc_head(20240520, 1, 6)};
  int accepted = 0, refused = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    Bytes bytes = seeds[i % 2];
    const PhiloxBlock random = philox(17, i);
    for (std::uint32_t k = 0; k < 1 + random[0] % 3; ++k) {
      const PhiloxBlock change = philox(18, i, k);
      const std::size_t at = change[0] % (i % 2 == 0 ? bytes.size() : 16);
      constexpr std::array<std::uint8_t, 5> edges{0, 1, 0x7f, 0x80, 0xff};
      bytes[at] = change[1] % 2 == 0 ? std::byte{edges[change[2] % 5]} : static_cast<std::byte>(change[2] & 0xff);
    }
    if (random[1] % 8 == 0) bytes.resize(random[2] % (bytes.size() + 1));
    const std::uint64_t size = random[3] % 4 == 0 ? random[2] % 4096 : (i % 2 == 0 ? 12U : 1036U);
    try {
      const TokenLayout layout =
          i % 2 == 0 ? read_megatron_layout(bytes, size, "f") : read_llmc_layout(bytes, size, "f");
      ASSERT_GE(layout.count, 0);
      ASSERT_LE(layout.offset + static_cast<std::uint64_t>(layout.count) * size_of(layout.element), size);
      check_document_starts(layout.document_starts, layout.count, "f");
      ++accepted;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 50000);
}

std::vector<std::int32_t> all_tokens(const TokenSource& source) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

TEST(TokenFiles, EachFormatIsRecognisedAndRead) {
  const ScratchFolder folder;
  const auto nanogpt = open_token_source(folder.write_values<std::uint16_t>("n.bin", {1, 2, 65535}), nullptr);
  EXPECT_EQ(nanogpt->format(), "uint16 tokens");
  EXPECT_THAT(all_tokens(*nanogpt), ElementsAre(1, 2, 65535));
  EXPECT_EQ(nanogpt->place_of(2), "token 2 (byte 4)");

  Bytes llmc = llmc_head(20240801, 7, 2);
  put(llmc, std::uint32_t{100000});
  put(llmc, std::uint32_t{7});
  const auto wide = open_token_source(folder.write("l.bin", llmc), nullptr);
  EXPECT_THAT(all_tokens(*wide), ElementsAre(100000, 7));
  EXPECT_EQ(wide->place_of(1), "token 1 (byte 1028)");

  folder.write_values<std::uint16_t>("m.bin", {1, 2, 3, 4, 5, 6});
  folder.write("m.idx", megatron_index());
  for (const char* name : {"m.bin", "m.idx", "m"}) {
    const auto megatron = open_token_source(folder / name, nullptr);
    EXPECT_EQ(megatron->format(), "Megatron tokens") << name;
    EXPECT_THAT(all_tokens(*megatron), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(megatron->document_starts(), ElementsAre(0, 5));
  }
}

TEST(TokenFiles, Refusals) {
  const ScratchFolder folder;
  const auto refusal = [](const std::filesystem::path& path) {
    return error_of([&] { static_cast<void>(open_token_source(path, nullptr)); });
  };
  EXPECT_THAT(refusal(folder / "none.bin"), HasSubstr("none.bin"));
  EXPECT_THAT(refusal(folder / "."), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal(folder.write("a.csv", "x")), HasSubstr("unknown kind"));
  EXPECT_THAT(refusal(folder.write("a.h5", "x")), HasSubstr("not an HDF5 file"));
  EXPECT_THAT(refusal(folder.write("a.bin", "x")), HasSubstr("at byte 0"));
  folder.write("b.idx", "TNTIDX");
  EXPECT_THAT(refusal(folder.write("b.bin", "xx")), HasSubstr("b.idx"));
}

TEST(TokenFiles, BadIdsAreNamedWithTheirPlace) {
  const ScratchFolder folder;
  Bytes llmc = llmc_head(20240801, 7, 2);
  put(llmc, std::uint32_t{5});
  put(llmc, std::uint32_t{0x80000000});
  const auto source = open_token_source(folder.write("l.bin", llmc), nullptr);
  EXPECT_THAT(error_of([&] { all_tokens(*source); }), HasSubstr("l.bin: token 1 (byte 1028) has id 2147483648"));

  std::vector<std::uint16_t> ids(200000, 9);
  ids[150000] = 300;
  const auto scanned = open_token_source(folder.write_values("n.bin", ids), nullptr);
  EXPECT_EQ(error_of([&] { check_token_ids(*scanned, 301); }), "no error");
  EXPECT_THAT(error_of([&] { check_token_ids(*scanned, 300); }), HasSubstr("token 150000 (byte 300000) has id 300"));
}

TEST(TokenFiles, AFileCutWhileInUseIsAnError) {
  const ScratchFolder folder;
  const auto path = folder.write_values<std::uint16_t>("n.bin", std::vector<std::uint16_t>(1000, 1));
  const auto source = open_token_source(path, nullptr);
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(error_of([&] { all_tokens(*source); }), HasSubstr("at byte 100"));
}

}  // namespace
}  // namespace lamina
