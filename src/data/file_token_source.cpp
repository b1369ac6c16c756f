#include "file_token_source.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

FileTokenSource::FileTokenSource(InputFile file, TokenLayout layout)
    : file_(std::move(file)),
      element_(layout.element),
      tokens_(layout.offset, static_cast<std::uint64_t>(layout.count) * size_of(layout.element)) {
  name_ = file_.name();
  format_ = std::move(layout.format);
  size_ = layout.count;
  declared_vocab_ = layout.declared_vocab;
  document_starts_ = std::move(layout.document_starts);
}

void FileTokenSource::set_tokenizer(std::string name, std::string hash) {
  tokenizer_name_ = std::move(name);
  tokenizer_hash_ = std::move(hash);
}

void FileTokenSource::set_loss_mask(std::uint64_t offset) { mask_.emplace(offset, static_cast<std::uint64_t>(size_)); }

void FileTokenSource::set_token_checksums(std::uint64_t block_bytes, std::vector<std::uint64_t> checksums) {
  tokens_.set_checksums(block_bytes, std::move(checksums), name_ + ":/tokens");
}

void FileTokenSource::set_mask_checksums(std::uint64_t block_bytes, std::vector<std::uint64_t> checksums) {
  mask_->set_checksums(block_bytes, std::move(checksums), name_ + ":/loss_mask");
}

std::string FileTokenSource::place_of(std::int64_t token) const {
  return fmt::format("token {} (byte {})", token,
                     tokens_.offset() + static_cast<std::uint64_t>(token) * size_of(element_));
}

template <class Element>
void FileTokenSource::read_as(std::int64_t first, std::span<std::int32_t> out) const {
  std::size_t done = 0;
  const auto take = [&](std::span<const std::byte> bytes) {
    for (; !bytes.empty(); bytes = bytes.subspan(sizeof(Element)), ++done) {
      Element element;
      std::memcpy(&element, bytes.data(), sizeof(Element));
      const auto id = static_cast<std::int64_t>(element);
      if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
        throw DataError(
            one_line(fmt::format("{}: {} has id {}", name_, place_of(first + static_cast<std::int64_t>(done)), id),
                     "ids lie in [0, 2^31)", "make the file again"));
      }
      out[done] = static_cast<std::int32_t>(id);
    }
  };
  tokens_.read(file_, static_cast<std::uint64_t>(first) * sizeof(Element), out.size() * sizeof(Element), take);
}

void FileTokenSource::read(std::int64_t first, std::span<std::int32_t> out) const {
  check_range(first, out.size());
  switch (element_) {
    case TokenElement::u8:
      return read_as<std::uint8_t>(first, out);
    case TokenElement::u16:
      return read_as<std::uint16_t>(first, out);
    case TokenElement::i16:
      return read_as<std::int16_t>(first, out);
    case TokenElement::u32:
      return read_as<std::uint32_t>(first, out);
    case TokenElement::i32:
      return read_as<std::int32_t>(first, out);
    case TokenElement::i64:
      return read_as<std::int64_t>(first, out);
  }
  throw InternalError("unknown token element");
}

void FileTokenSource::read_loss_mask(std::int64_t first, std::span<std::uint8_t> out) const {
  if (!mask_) return TokenSource::read_loss_mask(first, out);
  check_range(first, out.size());
  std::size_t done = 0;
  mask_->read(file_, static_cast<std::uint64_t>(first), out.size(), [&](std::span<const std::byte> bytes) {
    std::memcpy(out.data() + done, bytes.data(), bytes.size());
    done += bytes.size();
  });
  const auto wrong = std::find_if(out.begin(), out.end(), [](std::uint8_t value) { return value > 1; });
  if (wrong != out.end()) {
    throw DataError(one_line(fmt::format("{}: the loss mask has {} at byte {}", name_, *wrong,
                                         mask_->offset() + static_cast<std::uint64_t>(first + (wrong - out.begin()))),
                             "it holds 0 and 1 only", "make the file again"));
  }
}

}  // namespace lamina::detail
