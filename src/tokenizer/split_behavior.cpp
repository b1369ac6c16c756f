#include "split_behavior.hpp"

#include <fmt/format.h>

namespace lamina {

SplitBehavior parse_split_behavior(const JsonNode& name) {
  const std::string& text = name.string();
  if (text == "Removed") return SplitBehavior::removed;
  if (text == "Isolated") return SplitBehavior::isolated;
  if (text == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (text == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (text == "Contiguous") return SplitBehavior::contiguous;
  name.refuse(fmt::format("behaviour {} is not known", in_quotes(text)));
}

void SplitEmitter::finish() {
  if (done_ < piece_.text.size()) element(done_, piece_.text.size(), invert_);
  done_ = piece_.text.size();
  release();
}

void SplitEmitter::held_element(std::size_t begin, std::size_t end, bool is_match) {
  const bool joins = holding_ && (behavior_ == SplitBehavior::contiguous             ? held_is_match_ == is_match
                                  : behavior_ == SplitBehavior::merged_with_previous ? !held_is_match_ && is_match
                                                                                     : held_is_match_ && !is_match);
  if (behavior_ == SplitBehavior::removed) {
    if (!is_match) emit(begin, end);
  } else if (!joins) {
    release();
    hold(begin, end, is_match);
  } else {
    held_end_ = end;
    // A run goes on; a pair is complete.
    if (behavior_ != SplitBehavior::contiguous) release();
  }
}

void SplitEmitter::hold(std::size_t begin, std::size_t end, bool is_match) {
  holding_ = true;
  held_is_match_ = is_match;
  held_begin_ = begin;
  held_end_ = end;
}

void SplitEmitter::release() {
  if (holding_) emit(held_begin_, held_end_);
  holding_ = false;
}

}  // namespace lamina
