#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <functional>

#include <lamina/base/file.hpp>
#include <lamina/safetensors/reader.hpp>
#include <lamina/safetensors/writer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lamina {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) - 3.0f;
  return values;
}

class SafetensorsFiles : public testing::Test {
 protected:
  // Five tensors, 12 elements.
  std::vector<TensorToWrite> tensors(DType dtype) const {
    return {{"a", dtype, {2, 3}}, {"none", dtype, {0}}, {"b", dtype, {}}, {"c", dtype, {5}}, {"end", dtype, {3, 0}}};
  }
  void write(DType dtype, std::uint64_t limit, std::size_t piece) const {
    SafetensorsFolderWriter writer(folder_.path(), "model", tensors(dtype), limit, ExitCode::data);
    const std::vector<float> values = counted(12);
    for (std::size_t first = 0; first < values.size(); first += piece) {
      writer.write(std::span(values).subspan(first, std::min(piece, values.size() - first)));
    }
    writer.finish();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder_.path())) result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
  }
  SafetensorsFolder open() const { return SafetensorsFolder(folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(SafetensorsFiles, GiveBackWhatWasWrittenInAnyPieces) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::size_t piece : {1u, 4u, 12u}) {
      write(dtype, 1'000, piece);
      EXPECT_THAT(names(), ElementsAre("model.safetensors"));
      SafetensorsFolder folder = open();
      ASSERT_EQ(folder.places().size(), 5u);
      std::vector<float> values(3);
      folder.read(*folder.find("c"), 1, values);
      EXPECT_THAT(values, ElementsAre(5.0f, 6.0f, 7.0f));
      EXPECT_EQ(folder.bytes_read(), 3 * size_of(dtype));
      EXPECT_EQ(folder.entry(*folder.find("a")).shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(folder.find("d"), nullptr);
    }
  }
}

TEST_F(SafetensorsFiles, RoundToNearestEven) {
  SafetensorsFileWriter writer(folder_ / "model.safetensors", {{"w", DType::bf16, {4}}}, ExitCode::data);
  // Halfway cases: 1 + 2^-8 goes down to the even 1, 1 + 3 x 2^-8 goes up to the even 1 + 2^-6.
  writer.write(std::vector<float>{1.00390625f, 1.01171875f, 1.0039064f, -1.00390625f});
  writer.finish();
  SafetensorsFolder folder = open();
  std::vector<float> values(4);
  folder.read(*folder.find("w"), 0, values);
  EXPECT_THAT(values, ElementsAre(1.0f, 1.015625f, 1.0078125f, -1.0f));
}

TEST_F(SafetensorsFiles, SplitBySizeWithAnIndex) {
  write(DType::f32, 28, 5);  // a (24) | none b (4) c (20) needs 24 | end
  EXPECT_THAT(names(), ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                   "model.safetensors.index.json"));
  EXPECT_THAT(read_file(folder_ / "model.safetensors.index.json"), HasSubstr("\"total_size\": 48"));
  SafetensorsFolder folder = open();
  std::vector<float> values(6);
  folder.read(*folder.find("a"), 0, values);
  EXPECT_EQ(values, counted(6));
  EXPECT_EQ(folder.find("b")->file, 0u);
  EXPECT_EQ(folder.find("c")->file, 1u);
}

TEST_F(SafetensorsFiles, AreStrictAboutTheIndex) {
  write(DType::f32, 28, 12);
  const fs::path index = folder_ / "model.safetensors.index.json";
  const std::string text = read_file(index);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(index) << changed;
    return refusal([&] { static_cast<void>(open()); });
  };
  EXPECT_THAT(with("\"weight_map\": {", "\"weight_map\": {\"ghost\": \"model-00001-of-00002.safetensors\", "),
              HasSubstr("tensor \"ghost\", which it does not"));
  EXPECT_THAT(with("\"b\": \"model-00001", "\"b\": \"model-00002"), HasSubstr("tensor \"b\", which it does not"));
  EXPECT_THAT(with("    \"b\": \"model-00001-of-00002.safetensors\",\n", ""), HasSubstr("\"b\" is not in the index"));
  EXPECT_THAT(with("model-00001-of", "model-00003-of"), HasSubstr("No such file"));
  fs::remove(index);
  EXPECT_THAT(refusal([&] { static_cast<void>(open()); }), HasSubstr("holds neither model.safetensors nor"));
}

TEST_F(SafetensorsFiles, RefuseATruncatedFileAndOtherDtypes) {
  write(DType::f32, 1'000, 12);
  const fs::path path = folder_ / "model.safetensors";
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_THAT(refusal([&] { static_cast<void>(open()); }), HasSubstr("cut off"));
  const std::string json = R"({"ids":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})";
  std::ofstream(path) << static_cast<char>(json.size()) << std::string(7, '\0') << json << std::string(8, '\1');
  SafetensorsFolder folder = open();
  std::vector<float> value(1);
  EXPECT_THAT(refusal([&] { folder.read(*folder.find("ids"), 0, value); }), HasSubstr("dtype is I64"));
}

TEST_F(SafetensorsFiles, LeaveNothingBehindWhenNotFinished) {
  {
    SafetensorsFileWriter writer(folder_ / "model.safetensors", tensors(DType::f32), ExitCode::data);
    writer.write(counted(3));
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(SafetensorsFiles, ReportAFullDisk) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit file_size{500, 500};
    ::setrlimit(RLIMIT_FSIZE, &file_size);
    try {
      SafetensorsFileWriter writer(folder_ / "model.safetensors", {{"w", DType::f32, {1'000}}}, ExitCode::checkpoint);
      writer.write(counted(1'000));
      writer.finish();
    } catch (const Error& error) {
      ::_exit(error.code() == ExitCode::checkpoint ? 66 : 1);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 66);
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace lamina
