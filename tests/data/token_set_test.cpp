#include "data/scratch_folder.hpp"

#include <array>
#include <functional>

#include <lamina/data/token_set.hpp>
#include <lamina/data/token_source.hpp>
#include <lamina/hdf5/file.hpp>

#include <gmock/gmock.h>

namespace lamina {
namespace {

using test::error_of;
using test::ScratchFolder;
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
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1}), f.write_attribute("version", std::int64_t{2}); }),
              HasSubstr("version 2"));
  EXPECT_THAT(refusal([](hdf5::File& f) { tokens(f, {1}), f.write_attribute("vocab_size", std::int64_t{0}); }),
              HasSubstr("vocab_size 0"));
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
