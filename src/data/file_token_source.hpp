// Tokens that lie in a file as an array of one element type.
#pragma once

#include "checked_bytes.hpp"
#include "input_file.hpp"

#include <optional>
#include <utility>

#include <lamina/data/token_layout.hpp>
#include <lamina/data/token_source.hpp>

namespace lamina::detail {

class FileTokenSource : public TokenSource {
 public:
  FileTokenSource(InputFile file, TokenLayout layout);

  // Facts that the layout does not hold. At `offset` one byte a token says whether it counts. Checksums are those of
  // CheckedBytes; the mask's come after the mask.
  void set_tokenizer(std::string name, std::string hash);
  void set_loss_mask(std::uint64_t offset);
  void set_token_checksums(std::uint64_t block_bytes, std::vector<std::uint64_t> checksums);
  void set_mask_checksums(std::uint64_t block_bytes, std::vector<std::uint64_t> checksums);

  void read(std::int64_t first, std::span<std::int32_t> out) const override;
  [[nodiscard]] bool has_loss_mask() const override { return mask_.has_value(); }
  void read_loss_mask(std::int64_t first, std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string place_of(std::int64_t token) const override;

 private:
  template <class Element>
  void read_as(std::int64_t first, std::span<std::int32_t> out) const;

  InputFile file_;
  TokenElement element_;
  CheckedBytes tokens_;
  std::optional<CheckedBytes> mask_;
};

}  // namespace lamina::detail
