#include "normalizer.hpp"

#include "unicode_normal_form.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <stdexcept>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t max_steps = 64;
constexpr std::size_t max_growth = 256;  // far above any normal form; stops chains of Replace that double the text

class NormalFormStep final : public NormalizerStep {
 public:
  explicit NormalFormStep(unicode::NormalForm form) : form_(form) {}
  bool apply(std::string& text, RegexScratch&) const override {
    unicode::normalize(text, form_);
    return true;
  }

 private:
  unicode::NormalForm form_;
};

class LowercaseStep final : public NormalizerStep {
 public:
  bool apply(std::string& text, RegexScratch&) const override {
    std::string out;
    out.reserve(text.size());
    for (std::string_view rest = text; !rest.empty();) {
      const utf8::Decoded decoded = utf8::decode_first(rest);
      rest.remove_prefix(decoded.size);
      // The one character whose lower case is two characters.
      if (decoded.code == 0x130) {
        out += "i\xCC\x87";
      } else {
        utf8::append(out, unicode::to_lower(decoded.code));
      }
    }
    text = std::move(out);
    return true;
  }
};

class StripStep final : public NormalizerStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}
  bool apply(std::string& text, RegexScratch&) const override {
    std::string_view rest = text;
    while (right_ && !rest.empty()) {
      const utf8::Decoded last = utf8::decode_last(rest);
      if (!unicode::is_white_space(last.code)) break;
      rest.remove_suffix(last.size);
    }
    while (left_ && !rest.empty()) {
      const utf8::Decoded first = utf8::decode_first(rest);
      if (!unicode::is_white_space(first.code)) break;
      rest.remove_prefix(first.size);
    }
    const bool at_start = rest.data() == text.data();
    text = std::string(rest);
    return at_start;
  }

 private:
  bool left_, right_;
};

class PrependStep final : public NormalizerStep {
 public:
  explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}
  bool apply(std::string& text, RegexScratch&) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return true;
  }

 private:
  std::string prefix_;
};

class ReplaceStep final : public NormalizerStep {
 public:
  ReplaceStep(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  bool apply(std::string& text, RegexScratch& scratch) const override {
    std::string out;
    std::size_t done = 0;
    for_each_match(pattern_, text, scratch, [&](std::size_t begin, std::size_t end) {
      out.append(text, done, begin - done).append(content_);
      done = end;
    });
    const bool at_start = !(done > 0 && out.empty());
    if (done == 0 && out.empty()) return true;
    out.append(text, done);
    text = std::move(out);
    return at_start;
  }

 private:
  Regex pattern_;
  std::string content_;
};

// Replace of one fixed text by another, the common case (" " by "\u2581"), without an expression.
class ReplaceTextStep final : public NormalizerStep {
 public:
  ReplaceTextStep(std::string text, std::string content) : text_(std::move(text)), content_(std::move(content)) {}
  bool apply(std::string& text, RegexScratch&) const override {
    std::size_t found = text.find(text_);
    if (found == std::string::npos) return true;
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t done = 0;
    for (; found != std::string::npos; found = text.find(text_, done)) {
      out.append(text, done, found - done).append(content_);
      done = found + text_.size();
    }
    const bool at_start = !out.empty();
    out.append(text, done);
    text = std::move(out);
    return at_start;
  }

 private:
  std::string text_, content_;
};

std::unique_ptr<NormalizerStep> parse_replace(const JsonNode& section) {
  section.only_keys({"type", "pattern", "content"});
  const JsonNode pattern = section.at("pattern");
  const std::string& content = section.at("content").short_string();
  if (const auto text = pattern.find("String"); text && !text->string().empty()) {
    pattern.only_keys({"String"});
    return std::make_unique<ReplaceTextStep>(text->string(), content);
  }
  return std::make_unique<ReplaceStep>(parse_pattern(pattern), content);
}

std::unique_ptr<NormalizerStep> parse_step(const JsonNode& section) {
  const std::string& type = section.at("type").string();
  using unicode::NormalForm;
  const auto form = [&](NormalForm value) {
    section.only_keys({"type"});
    return std::make_unique<NormalFormStep>(value);
  };
  if (type == "NFC") return form(NormalForm::nfc);
  if (type == "NFD") return form(NormalForm::nfd);
  if (type == "NFKC") return form(NormalForm::nfkc);
  if (type == "NFKD") return form(NormalForm::nfkd);
  if (type == "Lowercase") {
    section.only_keys({"type"});
    return std::make_unique<LowercaseStep>();
  }
  if (type == "Strip") {
    section.only_keys({"type", "strip_left", "strip_right"});
    return std::make_unique<StripStep>(section.at("strip_left").boolean(), section.at("strip_right").boolean());
  }
  if (type == "Prepend") {
    section.only_keys({"type", "prepend"});
    return std::make_unique<PrependStep>(section.at("prepend").short_string());
  }
  if (type == "Replace") return parse_replace(section);
  section.at("type").refuse(fmt::format("normalizer {} is not implemented", in_quotes(type)),
                            "known: NFC NFD NFKC NFKD Lowercase Strip Prepend Replace Sequence");
}

}  // namespace

Regex parse_pattern(const JsonNode& pattern) {
  pattern.only_keys({"String", "Regex"});
  if (pattern.raw().size() != 1) pattern.refuse("expected one of 'String' and 'Regex'");
  try {
    if (const auto text = pattern.find("String")) return Regex::literal(text->string());
    return Regex(pattern.at("Regex").string());
  } catch (const std::invalid_argument& error) {
    pattern.refuse(error.what());
  }
}

void Normalizer::add(const JsonNode& section) {
  if (section.at("type").string() != "Sequence") {
    if (steps_.size() == max_steps) section.refuse(fmt::format("more than {} normalizers", max_steps));
    steps_.push_back(parse_step(section));
    return;
  }
  section.only_keys({"type", "normalizers"});
  const JsonNode list = section.at("normalizers");
  for (std::size_t i = 0; i < list.size(); ++i) add(list.at(i));
}

bool Normalizer::apply(std::string& text, RegexScratch& scratch) const {
  bool at_start = true;
  const std::size_t limit = text.size() * max_growth + max_growth;
  for (const auto& step : steps_) {
    at_start = step->apply(text, scratch) && at_start;
    if (text.size() > limit) {
      throw DataError(one_line("cannot tokenize the text",
                               fmt::format("the normalizer makes more than {} bytes of one", max_growth),
                               "check the Replace steps of tokenizer.json"));
    }
  }
  return at_start;
}

}  // namespace lamina
