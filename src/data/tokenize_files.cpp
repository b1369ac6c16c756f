#include "ordered_pipeline.hpp"
#include "text_blocks.hpp"

#include <utility>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/data/document_encoder.hpp>
#include <lamina/data/token_set.hpp>
#include <lamina/data/tokenize_files.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

struct EncodedBlock {
  EncodedDocuments documents;
  std::uint64_t bytes = 0;  // of the files
};

void write_block(const EncodedDocuments& block, TokenSetWriter& writer) {
  const std::span<const std::int32_t> ids(block.ids);
  const std::span<const std::uint8_t> mask(block.loss_mask);
  std::size_t done = 0;
  const auto write_until = [&](std::size_t end) {
    writer.append(ids.subspan(done, end - done), mask.subspan(done, end - done));
    done = end;
  };
  for (const std::size_t start : block.starts) {
    write_until(start);
    writer.begin_document();
  }
  write_until(ids.size());
}

void check_paths(const TokenizeRequest& request) {
  // A device or a folder would be replaced by a file.
  if (std::filesystem::exists(request.output) && !std::filesystem::is_regular_file(request.output)) {
    throw UsageError(one_line(fmt::format("cannot write {}", request.output.string()), "it is not a regular file",
                              "name another --out"));
  }
  for (const std::filesystem::path& input : request.inputs) {
    std::error_code none;
    if (!std::filesystem::equivalent(input, request.output, none)) continue;
    throw UsageError(
        one_line(fmt::format("{} is input and output", input.string()), "it would be replaced", "name another --out"));
  }
}

}  // namespace

TokenizeProgress tokenize_files(const TokenizeRequest& request, const Tokenizer& tokenizer) {
  require(request.threads >= 1 && request.block_bytes >= 1, "at least one thread and one byte a block");
  check_paths(request);
  const DocumentEncoder encoder(tokenizer, request.append_eos, request.rules);
  detail::TextBlockReader reader(request.inputs, request.format, tokenizer, request.block_bytes);
  TokenSetWriter writer(request.output, {tokenizer.vocab_size(), request.identity.name, request.identity.hash});
  TokenizeProgress progress;
  progress.total_bytes = reader.total_bytes();
  const auto make_worker = [&] {
    return [&encoder, workspace = tokenizer.make_workspace()](detail::TextBlock&& block) mutable {
      EncodedBlock out;
      out.bytes = block.file_bytes;
      encode_block(block, encoder, workspace, out.documents);
      return out;
    };
  };
  const auto consume = [&](const EncodedBlock& block) {
    write_block(block.documents, writer);
    progress.bytes += block.bytes;
    progress.tokens = writer.tokens();
    progress.documents = writer.documents();
    if (request.progress) request.progress(progress);
  };
  detail::OrderedPipeline<detail::TextBlock, EncodedBlock>(request.threads)
      .run([&] { return reader.next(); }, make_worker, consume);
  writer.finish();
  progress.notes = encoder.notes();
  return progress;
}

}  // namespace lamina
