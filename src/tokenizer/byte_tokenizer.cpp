#include "byte_alphabet.hpp"

#include <lamina/tokenizer/byte_tokenizer.hpp>

#include <nlohmann/json.hpp>

namespace lamina {

std::string make_byte_tokenizer_json() {
  using Json = nlohmann::ordered_json;
  Json vocabulary = Json::object();
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocabulary[byte_alphabet::character(static_cast<unsigned char>(byte))] = byte;
  }
  const Json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const Json end = {{"id", 256},
                    {"content", byte_tokenizer_end_of_text},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}};
  const Json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false},
                      {"vocab", vocabulary},
                      {"merges", Json::array()}};
  const Json tokenizer = {{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens", Json::array({end})},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", byte_level},
                          {"decoder", byte_level},
                          {"model", model}};
  return tokenizer.dump(2) + "\n";
}

std::string make_byte_tokenizer_config_json() {
  const nlohmann::ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                         {"bos_token", byte_tokenizer_end_of_text},
                                         {"eos_token", byte_tokenizer_end_of_text},
                                         {"clean_up_tokenization_spaces", false}};
  return config.dump(2) + "\n";
}

}  // namespace lamina
