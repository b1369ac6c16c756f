// Seeded mutations of good inputs: the parsers either refuse with a DataError or give back something that holds what
// they promise.
#include <random>

#include <lamina/base/error.hpp>
#include <lamina/safetensors/header.hpp>

#include <gtest/gtest.h>

namespace lamina {
namespace {

constexpr int inputs = 100'000;

// What a JSON parser may stumble over.
constexpr const char* tokens[] = {"\"",
                                  "{",
                                  "}",
                                  "[",
                                  "]",
                                  ",",
                                  ":",
                                  "0",
                                  "-1",
                                  "18446744073709551616",
                                  "9223372036854775807",
                                  "1e9",
                                  "null",
                                  "\\u0000",
                                  "\\ud800",
                                  "\xff",
                                  "\"F64\"",
                                  "\"shape\"",
                                  "\"__metadata__\":{}",
                                  "[0,0]"};

std::string good_file() {
  std::vector<SafetensorsEntry> tensors(3);
  tensors[0].name = "model.embed_tokens.weight";
  tensors[0].dtype = DType::bf16;
  tensors[0].shape = {4, 3};
  tensors[1].name = "model.norm.weight";
  tensors[1].dtype = DType::f32;
  tensors[1].shape = {2};
  tensors[2].name = "empty";
  tensors[2].dtype = DType::f16;
  tensors[2].shape = {0, 7};
  return make_safetensors_header(tensors) + std::string(32, '\x3f');
}

class Mutator {
 public:
  explicit Mutator(std::string good) : good_(std::move(good)) {}

  std::string next() {
    std::string text = good_;
    for (std::size_t changes = pick(4) + 1; changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t pick(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }

  void change(std::string& text) {
    if (text.empty()) text = "x";
    const std::size_t at = pick(text.size());
    switch (pick(6)) {
      case 0:
        text[at] = static_cast<char>(pick(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << pick(8)));
        break;
      case 2:
        text.erase(at, pick(8) + 1);
        break;
      case 3:
        text.insert(at, tokens[pick(std::size(tokens))]);
        break;
      case 4:
        text.insert(pick(text.size()), text.substr(at, pick(40)));
        break;
      default:
        text.resize(at);
        break;
    }
    if (pick(2) == 0 && text.size() >= 8) repair_length(text);
  }

  // Otherwise almost every change of size ends at the length check.
  void repair_length(std::string& text) {
    const std::size_t brace = text.rfind('}');
    if (brace == std::string::npos || brace < 8) return;
    const std::size_t length = brace + 1 - 8;
    for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  }

  std::string good_;
  std::mt19937_64 random_{20240607};
};

void check_promises(const SafetensorsHeader& header, std::size_t file_bytes) {
  std::uint64_t next = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    ASSERT_EQ(entry.begin, next);
    ASSERT_GE(entry.end, entry.begin);
    next = entry.end;
    std::int64_t product = 1;
    for (const std::int64_t size : entry.shape) product *= size;
    ASSERT_EQ(product, entry.elements);
    if (entry.dtype) {
      ASSERT_EQ(entry.end - entry.begin, static_cast<std::uint64_t>(product) * size_of(*entry.dtype));
    }
  }
  ASSERT_EQ(header.data_start + next, file_bytes);
}

TEST(SafetensorsFuzz, HeadersAreRefusedOrRight) {
  Mutator mutator(good_file());
  int accepted = 0;
  for (int i = 0; i < inputs; ++i) {
    const std::string file = mutator.next();
    try {
      const auto header = parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "F");
      ASSERT_NO_FATAL_FAILURE(check_promises(header, file.size())) << i;
      ++accepted;
    } catch (const DataError& error) {
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    }
  }
  EXPECT_GT(accepted, inputs / 100);  // the mutations reach beyond the first check
  EXPECT_LT(accepted, inputs / 2);
}

TEST(SafetensorsFuzz, IndexesAreRefusedOrRight) {
  Mutator mutator(R"({"metadata": {"total_size": 12}, "weight_map": {"model.a": "model-00001-of-00002.safetensors",
                      "model.b": "model-00002-of-00002.safetensors"}})");
  int accepted = 0;
  for (int i = 0; i < inputs; ++i) {
    try {
      for (const auto& [name, file] : parse_safetensors_index(mutator.next(), "I")) {
        ASSERT_EQ(file.find('/'), std::string::npos);
      }
      ++accepted;
    } catch (const DataError&) {
    }
  }
  EXPECT_GT(accepted, inputs / 100);
  EXPECT_LT(accepted, inputs / 2);
}

}  // namespace
}  // namespace lamina
