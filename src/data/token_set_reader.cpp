#include "file_token_source.hpp"
#include "token_set_checksum.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <lamina/base/error.hpp>
#include <lamina/data/token_set.hpp>
#include <lamina/hdf5/file.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

[[noreturn]] void refuse(const std::string& place, std::string_view problem, std::string_view why) {
  throw DataError(one_line(fmt::format("{}: {}", place, problem), why, "make the file again with lamina-tokenize"));
}

TokenElement token_element(const hdf5::Dataset& tokens) {
  switch (tokens.element()) {
    case hdf5::Element::u8:
      return TokenElement::u8;
    case hdf5::Element::u16:
      return TokenElement::u16;
    case hdf5::Element::u32:
      return TokenElement::u32;
    case hdf5::Element::i32:
      return TokenElement::i32;
    case hdf5::Element::i64:
      return TokenElement::i64;
    default:
      refuse(tokens.place(), fmt::format("elements of type {}", name_of(tokens.element())), "tokens are integers");
  }
}

// Where the elements lie; HDF5's own word for it is checked against the file.
std::uint64_t checked_offset(const hdf5::Dataset& dataset, std::uint64_t file_size) {
  if (dataset.shape().size() != 1)
    refuse(dataset.place(), fmt::format("{} dimensions", dataset.shape().size()), "it must have one");
  if (dataset.elements() == 0) return 0;
  const std::optional<std::uint64_t> offset = dataset.file_offset();
  if (!offset)
    refuse(dataset.place(), "chunked or compressed", "token sets are contiguous, so that any window is one read");
  const std::uint64_t width = size_of(dataset.element());
  if (*offset > file_size || static_cast<std::uint64_t>(dataset.elements()) > (file_size - *offset) / width) {
    refuse(dataset.place(), fmt::format("{} elements from byte {}", dataset.elements(), *offset),
           fmt::format("the file has {} bytes", file_size));
  }
  return *offset;
}

std::vector<std::int64_t> read_documents(const hdf5::File& file, std::int64_t tokens) {
  if (!file.has("documents")) return {};
  const hdf5::Dataset dataset = file.open_dataset("documents");
  if (dataset.element() != hdf5::Element::i64 || dataset.shape().size() != 1 || dataset.elements() > tokens) {
    refuse(dataset.place(), fmt::format("{} elements of type {}", dataset.elements(), name_of(dataset.element())),
           "it must be one int64 for each document, and a document has at least one token");
  }
  std::vector<std::int64_t> starts(static_cast<std::size_t>(dataset.elements()));
  dataset.read<std::int64_t>(0, starts);
  check_document_starts(starts, tokens, dataset.place());
  return starts;
}

std::int64_t version_of(const hdf5::File& file) {
  const std::int64_t version = file.has_attribute("version") ? file.read_int_attribute("version") : 1;
  if (version < 1 || version > 2)
    refuse(file.place(), fmt::format("version {} of token sets", version), "this Lamina reads versions 1 and 2");
  return version;
}

std::optional<std::int64_t> read_vocab(const hdf5::File& file) {
  if (!file.has_attribute("vocab_size")) return std::nullopt;
  const std::int64_t vocab = file.read_int_attribute("vocab_size");
  if (vocab < 1) refuse(file.place(), fmt::format("vocab_size {}", vocab), "it must be at least 1");
  return vocab;
}

std::string text_or_empty(const hdf5::File& file, const std::string& attribute) {
  return file.has_attribute(attribute) ? file.read_text_attribute(attribute) : std::string();
}

std::vector<std::uint64_t> read_checksums(const hdf5::File& file, const std::string& name, std::uint64_t bytes,
                                          std::uint64_t block_bytes) {
  if (!file.has(name)) refuse(file.place(), fmt::format("no dataset '{}'", name), "the set has checksums");
  const hdf5::Dataset dataset = file.open_dataset(name);
  const std::uint64_t blocks = (bytes + block_bytes - 1) / block_bytes;
  if (dataset.element() != hdf5::Element::u64 || dataset.shape().size() != 1 ||
      static_cast<std::uint64_t>(dataset.elements()) != blocks) {
    refuse(dataset.place(), fmt::format("{} elements of type {}", dataset.elements(), name_of(dataset.element())),
           fmt::format("it must be one uint64 for each of {} blocks", blocks));
  }
  std::vector<std::uint64_t> checksums(blocks);
  dataset.read<std::uint64_t>(0, checksums);
  return checksums;
}

// Whether the set says in any way that it has checksums: no single damage can make it look as if it had none.
bool is_sealed(const hdf5::File& file, std::int64_t version) {
  return version >= 2 || file.has_attribute("checksum") || file.has_attribute("checksum_block_bytes") ||
         file.has("tokens_checksums") || file.has("loss_mask_checksums");
}

std::uint64_t read_block_bytes(const hdf5::File& file) {
  for (const char* name : {"checksum", "checksum_block_bytes"}) {
    if (!file.has_attribute(name))
      refuse(file.place(), fmt::format("no attribute '{}'", name), "the set has checksums");
  }
  const std::int64_t bytes = file.read_int_attribute("checksum_block_bytes");
  if (bytes < 8 || bytes > (std::int64_t{1} << 26) || bytes % 8 != 0) {
    refuse(file.place(), fmt::format("checksum_block_bytes {}", bytes), "it must be a multiple of 8 up to 2^26");
  }
  return static_cast<std::uint64_t>(bytes);
}

// Proves all but the tokens and the mask, and hands their checksums to the source.
void prove(const hdf5::File& file, TokenElement element, detail::FileTokenSource& source) {
  const auto tokens = static_cast<std::uint64_t>(source.size());
  detail::TokenSetSeal seal{{source.declared_vocab().value_or(0), source.tokenizer_name(), source.tokenizer_hash()},
                            size_of(element),
                            source.size(),
                            read_block_bytes(file),
                            source.document_starts(),
                            {},
                            source.has_loss_mask(),
                            {}};
  std::vector<std::uint64_t> of_tokens =
      read_checksums(file, "tokens_checksums", tokens * size_of(element), seal.block_bytes);
  std::vector<std::uint64_t> of_mask;
  if (seal.has_mask) of_mask = read_checksums(file, "loss_mask_checksums", tokens, seal.block_bytes);
  seal.token_checksums = of_tokens;
  seal.mask_checksums = of_mask;
  if (checksum_of(seal) != file.read_text_attribute("checksum")) {
    refuse(file.place(), "its checksum is wrong", "documents, vocabulary, tokenizer or checksums are damaged");
  }
  source.set_token_checksums(seal.block_bytes, std::move(of_tokens));
  if (seal.has_mask) source.set_mask_checksums(seal.block_bytes, std::move(of_mask));
}

}  // namespace

std::unique_ptr<TokenSource> open_token_set(const std::filesystem::path& path) {
  detail::InputFile input(path);
  const std::uint64_t file_size = input.size();
  const hdf5::File file = hdf5::File::open_read_only(path);
  if (!file.has("tokens")) refuse(path.string(), "no dataset 'tokens'", "it is HDF5 but not a token set");
  const hdf5::Dataset tokens = file.open_dataset("tokens");
  TokenLayout layout{
      "HDF5 token set", token_element(tokens), checked_offset(tokens, file_size), tokens.elements(), {}, {}};
  const std::int64_t version = version_of(file);
  layout.declared_vocab = read_vocab(file);
  layout.document_starts = read_documents(file, layout.count);
  auto source = std::make_unique<detail::FileTokenSource>(std::move(input), std::move(layout));
  source->set_tokenizer(text_or_empty(file, "tokenizer"), text_or_empty(file, "tokenizer_hash"));
  if (file.has("loss_mask")) {
    const hdf5::Dataset mask = file.open_dataset("loss_mask");
    if (mask.element() != hdf5::Element::u8 || mask.elements() != tokens.elements()) {
      refuse(mask.place(), fmt::format("{} elements of type {}", mask.elements(), name_of(mask.element())),
             fmt::format("it must be one uint8 for each of {} tokens", tokens.elements()));
    }
    source->set_loss_mask(checked_offset(mask, file_size));
  }
  if (is_sealed(file, version)) prove(file, token_element(tokens), *source);
  return source;
}

}  // namespace lamina
