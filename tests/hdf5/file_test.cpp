#include "support/temporary_folder.hpp"

#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>

#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/hdf5/file.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamina {
namespace {

using hdf5::Element;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

class Hdf5File : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "file.h5";
};

TEST_F(Hdf5File, GivesBackGroupsAttributesAndData) {
  const std::vector<float> floats{1.5f, -2.0f, 3.25f};
  const std::vector<std::uint16_t> words{1, 65535};
  {
    hdf5::File file = hdf5::File::create(path_);
    hdf5::Group group = file.create_group("layers.0");
    group.write_attribute("text", "h\xc3\xa9llo");
    group.write_attribute("empty", "");
    group.write_attribute("number", std::int64_t{-7});
    group.create_dataset("floats", Element::f32, 3).write(0, std::span(floats));
    group.create_dataset("words", Element::u16, 2).write(0, std::span(words));
    group.create_dataset("none", Element::i64, 0).close();
    group.write_text("long", std::string(100'000, 'x'));
    group.close();
    file.close();
  }
  const hdf5::File file = hdf5::File::open_read_only(path_);
  EXPECT_THAT(file.children(), ElementsAre("layers.0"));
  const hdf5::Group group = file.open_group("layers.0");
  EXPECT_EQ(group.read_text_attribute("text"), "h\xc3\xa9llo");
  EXPECT_EQ(group.read_text_attribute("empty"), "");
  EXPECT_EQ(group.read_int_attribute("number"), -7);
  EXPECT_THAT(group.attributes(), ElementsAre("empty", "number", "text"));
  EXPECT_EQ(group.attribute_text("number"), "-7");
  EXPECT_TRUE(file.attributes().empty());
  EXPECT_EQ(file.kind_of("layers.0"), hdf5::Group::Kind::group);
  EXPECT_EQ(group.kind_of("none"), hdf5::Group::Kind::dataset);
  EXPECT_TRUE(group.open_dataset("none").attributes().empty());
  EXPECT_THAT(group.children(), ElementsAre("floats", "long", "none", "words"));
  std::vector<float> read(2);
  group.open_dataset("floats").read(1, std::span(read));
  EXPECT_THAT(read, ElementsAre(-2.0f, 3.25f));
  std::vector<std::uint16_t> read_words(2);
  group.open_dataset("words").read(0, std::span(read_words));
  EXPECT_EQ(read_words, words);
  EXPECT_EQ(group.open_dataset("none").elements(), 0);
  EXPECT_EQ(group.read_text("long"), std::string(100'000, 'x'));
}

TEST_F(Hdf5File, ReadsAndWritesAnyRangeOfAnyShape) {
  const std::vector<std::vector<std::int64_t>> shapes{{}, {7}, {3, 5}, {2, 3, 4}, {1, 4, 1, 3}, {2, 1, 2, 2, 3}};
  for (const auto& shape : shapes) {
    hdf5::File file = hdf5::File::create(path_);
    hdf5::Dataset dataset = file.create_dataset("data", Element::i32, shape);
    const std::int64_t n = dataset.elements();
    std::vector<std::int32_t> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 100);
    for (std::int64_t first = 0; first < n; first += 3) {  // pieces that end inside rows
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(3, n - first));
      dataset.write(first, std::span<const std::int32_t>(values).subspan(static_cast<std::size_t>(first), count));
    }
    for (std::int64_t first = 0; first < n; ++first) {
      for (std::int64_t count = 1; first + count <= n; ++count) {
        std::vector<std::int32_t> part(static_cast<std::size_t>(count));
        dataset.read(first, std::span(part));
        ASSERT_TRUE(std::equal(part.begin(), part.end(), values.begin() + first)) << first << " " << count;
      }
    }
    dataset.close();
    file.close();
  }
}

TEST_F(Hdf5File, KeepsBf16AsItIs) {
  const std::vector<std::uint16_t> bits{0x3f80, 0xc000, 0x7fc1};
  {
    hdf5::File file = hdf5::File::create(path_);
    hdf5::Dataset dataset = file.create_dataset("b", Element::bf16, 3);
    dataset.write_raw(0, 3, bits.data(), Element::bf16);
    dataset.close();
    file.close();
  }
  const hdf5::File file = hdf5::File::open_read_only(path_);
  const hdf5::Dataset dataset = file.open_dataset("b");
  EXPECT_EQ(dataset.element(), Element::bf16);
  std::vector<std::uint16_t> read(3);
  dataset.read_raw(0, 3, read.data(), Element::bf16);
  EXPECT_EQ(read, bits);
  EXPECT_THAT(message_of([&] { dataset.read(0, std::span(read)); }), HasSubstr("elements are BF16, not U16"));
}

TEST_F(Hdf5File, StoresDataWhereItSays) {
  const std::vector<float> values{1, 2, 3, 4};
  std::uint64_t offset = 0;
  {
    hdf5::File file = hdf5::File::create(path_);
    hdf5::Dataset dataset = file.create_dataset("d", Element::f32, 4);
    dataset.write(0, std::span(values));
    offset = dataset.file_offset().value();
    dataset.close();
    file.close();
  }
  const std::string bytes = read_file(path_);
  ASSERT_LE(offset + 16, bytes.size());
  EXPECT_EQ(std::memcmp(bytes.data() + offset, values.data(), 16), 0);
}

TEST_F(Hdf5File, NamesFileAttemptAndReason) {
  EXPECT_THAT(message_of([&] { static_cast<void>(hdf5::File::open_read_only(path_)); }),
              AllOf(HasSubstr("cannot open " + path_.string()), HasSubstr("No such file")));
  std::ofstream(path_) << "not HDF5 at all";
  EXPECT_THAT(message_of([&] { static_cast<void>(hdf5::File::open_read_only(path_)); }), HasSubstr("signature"));
  EXPECT_FALSE(hdf5::File::looks_like_hdf5(path_));
  hdf5::File file = hdf5::File::create(path_);
  EXPECT_THAT(message_of([&] { static_cast<void>(file.open_dataset("gone")); }), HasSubstr("file.h5:/gone"));
  hdf5::Dataset dataset = file.create_dataset("d", Element::f32, 4);
  std::vector<float> five(5);
  EXPECT_THAT(message_of([&] { dataset.read(0, std::span(five)); }), HasSubstr("outside its 4"));
  EXPECT_THAT(message_of([&] { dataset.read(-1, std::span(five).first(1)); }), HasSubstr("outside"));
  EXPECT_THAT(message_of([&] { static_cast<void>(dataset.read_text_attribute("none")); }),
              HasSubstr("attribute \"none\""));
  EXPECT_THAT(message_of([&] { static_cast<void>(file.create_group("d")); }), HasSubstr("create group"));
}

TEST_F(Hdf5File, RefusesToCloseAFileWithOpenObjects) {
  hdf5::File file = hdf5::File::create(path_);
  const hdf5::Group group = file.create_group("g");
  EXPECT_THAT(message_of([&] { file.close(); }), HasSubstr("cannot close"));
}

TEST_F(Hdf5File, PrintsNothingItself) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(static_cast<void>(hdf5::File::open_read_only(folder_ / "none")), DataError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Hdf5File, OpensWhileAnotherProcessHasItOpen) {  // file locks are off
  hdf5::File file = hdf5::File::create(path_);
  file.flush();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      static_cast<void>(hdf5::File::open_read_only(path_));
    } catch (const DataError& error) {
      ::_exit(std::string(error.what()).find("lock") == std::string::npos ? 0 : 1);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lamina
