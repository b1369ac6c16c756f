// lamina-consolidate: a checkpoint's shards -> a Hugging Face folder. Needs no MPI: it runs on a login node.
#include "consolidate/file_size.hpp"
#include "consolidate/merge.hpp"
#include "support/run_tool.hpp"

#include <lamina/base/text.hpp>

#include <fmt/format.h>

int main(int argc, char** argv) {
  using namespace lamina;
  constexpr const char* program = "lamina-consolidate";
  std::string checkpoint, out, weights = "trained", dtype = "fp32", max_size = "5GB", format = "safetensors";
  bool optimizer = false;
  ArgumentParser parser(program, "Joins the shards of a checkpoint into one Hugging Face folder, verified and atomic.");
  parser.example("lamina-consolidate runs/first runs/first/model");
  parser.example("lamina-consolidate runs/first/step_00002000 out --dtype bf16 --max-shard-size 2GB");
  parser.positional("CHECKPOINT", checkpoint, "a checkpoint, or a run folder (its newest intact checkpoint is taken)");
  parser.positional("OUT", out, "the folder to make; must not exist, or be empty");
  parser.choice("weights", weights, {"trained", "ema"},
                "the weights as trained, or their moving average (of runs with optim.ema_decay)");
  parser.choice("dtype", dtype, {"fp32", "bf16"}, "element type of the weights (bf16: rounded to nearest even)");
  parser.option("max-shard-size", max_size, "SIZE", "largest safetensors file before the weights are split");
  parser.choice("format", format, {"safetensors", "hdf5"}, "kind of file for the tensors");
  parser.flag("optimizer", optimizer, "also export the optimizer's moments (fp32)");
  return run_tool(argc, argv, parser, [&] {
    ConsolidateRequest request;
    request.checkpoint = checkpoint;
    request.out = out;
    request.weights = weights == "ema" ? ExportedWeights::ema : ExportedWeights::trained;
    request.dtype = dtype == "bf16" ? DType::bf16 : DType::f32;
    request.max_file_bytes = parse_file_size(max_size, "--max-shard-size");
    request.format = format == "hdf5" ? ExportFormat::hdf5 : ExportFormat::safetensors;
    request.optimizer = optimizer;
    if (request.format == ExportFormat::hdf5 && parser.given("max-shard-size")) {
      throw UsageError(one_line("--max-shard-size cannot be used with --format hdf5", "HDF5 weights are one file",
                                "leave one of the two out"));
    }
    const ConsolidateReport report = consolidate(request);
    for (const std::string& warning : report.warnings) fmt::print(stderr, "warning: {}\n", warning);
    fmt::print("{}: step {} -> {}: {} tensors, {} in {} file{}, {} weights {}\n", report.checkpoint.string(),
               report.step, out, report.tensors, human_bytes(report.bytes), report.files, report.files == 1 ? "" : "s",
               weights, dtype);
  });
}
