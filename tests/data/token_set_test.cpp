#include "data/scratch_folder.hpp"

#include <array>
#include <functional>

#include <lamina/base/file.hpp>
#include <lamina/data/token_set.hpp>
#include <lamina/data/token_source.hpp>
#include <lamina/hdf5/file.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using test::error_of;
using test::ScratchFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;
using Mask = std::vector<std::uint8_t>;

Ids all_tokens(const TokenSource& source) {
  Ids ids(static_cast<std::size_t>(source.size()));
  source.read(0, ids);
  return ids;
}

TEST(TokenSet, WhatIsWrittenIsRead) {
  const ScratchFolder folder;
  TokenSetWriter writer(folder / "t.h5", {65536, "some", "0123"});
  writer.append(Ids{1, 2});
  writer.begin_document();
  writer.begin_document();
  writer.append(Ids{});
  writer.append(Ids{65535});
  writer.append(Ids{4});
  writer.begin_document();
  writer.finish();
  EXPECT_EQ(writer.tokens(), 4);
  EXPECT_EQ(writer.documents(), 2);
  const auto source = open_token_source(folder / "t.h5", nullptr);
  EXPECT_EQ(source->format(), "HDF5 token set");
  EXPECT_THAT(all_tokens(*source), ElementsAre(1, 2, 65535, 4));
  EXPECT_THAT(source->document_starts(), ElementsAre(0, 2));
  EXPECT_EQ(source->declared_vocab(), 65536);
  EXPECT_EQ(source->tokenizer_name(), "some");
  EXPECT_EQ(source->tokenizer_hash(), "0123");
  EXPECT_FALSE(source->has_loss_mask());
}

TEST(TokenSet, WideIdsAndALossMask) {
  const ScratchFolder folder;
  {
    TokenSetWriter writer(folder / "t.h5", {200000, "some", ""});
    writer.append(Ids{199999, 2, 3}, Mask{0, 1, 1});
    writer.finish();
  }
  EXPECT_THAT(folder.names(), ElementsAre("t.h5"));
  const auto source = open_token_source(folder / "t.h5", nullptr);
  EXPECT_THAT(all_tokens(*source), ElementsAre(199999, 2, 3));
  ASSERT_TRUE(source->has_loss_mask());
  Mask mask(2);
  source->read_loss_mask(0, mask);
  EXPECT_THAT(mask, ElementsAre(0, 1));
}

TEST(TokenSet, ManyTokensOverSeveralBlocks) {
  const ScratchFolder folder;
  TokenSetWriter writer(folder / "t.h5", {70000, "some", ""});
  Ids expected;
  for (std::int32_t i = 0; i < 700000; ++i) expected.push_back(i % 70000);
  for (std::size_t i = 0; i < expected.size(); i += 1000) {
    writer.append(std::span(expected).subspan(i, 1000));
    writer.begin_document();
  }
  writer.finish();
  const auto source = open_token_source(folder / "t.h5", nullptr);
  EXPECT_EQ(all_tokens(*source), expected);
  EXPECT_EQ(source->document_starts().size(), 700U);
}

TEST(TokenSet, AnUnfinishedWriterLeavesTheOldFile) {
  const ScratchFolder folder;
  folder.write("t.h5", "old");
  {
    TokenSetWriter writer(folder / "t.h5", {10, "some", ""});
    writer.append(Ids{1}, Mask{1});
  }
  EXPECT_THAT(folder.names(), ElementsAre("t.h5"));
  EXPECT_EQ(std::filesystem::file_size(folder / "t.h5"), 3U);
  TokenSetWriter empty(folder / "t.h5", {10, "some", ""});
  EXPECT_THAT(error_of([&] { empty.finish(); }), HasSubstr("no tokens"));
  EXPECT_EQ(std::filesystem::file_size(folder / "t.h5"), 3U);
  EXPECT_THAT(error_of([&] { TokenSetWriter(folder / "no/t.h5", {10, "", ""}); }), HasSubstr("cannot create"));
}

class BrokenTokenSet : public testing::Test {
 protected:
  std::string refusal(const std::function<void(hdf5::File&)>& fill) const {
    const auto path = folder_ / "t.h5";
    {
      hdf5::File file = hdf5::File::create(path);
      fill(file);
      file.close();
    }
    return error_of([&] { static_cast<void>(open_token_source(path, nullptr)); });
  }
  static void tokens(hdf5::File& file, const std::vector<std::uint16_t>& ids) {
    hdf5::Dataset dataset = file.create_dataset("tokens", hdf5::Element::u16, static_cast<std::int64_t>(ids.size()));
    dataset.write<std::uint16_t>(0, ids);
    dataset.close();
  }
  static void documents(hdf5::File& file, const std::vector<std::int64_t>& starts) {
    hdf5::Dataset dataset =
        file.create_dataset("documents", hdf5::Element::i64, static_cast<std::int64_t>(starts.size()));
    dataset.write<std::int64_t>(0, starts);
    dataset.close();
  }
  ScratchFolder folder_;
};

TEST_F(BrokenTokenSet, IsRefused) {
  EXPECT_EQ(refusal([](hdf5::File& f) { tokens(f, {1, 2}); }), "no error");
  EXPECT_THAT(refusal([](hdf5::File&) {}), HasSubstr("no dataset 'tokens'"));
  EXPECT_THAT(refusal([](hdf5::File& f) { f.create_dataset("tokens", hdf5::Element::f32, 2).close(); }),
              HasSubstr("F32"));
  EXPECT_THAT(refusal([](hdf5::File& f) {
                f.create_dataset("tokens", hdf5::Element::u16, std::array<std::int64_t, 2>{2, 2}).close();
              }),
              HasSubstr("2 dimensions"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1, 2}), documents(f, {1}); }), HasSubstr("document 0"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1, 2}), documents(f, {0, 2}); }), HasSubstr("document 1"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1, 2}), documents(f, {0, 1, 1}); }), HasSubstr("documents"));
  EXPECT_THAT(
      refusal([](hdf5::File& f) { tokens(f, {1}), f.create_dataset("loss_mask", hdf5::Element::u8, 2).close(); }),
      HasSubstr("loss_mask"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1}), f.write_attribute("version", std::int64_t{3}); }),
              HasSubstr("version 3"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1}), f.write_attribute("vocab_size", std::int64_t{0}); }),
              HasSubstr("vocab_size 0"));
}

// A set without checksums is fine, one that has lost a part of them is not.
TEST_F(BrokenTokenSet, MissingChecksumsAreRefused) {
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1}), f.write_attribute("version", std::int64_t{2}); }),
              HasSubstr("no attribute 'checksum'"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1}), f.write_attribute("checksum", "0"); }),
              HasSubstr("no attribute 'checksum_block_bytes'"));
  const auto seal = [](hdf5::File& f, std::int64_t block) {
    f.write_attribute("checksum", "0");
    f.write_attribute("checksum_block_bytes", block);
  };
  EXPECT_THAT(refusal([&](hdf5::File& f) { tokens(f, {1}), seal(f, 4); }), HasSubstr("checksum_block_bytes 4"));
  EXPECT_THAT(refusal([&](hdf5::File& f) { tokens(f, {1}), seal(f, 4096); }),
              HasSubstr("no dataset 'tokens_checksums'"));
  EXPECT_THAT(refusal([&](hdf5::File& f) {
                tokens(f, {1}), seal(f, 4096), f.create_dataset("tokens_checksums", hdf5::Element::u64, 2).close();
              }),
              HasSubstr("one uint64 for each of 1 blocks"));
  EXPECT_THAT(refusal([&](hdf5::File& f) {
                tokens(f, {1}), seal(f, 4096), f.create_dataset("tokens_checksums", hdf5::Element::u64, 1).close();
              }),
              HasSubstr("its checksum is wrong"));
}

struct Contents {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> mask;
  std::vector<std::int64_t> starts;
  std::string facts;
  bool operator==(const Contents&) const = default;
};

Contents contents_of(const std::filesystem::path& path) {
  const auto source = open_token_source(path, nullptr);
  Contents out{all_tokens(*source), std::vector<std::uint8_t>(static_cast<std::size_t>(source->size())), {}, ""};
  source->read_loss_mask(0, out.mask);
  out.starts.assign(source->document_starts().begin(), source->document_starts().end());
  out.facts = source->tokenizer_name() + "|" + source->tokenizer_hash() + "|" +
              std::to_string(source->declared_vocab().value_or(0));
  return out;
}

// No damage to a byte changes what is trained on: it is found, or it lies where nothing is read.
TEST_F(BrokenTokenSet, NoFlippedByteChangesTheData) {
  const auto path = folder_ / "t.h5";
  TokenSetWriter writer(path, {70000, "some", "0123"});
  for (std::int32_t document = 0; document < 40; ++document) {
    writer.append(Ids{document * 100, 69999, 3}, Mask{0, 1, 1});
    writer.begin_document();
  }
  writer.finish();
  const Contents right = contents_of(path);
  std::string bytes = read_file(path);
  const std::size_t data_bytes = 40 * 3 * 5 + 40 * 8;
  std::size_t found = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const char old = bytes[at];
    bytes[at] = static_cast<char>(old ^ (1 << (at / 3) % 8));
    folder_.write("flipped.h5", bytes);
    bytes[at] = old;
    try {
      EXPECT_EQ(contents_of(folder_ / "flipped.h5"), right) << "byte " << at;
    } catch (const DataError&) {
      ++found;
    }
  }
  EXPECT_GE(found, data_bytes / 3);
}

TEST_F(BrokenTokenSet, DamageInOneBlockIsFoundWhereItIsRead) {
  const auto path = folder_ / "t.h5";
  TokenSetWriter writer(path, {70000, "some", ""});
  writer.append(Ids(100000, 7), Mask(100000, 0));
  writer.finish();
  const auto source = open_token_source(path, nullptr);
  const std::string place = source->place_of(50000);
  const std::size_t byte = std::stoul(place.substr(place.find("(byte ") + 6));
  std::string bytes = read_file(path);
  bytes[byte] = 8;
  folder_.write("t.h5", bytes);
  Ids window(1000);
  source->read(90000, window);
  EXPECT_EQ(window, Ids(1000, 7));
  const auto damaged = AllOf(HasSubstr("t.h5:/tokens: bytes"), HasSubstr("are damaged"));
  EXPECT_THAT(error_of([&] { source->read(49900, window); }), damaged);
  EXPECT_THAT(error_of([&] { source->read(50500, window); }), damaged);  // the same block
}

TEST_F(BrokenTokenSet, TruncatedFilesAreRefusedOrReadAsWritten) {
  const auto path = folder_ / "t.h5";
  TokenSetWriter writer(path, {70000, "some", ""});
  writer.append(Ids(3000, 7), Mask(3000, 1));
  writer.finish();
  const std::uint64_t size = std::filesystem::file_size(path);
  for (std::uint64_t cut = 0; cut < size; cut += 101) {
    std::filesystem::copy_file(path, folder_ / "cut.h5", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder_ / "cut.h5", cut);
    EXPECT_THAT(error_of([&] { static_cast<void>(open_token_source(folder_ / "cut.h5", nullptr)); }),
                HasSubstr("cut.h5"))
        << cut;
  }
}

}  // namespace
}  // namespace lamina
