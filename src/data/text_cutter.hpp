// Where a text may be cut so that the ids of its pieces, one after another, are the ids of the whole.
//
// A cut lies before a space between two ASCII letters ("foo| bar"). For byte-level tokenizers of the GPT-2 kind this
// changes nothing: their patterns end a word at such a space and begin the next with it, and no merge crosses words;
// the only rules that look further (runs of blanks, added tokens) are not met there. Tokenizers differ, so nothing is
// taken on trust: an added token with such a space in it rules cutting out, and every cut is checked by encoding the
// text around it whole and in two pieces. Where no cut stands (a tokenizer that puts a mark before every text, a text
// without spaces), the text is not cut.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <lamina/tokenizer/tokenizer.hpp>

namespace lamina::detail {

class TextCutter {
 public:
  // `tokenizer` outlives it.
  explicit TextCutter(const Tokenizer& tokenizer);
  // The last cut in the second half of `text`, whose beginning is the document's or an earlier cut; empty if there is
  // none.
  [[nodiscard]] std::optional<std::size_t> last_cut(std::string_view text);

 private:
  [[nodiscard]] bool stands(std::string_view text, std::size_t at);

  const Tokenizer* tokenizer_;
  TokenizerWorkspace workspace_;
  bool possible_ = true;
  std::vector<std::int32_t> whole_, pieces_;
};

}  // namespace lamina::detail
