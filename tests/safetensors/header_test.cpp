#include <lamina/base/error.hpp>
#include <lamina/safetensors/header.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string file_of(std::string_view json, std::size_t data_bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  file += json;
  file.append(data_bytes, '\1');
  return file;
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "F");
}

std::string refusal(std::string_view json, std::size_t data_bytes) {
  try {
    static_cast<void>(parse(file_of(json, data_bytes)));
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("F"), Not(HasSubstr("\n"))));
    return error.what();
  }
  return "accepted";
}

TEST(SafetensorsHeader, ReadsTensorsInTheOrderOfTheirBytes) {
  const auto header = parse(file_of(R"({"__metadata__": {"format": "pt"},
    "b": {"dtype": "BF16", "shape": [3], "data_offsets": [4, 10]},
    "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
    "ids": {"dtype": "I64", "shape": [1, 1], "data_offsets": [10, 18]},
    "none": {"dtype": "F16", "shape": [2, 0], "data_offsets": [10, 10]}}   )",
                                    18));
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].elements, 1);
  EXPECT_EQ(header.tensors[1].dtype, DType::bf16);
  EXPECT_EQ(header.tensors[2].name, "none");
  EXPECT_EQ(header.tensors[2].elements, 0);
  EXPECT_EQ(header.tensors[3].dtype, std::nullopt);
  EXPECT_EQ(header.tensors[3].dtype_name, "I64");
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_TRUE(parse(file_of(R"({"__metadata__": null})", 0)).metadata.empty());  // as the library reads it
}

TEST(SafetensorsHeader, RefusesWrongLengths) {
  EXPECT_THROW(static_cast<void>(parse("")), DataError);
  EXPECT_THROW(static_cast<void>(parse("1234567")), DataError);
  EXPECT_THROW(static_cast<void>(parse(std::string(8, '\xff') + "{}")), DataError);
  EXPECT_THROW(static_cast<void>(parse(file_of("{}", 0).substr(0, 9))), DataError);
  EXPECT_NO_THROW(static_cast<void>(parse(file_of("{}", 0))));
}

TEST(SafetensorsHeader, RefusesBrokenJson) {
  EXPECT_THAT(refusal("", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(refusal(" {}", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(refusal("{", 0), HasSubstr("JSON is broken"));
  EXPECT_THAT(refusal("{}x", 0), HasSubstr("JSON is broken"));
  EXPECT_THAT(refusal("{\"a\xff\": 1}", 0), HasSubstr("JSON is broken"));
  EXPECT_THAT(refusal(R"({"__metadata__": {"a": "1", "a": "2"}})", 0), HasSubstr("'a' is given twice"));
  EXPECT_THAT(refusal(R"({"a": {"dtype":"U8","shape":[0],"data_offsets":[0,0]}, "a": 3})", 0), HasSubstr("twice"));
  EXPECT_THAT(refusal("{\"a\": " + std::string(100'000, '['), 0), HasSubstr("nested deeper"));
  EXPECT_THAT(refusal(R"({"__metadata__": 3})", 0), HasSubstr("not an object"));
  EXPECT_THAT(refusal(R"({"__metadata__": {"a": 3}})", 0), HasSubstr("not a text"));
}

TEST(SafetensorsHeader, RefusesWrongDescriptions) {
  EXPECT_THAT(refusal(R"({"w": 3})", 0), HasSubstr("tensor \"w\""));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[1]}})", 4), HasSubstr("\"data_offsets\" is missing"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4), HasSubstr("more than"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"Q4","shape":[1],"data_offsets":[0,4]}})", 4), HasSubstr("\"Q4\" is unknown"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4), HasSubstr("not a text"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), HasSubstr("not a size"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4), HasSubstr("not a size"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[true],"data_offsets":[0,4]}})", 4), HasSubstr("not a size"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4), HasSubstr("not a list"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("needs 8 bytes and it has 4"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
              HasSubstr("impossible"));
  EXPECT_THAT(refusal(R"({"w": {"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
              HasSubstr("impossible"));
}

TEST(SafetensorsHeader, RefusesWrongOffsets) {
  const auto one = [](const char* offsets) {
    return std::string(R"({"w": {"dtype":"U8","shape":[4],"data_offsets":)") + offsets + "}}";
  };
  EXPECT_EQ(refusal(one("[0,4]"), 4), "accepted");
  EXPECT_THAT(refusal(one("[0,4]"), 3), HasSubstr("cut off"));
  EXPECT_THAT(refusal(one("[0,4]"), 5), HasSubstr("last 1 bytes belong to no tensor"));
  EXPECT_THAT(refusal(one("[1,5]"), 5), HasSubstr("1 bytes before it"));
  EXPECT_THAT(refusal(one("[4,0]"), 4), HasSubstr("ends before it begins"));
  EXPECT_THAT(refusal(one("[0,4,8]"), 4), HasSubstr("not two offsets"));
  EXPECT_THAT(refusal(one("[-4,0]"), 4), HasSubstr("not two offsets"));
  EXPECT_THAT(refusal(one("[0,18446744073709551615]"), 4), HasSubstr("cut off"));
  EXPECT_THAT(refusal(R"({"a": {"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                          "b": {"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                      6),
              HasSubstr("overlaps"));
}

TEST(SafetensorsHeader, WrittenHeadersAreReadBack) {
  std::vector<SafetensorsEntry> tensors(2);
  tensors[0].name = "quote\" \xc3\xa9";
  tensors[0].dtype = DType::bf16;
  tensors[0].shape = {3, 2};
  tensors[1].name = "b";
  tensors[1].dtype = DType::f32;
  std::string file = make_safetensors_header(tensors);
  EXPECT_EQ(file.size() % 8, 0u);
  file.append(16, '\0');
  const auto header = parse(file);
  EXPECT_EQ(header.tensors[0].name, tensors[0].name);
  EXPECT_EQ(header.tensors[0].shape, tensors[0].shape);
  EXPECT_EQ(header.tensors[1].begin, 12u);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsIndex, RefusesWhatItMustNotFollow) {
  const auto refused = [](const char* text) -> std::string {
    try {
      static_cast<void>(parse_safetensors_index(text, "I"));
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused(R"({"metadata": {"x": [[1]]}, "weight_map": {"a": "f"}})"), "accepted");
  EXPECT_THAT(refused("[]"), HasSubstr("no weight_map"));
  EXPECT_THAT(refused(R"({"weight_map": []})"), HasSubstr("no weight_map"));
  EXPECT_THAT(refused(R"({"weight_map": {"a": 1}})"), HasSubstr("not a text"));
  EXPECT_THAT(refused(R"({"weight_map": {"a": "../f"}})"), HasSubstr("not a plain name"));
  EXPECT_THAT(refused(R"({"weight_map": {"a": "f\u0000g"}})"), HasSubstr("not a plain name"));
  EXPECT_THAT(refused(R"({"weight_map": {"a": "f", "a": "g"}})"), HasSubstr("twice"));
}

}  // namespace
}  // namespace lamina
