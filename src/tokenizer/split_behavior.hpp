// What becomes of the matches of a pattern when a text is split (the "behavior" of tokenizer.json).
#pragma once

#include "json_node.hpp"
#include "pre_tokenizer.hpp"

#include <cstddef>

namespace lamina {

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

[[nodiscard]] SplitBehavior parse_split_behavior(const JsonNode& name);

// Takes the matches and the gaps of one piece in order and emits parts by the behaviour.
class SplitEmitter {
 public:
  SplitEmitter(Piece piece, SplitBehavior behavior, bool invert, PieceSink& sink)
      : piece_(piece), behavior_(behavior), invert_(invert), sink_(&sink) {}

  // A match; what lies between it and the one before is a gap.
  void match(std::size_t begin, std::size_t end) {
    if (begin > done_) element(done_, begin, invert_);
    element(begin, end, !invert_);
    done_ = end;
  }
  // The gap at the end, and what is still held back.
  void finish();

 private:
  void element(std::size_t begin, std::size_t end, bool is_match) {
    if (behavior_ == SplitBehavior::isolated) return emit(begin, end);
    held_element(begin, end, is_match);
  }
  void held_element(std::size_t begin, std::size_t end, bool is_match);
  void hold(std::size_t begin, std::size_t end, bool is_match);
  void release();
  void emit(std::size_t begin, std::size_t end) {
    if (end > begin) sink_->take({piece_.text.substr(begin, end - begin), piece_.at_start && begin == 0});
  }

  Piece piece_;
  SplitBehavior behavior_;
  bool invert_;
  PieceSink* sink_;
  std::size_t done_ = 0;
  bool holding_ = false;
  bool held_is_match_ = false;
  std::size_t held_begin_ = 0, held_end_ = 0;
};

}  // namespace lamina
