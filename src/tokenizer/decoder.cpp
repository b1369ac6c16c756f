#include "decoder.hpp"

#include "byte_alphabet.hpp"
#include "normalizer.hpp"
#include "utf8.hpp"

#include <charconv>
#include <optional>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t max_steps = 64;
constexpr std::size_t max_growth = 256;  // stops chains of Replace that double the text

std::string concatenate(const std::vector<std::string>& tokens, std::string_view between = {}) {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out.append(between);
    out.append(tokens[i]);
  }
  return out;
}

class ByteLevelStep final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const auto& token : tokens) bytes += byte_level_bytes(token);
    tokens = {utf8::replace_invalid(bytes)};
  }
};

class FuseStep final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& tokens) const override { tokens = {concatenate(tokens)}; }
};

class ReplaceDecoderStep final : public DecoderStep {
 public:
  ReplaceDecoderStep(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::vector<std::string>& tokens) const override {
    RegexScratch scratch;
    for (auto& token : tokens) {
      std::string out;
      std::size_t done = 0;
      if (!token.empty()) {
        for_each_match(pattern_, token, scratch, [&](std::size_t begin, std::size_t end) {
          out.append(token, done, begin - done).append(content_);
          done = end;
        });
      }
      token = out.append(token, done);
    }
  }

 private:
  Regex pattern_;
  std::string content_;
};

// The byte of a token like "<0x61>".
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  // A leading '+' is allowed by the library's number parser.
  std::string_view digits = token.substr(3, 2);
  if (digits.front() == '+') digits.remove_prefix(1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(value));
}

// Runs of tokens like "<0x61>" become bytes; a run that is not UTF-8 becomes one U+FFFD for each of its bytes.
class ByteFallbackStep final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (utf8::valid_prefix(bytes) == bytes.size()) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), std::string(utf8::replacement));
      }
      bytes.clear();
    };
    for (auto& token : tokens) {
      if (const auto byte = fallback_byte(token)) {
        bytes.push_back(*byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }
};

class StripDecoderStep final : public DecoderStep {
 public:
  StripDecoderStep(std::string content, std::int64_t start, std::int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (auto& token : tokens) {
      std::string_view rest = token;
      for (std::int64_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      for (std::int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class MetaspaceDecoderStep final : public DecoderStep {
 public:
  MetaspaceDecoderStep(std::string replacement, bool drop_first)
      : replacement_(std::move(replacement)), drop_first_(drop_first) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view space = i == 0 && drop_first_ ? "" : " ";
      std::string out;
      std::size_t done = 0;
      for (std::size_t at = tokens[i].find(replacement_); at != std::string::npos;
           at = tokens[i].find(replacement_, done)) {
        out.append(tokens[i], done, at - done).append(space);
        done = at + replacement_.size();
      }
      tokens[i] = out.append(tokens[i], done);
    }
  }

 private:
  std::string replacement_;
  bool drop_first_;
};

std::unique_ptr<DecoderStep> parse_metaspace(const JsonNode& section) {
  section.only_keys({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  const auto scheme = section.find("prepend_scheme");
  const std::string name = scheme ? scheme->string() : "always";
  if (name != "always" && name != "first" && name != "never") {
    scheme->refuse(fmt::format("prepend scheme {} is not known", in_quotes(name)));
  }
  if (!section.flag("add_prefix_space", name != "never") && name != "never") {
    section.at("add_prefix_space").refuse(fmt::format("false contradicts prepend_scheme {}", in_quotes(name)));
  }
  return std::make_unique<MetaspaceDecoderStep>(section.at("replacement").character(), name != "never");
}

std::unique_ptr<DecoderStep> parse_step(const JsonNode& section) {
  constexpr std::int64_t longest_strip = 1 << 20;
  const std::string& type = section.at("type").string();
  if (type == "ByteLevel") {
    section.only_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return std::make_unique<ByteLevelStep>();
  }
  if (type == "Replace") {
    section.only_keys({"type", "pattern", "content"});
    return std::make_unique<ReplaceDecoderStep>(parse_pattern(section.at("pattern")),
                                                section.at("content").short_string());
  }
  if (type == "Strip") {
    section.only_keys({"type", "content", "start", "stop"});
    return std::make_unique<StripDecoderStep>(section.at("content").character(),
                                              section.at("start").integer(0, longest_strip),
                                              section.at("stop").integer(0, longest_strip));
  }
  if (type == "Metaspace") return parse_metaspace(section);
  if (type == "ByteFallback" || type == "Fuse") {
    section.only_keys({"type"});
    if (type == "Fuse") return std::make_unique<FuseStep>();
    return std::make_unique<ByteFallbackStep>();
  }
  section.at("type").refuse(fmt::format("decoder {} is not implemented", in_quotes(type)),
                            "known: ByteLevel Sequence Replace ByteFallback Fuse Strip Metaspace");
}

}  // namespace

std::string byte_level_bytes(std::string_view token) {
  return byte_alphabet::bytes_of(token).value_or(std::string(token));
}

Decoder::Decoder(const JsonNode& section) : present_(true) {
  add(section);
  concatenates_bytes_ = steps_.size() == 1 && dynamic_cast<const ByteLevelStep*>(steps_.front().get()) != nullptr;
}

void Decoder::add(const JsonNode& section) {
  if (section.at("type").string() != "Sequence") {
    if (steps_.size() == max_steps) section.refuse(fmt::format("more than {} decoders", max_steps));
    steps_.push_back(parse_step(section));
    joins_bytes_ = joins_bytes_ || dynamic_cast<const ByteFallbackStep*>(steps_.back().get()) != nullptr;
    return;
  }
  section.only_keys({"type", "decoders"});
  const JsonNode list = section.at("decoders");
  for (std::size_t i = 0; i < list.size(); ++i) add(list.at(i));
}

bool Decoder::waits_for_next(std::string_view token) const { return joins_bytes_ && fallback_byte(token).has_value(); }

std::string Decoder::decode(std::vector<std::string> tokens) const {
  if (!present_) return concatenate(tokens, " ");
  const auto size_of = [](const std::vector<std::string>& list) {
    std::size_t size = 0;
    for (const auto& token : list) size += token.size();
    return size;
  };
  const std::size_t limit = (size_of(tokens) + tokens.size() + 1) * max_growth;
  for (const auto& step : steps_) {
    step->apply(tokens);
    if (size_of(tokens) > limit) {
      throw DataError(one_line("cannot decode ids",
                               fmt::format("the decoder makes more than {} bytes of one", max_growth),
                               "check the Replace steps of tokenizer.json"));
    }
  }
  return concatenate(tokens);
}

}  // namespace lamina
