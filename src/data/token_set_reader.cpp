#include "file_token_source.hpp"

#include <optional>

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

void read_facts(const hdf5::File& file, TokenLayout& layout) {
  if (file.has_attribute("version") && file.read_int_attribute("version") != 1) {
    refuse(file.place(), fmt::format("version {} of token sets", file.read_int_attribute("version")),
           "this Lamina reads version 1");
  }
  if (file.has_attribute("vocab_size")) {
    layout.declared_vocab = file.read_int_attribute("vocab_size");
    if (*layout.declared_vocab < 1)
      refuse(file.place(), fmt::format("vocab_size {}", *layout.declared_vocab), "it must be at least 1");
  }
}

std::string text_or_empty(const hdf5::File& file, const std::string& attribute) {
  return file.has_attribute(attribute) ? file.read_text_attribute(attribute) : std::string();
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
  read_facts(file, layout);
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
  return source;
}

}  // namespace lamina
