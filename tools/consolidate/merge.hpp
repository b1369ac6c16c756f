// Shards of a checkpoint -> one Hugging Face folder, verified and atomic, in memory that does not depend on the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <lamina/tensor/dtype.hpp>

namespace lamina {

enum class ExportFormat { safetensors, hdf5 };

// Which of a checkpoint's values for each weight: as trained, or their moving average (optim.ema_decay).
enum class ExportedWeights { trained, ema };

struct ConsolidateRequest {
  std::filesystem::path checkpoint;  // a checkpoint or a run folder
  std::filesystem::path out;         // must not exist, or be an empty folder
  ExportedWeights weights = ExportedWeights::trained;
  DType dtype = DType::f32;  // f32 or bf16 (rounded to nearest even)
  std::uint64_t max_file_bytes = 5'000'000'000;
  ExportFormat format = ExportFormat::safetensors;
  bool optimizer =
      false;  // also optimizer.safetensors or optimizer.h5: NAME.exp_avg, NAME.exp_avg_sq in fp32, and optimizer.json
};

struct ConsolidateReport {
  std::filesystem::path checkpoint;  // the one that was taken
  std::int64_t step = 0;
  std::size_t tensors = 0, files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> warnings;
};

// Proves checksums (of a run folder the newest intact checkpoint is taken), checks its tensors against config.json both
// ways, writes OUT.tmp-ID, fsyncs and renames it to OUT. On any failure OUT is as it was. Throws UsageError (OUT is in
// use), CheckpointError, DataError.
[[nodiscard]] ConsolidateReport consolidate(const ConsolidateRequest& request);

}  // namespace lamina
