#include "file_token_source.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina::detail {

FileTokenSource::FileTokenSource(InputFile file, TokenLayout layout)
    : file_(std::move(file)), element_(layout.element), offset_(layout.offset) {
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

void FileTokenSource::set_loss_mask(std::uint64_t mask_offset) { mask_offset_ = mask_offset; }

std::string FileTokenSource::place_of(std::int64_t token) const {
  return fmt::format("token {} (byte {})", token, offset_ + static_cast<std::uint64_t>(token) * size_of(element_));
}

template <class Element>
void FileTokenSource::read_as(std::int64_t first, std::span<std::int32_t> out) const {
  std::array<Element, 4096> buffer;
  for (std::size_t done = 0; done < out.size(); done += buffer.size()) {
    const std::size_t count = std::min(buffer.size(), out.size() - done);
    const std::uint64_t token = static_cast<std::uint64_t>(first) + done;
    file_.read_at(offset_ + token * sizeof(Element), std::as_writable_bytes(std::span(buffer).first(count)));
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::int64_t>(buffer[i]);
      if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
        throw DataError(
            one_line(fmt::format("{}: {} has id {}", name_, place_of(static_cast<std::int64_t>(token + i)), id),
                     "ids lie in [0, 2^31)", "make the file again"));
      }
      out[done + i] = static_cast<std::int32_t>(id);
    }
  }
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
  if (!mask_offset_) return TokenSource::read_loss_mask(first, out);
  check_range(first, out.size());
  const std::uint64_t at = *mask_offset_ + static_cast<std::uint64_t>(first);
  file_.read_at(at, std::as_writable_bytes(out));
  const auto wrong = std::find_if(out.begin(), out.end(), [](std::uint8_t value) { return value > 1; });
  if (wrong != out.end()) {
    throw DataError(one_line(fmt::format("{}: the loss mask has {} at byte {}", name_, *wrong,
                                         at + static_cast<std::uint64_t>(wrong - out.begin())),
                             "it holds 0 and 1 only", "make the file again"));
  }
}

}  // namespace lamina::detail
