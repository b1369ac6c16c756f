#include "checked_bytes.hpp"
#include "input_file.hpp"
#include "spool_file.hpp"
#include "token_set_checksum.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/data/token_set.hpp>
#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

namespace {

constexpr std::size_t copy_block = std::size_t{1} << 20;

// Copies a spool's bytes into `dataset`. Returns the checksums of their blocks.
std::vector<std::uint64_t> copy_into(hdf5::Dataset& dataset, const detail::SpoolFile& spool) {
  static_assert(copy_block % detail::checksum_block_bytes == 0);
  std::vector<std::uint64_t> checksums;
  const std::uint64_t width = size_of(dataset.element());
  std::vector<std::byte> block(copy_block);
  for (std::uint64_t done = 0; done < spool.size(); done += block.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), spool.size() - done));
    spool.read_at(done, std::span(block).first(count));
    dataset.write_raw(static_cast<std::int64_t>(done / width), static_cast<std::int64_t>(count / width), block.data(),
                      dataset.element());
    for (std::size_t at = 0; at < count; at += detail::checksum_block_bytes) {
      const auto part = std::span(block).subspan(at, std::min<std::size_t>(detail::checksum_block_bytes, count - at));
      checksums.push_back(detail::block_checksum(checksums.size(), part));
    }
  }
  return checksums;
}

void write_checksums(hdf5::File& file, const std::string& name, std::span<const std::uint64_t> checksums) {
  hdf5::Dataset dataset = file.create_dataset(name, hdf5::Element::u64, static_cast<std::int64_t>(checksums.size()));
  dataset.write<std::uint64_t>(0, checksums);
  dataset.close();
}

// HDF5 returns success for writes that never reached a full disk: read what is there.
void verify(const detail::InputFile& file, const hdf5::Dataset& dataset, const detail::SpoolFile& spool) {
  const std::uint64_t offset = dataset.file_offset().value_or(0);
  Xxh3Stream hash;
  std::vector<std::byte> block(copy_block);
  for (std::uint64_t done = 0; done < spool.size(); done += block.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), spool.size() - done));
    file.read_at(offset + done, std::span(block).first(count));
    hash.update(block.data(), count);
  }
  if (hash.digest() != spool.digest()) {
    throw DataError(one_line(fmt::format("{} is not what was written", dataset.place()), "its checksum differs",
                             "check the disk and its free space"));
  }
}

}  // namespace

class TokenSetWriter::Impl {
 public:
  Impl(const std::filesystem::path& target, TokenSetFacts facts)
      : target_(target),
        temporary_(fmt::format("{}.tmp-{}", target.string(), ::getpid())),
        facts_(std::move(facts)),
        tokens_(temporary_ + ".tokens"),
        wide_(facts_.vocab_size > 65536) {
    require(facts_.vocab_size >= 1, "a token set has a vocabulary");
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }

  void append(std::span<const std::int32_t> ids, std::span<const std::uint8_t> mask) {
    require(mask.empty() || mask.size() == ids.size(), "one mask value a token");
    if (ids.empty()) return;
    for (const std::int32_t id : ids) require(id >= 0 && id < facts_.vocab_size, "ids lie inside the vocabulary");
    append_mask(ids.size(), mask);
    if (at_start_) starts_.push_back(count_);
    at_start_ = false;
    count_ += static_cast<std::int64_t>(ids.size());
    if (wide_) {
      tokens_.append(std::as_bytes(ids));
    } else {
      narrow_.assign(ids.begin(), ids.end());
      tokens_.append(std::as_bytes(std::span<const std::uint16_t>(narrow_)));
    }
  }

  void begin_document() { at_start_ = true; }

  void finish() {
    if (count_ == 0) {
      throw DataError(one_line(fmt::format("nothing to write to {}", target_.string()), "the input has no tokens",
                               "check the input"));
    }
    tokens_.flush();
    if (mask_) mask_->flush();
    write_file();
    verify_file();
    try {
      sync_path(temporary_);
      std::filesystem::rename(temporary_, target_);
      sync_path(target_.has_parent_path() ? target_.parent_path() : std::filesystem::path("."));
    } catch (const std::system_error& error) {
      throw DataError(one_line(fmt::format("cannot write {}", target_.string()), error.code().message(),
                               "free space or choose another folder"));
    }
  }

  [[nodiscard]] std::int64_t tokens() const { return count_; }
  [[nodiscard]] std::int64_t documents() const { return static_cast<std::int64_t>(starts_.size()); }

 private:
  // The mask's file begins with the first token that does not count.
  void append_mask(std::size_t count, std::span<const std::uint8_t> mask) {
    if (!mask_ && std::find(mask.begin(), mask.end(), 0) == mask.end()) return;
    if (!mask_) {
      mask_ = std::make_unique<detail::SpoolFile>(temporary_ + ".mask");
      append_ones(static_cast<std::uint64_t>(count_));
    }
    if (mask.empty()) return append_ones(count);
    mask_->append(std::as_bytes(mask));
  }

  void append_ones(std::uint64_t count) {
    const std::vector<std::uint8_t> ones(copy_block, 1);
    for (std::uint64_t done = 0; done < count; done += ones.size()) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(ones.size(), count - done));
      mask_->append(std::as_bytes(std::span(ones).first(part)));
    }
  }

  void write_file() const {
    hdf5::File file = hdf5::File::create(temporary_);
    file.write_attribute("format", "lamina token set");
    file.write_attribute("version", std::int64_t{2});
    file.write_attribute("vocab_size", facts_.vocab_size);
    file.write_attribute("tokenizer", facts_.tokenizer_name);
    file.write_attribute("tokenizer_hash", facts_.tokenizer_hash);
    hdf5::Dataset tokens = file.create_dataset("tokens", wide_ ? hdf5::Element::u32 : hdf5::Element::u16, count_);
    const std::vector<std::uint64_t> token_checksums = copy_into(tokens, tokens_);
    tokens.close();
    write_checksums(file, "tokens_checksums", token_checksums);
    hdf5::Dataset documents = file.create_dataset("documents", hdf5::Element::i64, this->documents());
    documents.write<std::int64_t>(0, starts_);
    documents.close();
    std::vector<std::uint64_t> mask_checksums;
    if (mask_) {
      hdf5::Dataset mask = file.create_dataset("loss_mask", hdf5::Element::u8, count_);
      mask_checksums = copy_into(mask, *mask_);
      mask.close();
      write_checksums(file, "loss_mask_checksums", mask_checksums);
    }
    const detail::TokenSetSeal seal{facts_,  wide_ ? 4U : 2U, count_,           detail::checksum_block_bytes,
                                    starts_, token_checksums, mask_ != nullptr, mask_checksums};
    file.write_attribute("checksum_block_bytes", static_cast<std::int64_t>(seal.block_bytes));
    file.write_attribute("checksum", detail::checksum_of(seal));
    file.close();
  }

  void verify_file() const {
    const detail::InputFile bytes(temporary_);
    const hdf5::File file = hdf5::File::open_read_only(temporary_);
    verify(bytes, file.open_dataset("tokens"), tokens_);
    if (mask_) verify(bytes, file.open_dataset("loss_mask"), *mask_);
    std::vector<std::int64_t> starts(starts_.size());
    file.open_dataset("documents").read<std::int64_t>(0, starts);
    if (starts != starts_) {
      throw DataError(one_line(fmt::format("{} is not what was written", temporary_), "/documents differs",
                               "check the disk and its free space"));
    }
  }

  std::filesystem::path target_;
  std::string temporary_;
  TokenSetFacts facts_;
  detail::SpoolFile tokens_;
  std::unique_ptr<detail::SpoolFile> mask_;
  bool wide_;
  std::vector<std::int64_t> starts_;
  std::vector<std::uint16_t> narrow_;
  std::int64_t count_ = 0;
  bool at_start_ = true;
};

TokenSetWriter::TokenSetWriter(const std::filesystem::path& target, TokenSetFacts facts)
    : impl_(std::make_unique<Impl>(target, std::move(facts))) {}
TokenSetWriter::~TokenSetWriter() = default;
void TokenSetWriter::append(std::span<const std::int32_t> ids, std::span<const std::uint8_t> mask) {
  impl_->append(ids, mask);
}
void TokenSetWriter::begin_document() { impl_->begin_document(); }
void TokenSetWriter::finish() { impl_->finish(); }
std::int64_t TokenSetWriter::tokens() const { return impl_->tokens(); }
std::int64_t TokenSetWriter::documents() const { return impl_->documents(); }

}  // namespace lamina
