#include "pre_tokenizer.hpp"

#include "pre_tokenizer_stages.hpp"

#include <fmt/format.h>

namespace lamina {

namespace {

constexpr std::size_t max_stages = 64;  // each is a level of calls for each piece

}  // namespace

// Passes the parts of one stage on to the next.
class PreTokenizer::Link final : public PieceSink {
 public:
  Link(const PreTokenizer& owner, std::size_t next, PreTokenizerScratch& scratch, PieceSink& last)
      : owner_(owner), next_(next), scratch_(scratch), last_(last) {}
  void take(Piece piece) override { owner_.run(next_, piece, scratch_, last_); }

 private:
  const PreTokenizer& owner_;
  std::size_t next_;
  PreTokenizerScratch& scratch_;
  PieceSink& last_;
};

void PreTokenizer::split(Piece piece, PreTokenizerScratch& scratch, PieceSink& sink) const {
  if (piece.text.empty()) return;
  if (scratch.rewritten.size() < stages_.size()) scratch.rewritten.resize(stages_.size());
  run(0, piece, scratch, sink);
}

void PreTokenizer::run(std::size_t stage, Piece piece, PreTokenizerScratch& scratch, PieceSink& sink) const {
  if (stage == stages_.size()) return sink.take(piece);
  if (stage + 1 == stages_.size()) {
    return stages_[stage]->split(piece, scratch.regex, scratch.rewritten[stage], sink);
  }
  Link link(*this, stage + 1, scratch, sink);
  stages_[stage]->split(piece, scratch.regex, scratch.rewritten[stage], link);
}

void PreTokenizer::add(const JsonNode& section) {
  if (byte_level_) section.refuse("a pre_tokenizer after ByteLevel is not implemented");
  const std::string& type = section.at("type").string();
  if (type == "Sequence") {
    section.only_keys({"type", "pretokenizers"});
    const JsonNode list = section.at("pretokenizers");
    for (std::size_t i = 0; i < list.size(); ++i) add(list.at(i));
  } else if (type == "ByteLevel") {
    add_byte_level(section);
  } else if (stages_.size() == max_stages) {
    section.refuse(fmt::format("more than {} pre_tokenizers", max_stages));
  } else {
    stages_.push_back(parse_pre_tokenizer_stage(section));
  }
}

void PreTokenizer::add_byte_level(const JsonNode& section) {
  section.only_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  (void)section.flag("trim_offsets", true);  // offsets are not part of the ids
  if (section.at("add_prefix_space").boolean()) stages_.push_back(make_prefix_space_stage());
  if (section.flag("use_regex", true)) stages_.push_back(make_gpt2_stage());
  byte_level_ = true;
}

}  // namespace lamina
