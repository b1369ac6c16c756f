#include "pre_tokenizer_stages.hpp"

#include "normalizer.hpp"
#include "split_behavior.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <fmt/format.h>

namespace lamina {

namespace {

class RegexStage final : public PreTokenizerStage {
 public:
  RegexStage(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  void split(Piece piece, RegexScratch& scratch, std::string&, PieceSink& sink) const override {
    SplitEmitter emitter(piece, behavior_, invert_, sink);
    for_each_match(regex_, piece.text, scratch, [&](std::size_t begin, std::size_t end) { emitter.match(begin, end); });
    emitter.finish();
  }

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

// Splits at the characters that a predicate holds for.
class CharacterStage final : public PreTokenizerStage {
 public:
  using Predicate = bool (*)(char32_t);
  CharacterStage(Predicate predicate, SplitBehavior behavior) : predicate_(predicate), behavior_(behavior) {}
  void split(Piece piece, RegexScratch&, std::string&, PieceSink& sink) const override {
    SplitEmitter emitter(piece, behavior_, false, sink);
    for (std::size_t at = 0; at < piece.text.size();) {
      const utf8::Decoded decoded = utf8::decode_first(piece.text.substr(at));
      if (predicate_(decoded.code)) emitter.match(at, at + decoded.size);
      at += decoded.size;
    }
    emitter.finish();
  }

 private:
  Predicate predicate_;
  SplitBehavior behavior_;
};

// Runs of word characters, and runs of what is neither word nor white space (the expression \w+|[^\w\s]+).
class WhitespaceStage final : public PreTokenizerStage {
 public:
  void split(Piece piece, RegexScratch&, std::string&, PieceSink& sink) const override {
    SplitEmitter emitter(piece, SplitBehavior::removed, true, sink);
    std::size_t begin = 0;
    Kind kind = Kind::space;
    for (std::size_t at = 0; at <= piece.text.size();) {
      const bool over = at == piece.text.size();
      const utf8::Decoded decoded = over ? utf8::Decoded{0, 1} : utf8::decode_first(piece.text.substr(at));
      const Kind now = over ? Kind::space : kind_of(decoded.code);
      if (now != kind) {
        if (kind != Kind::space) emitter.match(begin, at);
        begin = at;
        kind = now;
      }
      at += decoded.size;
    }
    emitter.finish();
  }

 private:
  enum class Kind { word, space, other };
  static Kind kind_of(char32_t code) {
    if (unicode::is_word(code)) return Kind::word;
    return unicode::is_white_space(code) ? Kind::space : Kind::other;
  }
};

class MetaspaceStage final : public PreTokenizerStage {
 public:
  enum class Prepend { always, first, never };
  MetaspaceStage(std::string replacement, Prepend prepend, bool split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(split) {}
  void split(Piece piece, RegexScratch&, std::string& buffer, PieceSink& sink) const override {
    buffer.clear();
    const bool marked = piece.text.starts_with(' ') || piece.text.starts_with(replacement_);
    if (!marked && (prepend_ == Prepend::always || (prepend_ == Prepend::first && piece.at_start))) {
      buffer = replacement_;
    }
    for (const char c : piece.text) {
      if (c == ' ') {
        buffer += replacement_;
      } else {
        buffer.push_back(c);
      }
    }
    const Piece rewritten{buffer, piece.at_start};
    if (!split_) return sink.take(rewritten);
    SplitEmitter emitter(rewritten, SplitBehavior::merged_with_next, false, sink);
    for (std::size_t at = buffer.find(replacement_); at != std::string::npos;
         at = buffer.find(replacement_, at + replacement_.size())) {
      emitter.match(at, at + replacement_.size());
    }
    emitter.finish();
  }

 private:
  std::string replacement_;
  Prepend prepend_;
  bool split_;
};

class PrefixSpaceStage final : public PreTokenizerStage {
 public:
  void split(Piece piece, RegexScratch&, std::string& buffer, PieceSink& sink) const override {
    if (piece.text.starts_with(' ')) return sink.take(piece);
    buffer.assign(1, ' ').append(piece.text);
    sink.take({buffer, piece.at_start});
  }
};

std::unique_ptr<PreTokenizerStage> parse_metaspace(const JsonNode& section) {
  section.only_keys({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  const std::string& replacement = section.at("replacement").character();
  const auto scheme = section.find("prepend_scheme");
  const std::string name = scheme ? scheme->string() : "always";
  using Prepend = MetaspaceStage::Prepend;
  Prepend prepend = name == "first" ? Prepend::first : name == "never" ? Prepend::never : Prepend::always;
  if (scheme && name != "always" && name != "first" && name != "never") {
    scheme->refuse(fmt::format("prepend scheme {} is not known", in_quotes(name)));
  }
  const auto add = section.find("add_prefix_space");
  if (add && !add->boolean() && prepend != Prepend::never) {
    add->refuse(fmt::format("false contradicts prepend_scheme {}", in_quotes(name)), "write prepend_scheme \"never\"");
  }
  return std::make_unique<MetaspaceStage>(replacement, prepend, section.flag("split", true));
}

}  // namespace

std::unique_ptr<PreTokenizerStage> make_prefix_space_stage() { return std::make_unique<PrefixSpaceStage>(); }

std::unique_ptr<PreTokenizerStage> make_gpt2_stage() {
  return std::make_unique<RegexStage>(
      Regex("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"),
      SplitBehavior::isolated, false);
}

std::unique_ptr<PreTokenizerStage> parse_pre_tokenizer_stage(const JsonNode& section) {
  const std::string& type = section.at("type").string();
  if (type == "Split") {
    section.only_keys({"type", "pattern", "behavior", "invert"});
    return std::make_unique<RegexStage>(parse_pattern(section.at("pattern")),
                                        parse_split_behavior(section.at("behavior")), section.at("invert").boolean());
  }
  if (type == "Digits") {
    section.only_keys({"type", "individual_digits"});
    const bool single = section.at("individual_digits").boolean();
    return std::make_unique<CharacterStage>(unicode::is_numeric,
                                            single ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "Punctuation") {
    section.only_keys({"type", "behavior"});
    const auto behavior = section.find("behavior");
    return std::make_unique<CharacterStage>(unicode::is_punctuation,
                                            behavior ? parse_split_behavior(*behavior) : SplitBehavior::isolated);
  }
  if (type == "Metaspace") return parse_metaspace(section);
  if (type == "Whitespace" || type == "WhitespaceSplit") {
    section.only_keys({"type"});
    if (type == "Whitespace") return std::make_unique<WhitespaceStage>();
    return std::make_unique<CharacterStage>(unicode::is_white_space, SplitBehavior::removed);
  }
  section.at("type").refuse(fmt::format("pre_tokenizer {} is not implemented", in_quotes(type)),
                            "known: ByteLevel Split Digits Punctuation Whitespace WhitespaceSplit Metaspace Sequence");
}

}  // namespace lamina
