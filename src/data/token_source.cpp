#include <algorithm>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/data/token_source.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {
constexpr std::int64_t scan_block = 1 << 16;
}

void TokenSource::read_loss_mask(std::int64_t first, std::span<std::uint8_t> out) const {
  check_range(first, out.size());
  std::fill(out.begin(), out.end(), std::uint8_t{1});
}

std::string TokenSource::place_of(std::int64_t token) const { return fmt::format("token {}", token); }

void TokenSource::check_range(std::int64_t first, std::size_t count) const {
  require(first >= 0 && first <= size_ && count <= static_cast<std::size_t>(size_ - first), "tokens inside the source");
}

namespace {

[[noreturn]] void refuse_id(const std::string& place, std::int32_t id, std::int64_t vocab, const Tokenizer* tokenizer) {
  std::string text;
  if (tokenizer != nullptr) {
    const std::int32_t one[] = {id};
    text = fmt::format(" ('{}')", tokenizer->decode(one, false));
  }
  throw DataError(one_line(fmt::format("{} has id {}{}", place, id, text),
                           fmt::format("the model's vocabulary ends at {}", vocab - 1),
                           "use data made with the model's tokenizer, or a model with a larger vocab_size"));
}

}  // namespace

void check_token_ids(const TokenSource& source, std::int64_t vocab, const Tokenizer* tokenizer) {
  if (source.declared_vocab() && *source.declared_vocab() <= vocab) return;
  std::vector<std::int32_t> block(static_cast<std::size_t>(std::min(scan_block, source.size())));
  for (std::int64_t done = 0; done < source.size(); done += scan_block) {
    const std::span<std::int32_t> ids =
        std::span(block).first(static_cast<std::size_t>(std::min(scan_block, source.size() - done)));
    source.read(done, ids);
    const auto wrong = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= vocab; });
    if (wrong == ids.end()) continue;
    refuse_id(fmt::format("{}: {}", source.name(), source.place_of(done + (wrong - ids.begin()))), *wrong, vocab,
              tokenizer);
  }
}

void check_token_ids(std::span<const std::int32_t> ids, std::int64_t vocab, const Tokenizer& tokenizer,
                     std::string_view what) {
  const auto wrong = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= vocab; });
  if (wrong == ids.end()) return;
  refuse_id(fmt::format("{}: token {}", what, wrong - ids.begin()), *wrong, vocab, &tokenizer);
}

}  // namespace lamina
