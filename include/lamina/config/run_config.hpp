// Everything a run can be told, as plain values. Filled by command_line.hpp from an INI file and options; after `app`
// no module reads arguments or the environment.
#pragma once

#include <cstdint>
#include <string>

namespace lamina {

struct RunSection {
  std::string dir = "runs/default";
  std::uint64_t seed = 0;
  std::string resume = "auto";     // auto | never | path of a checkpoint
  bool overwrite = false;          // with resume = never: what the folder holds of an earlier run is moved aside
  std::string allow_drift;         // "KEY, ...": what may differ from the checkpoint, see config/drift_keys.hpp
  double deadline_s = 600;         // no rank gets on for this long: the run ends (exit 69)
  double local_deadline_s = 3600;  // one piece of reading or writing may take this long while the rank lives
  std::int64_t pretend_nodes = 0;  // 0 = as discovered; N = split the world into N equal pretended nodes (for tests)
};

enum class ModelInit { random, pretrained };
struct ModelSection {
  std::string path;  // Hugging Face folder (config.json, model*.safetensors)
  ModelInit init = ModelInit::random;
};

// What becomes of an epoch's last windows when the global batch does not divide their number.
enum class LastBatch { wrap, drop, pad };
enum class BinDtype { automatic, uint16, uint32 };
struct DataSection {
  std::string train;       // token file, .txt, .jsonl, ...; or a mixture "a.h5:0.7, b.h5:0.3"
  std::string validation;  // empty = no validation
  std::int64_t seq_len = 256;
  std::string tokenizer = "auto";  // auto | byte | path of tokenizer.json or its folder
  bool append_eos = true;          // text of .jsonl documents ends with the tokenizer's end-of-text token
  std::string text_key = "text";   // of JSON lines
  std::string chat_key = "auto";   // auto: messages or conversations
  std::string ignore_keys;         // names with commas
  std::string date;                // YYYY-MM-DD for chat templates; empty: a fixed one
  bool document_mask = false;      // attention and labels stop at document boundaries
  LastBatch last_batch = LastBatch::wrap;
  BinDtype bin_dtype = BinDtype::automatic;  // of .bin files without header and index
};

struct TrainSection {
  std::int64_t steps = 100;
  std::int64_t global_batch = 8;     // sequences a step over all ranks
  std::int64_t micro_batch = 1;      // sequences a rank computes at once
  std::int64_t eval_every = 0;       // 0 = never
  std::int64_t eval_sequences = 64;  // 0 = the whole validation set
  std::int64_t log_every = 10;
  std::int64_t stop_at = 0;     // save and end after this step, to go on later; 0 = never
  double label_smoothing = 0;   // share of the target that goes to all tokens alike
  bool skip_nonfinite = false;  // leave out the update of a step whose loss or gradient norm is not finite
  double z_loss = 0;            // coefficient of the squared log of the softmax's normaliser; 0 = none
};

enum class ScheduleKind { constant, cosine, linear, wsd };
enum class OptimizerKind { adamw, adam, sgd, lion, muon };
enum class MuonAdjustLr { match_rms_adamw, original };
struct OptimSection {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 3e-4;
  double min_lr = 0;
  double warmup = 0.05;  // steps; below 1 a share of all steps, see config/warmup_steps.hpp
  ScheduleKind schedule = ScheduleKind::cosine;
  std::int64_t decay = 0;  // steps of the final decay of wsd; 0 = a fifth of all steps
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double momentum = 0;  // of sgd; 0 = none
  bool nesterov = false;
  double muon_momentum = 0.95;
  bool muon_nesterov = true;
  MuonAdjustLr muon_adjust_lr = MuonAdjustLr::match_rms_adamw;
  double weight_decay = 0.1;
  std::string groups;      // "PATTERN:lr=X:decay=Y, ...", see config/parameter_groups.hpp
  double grad_clip = 1.0;  // 0 = no clipping
  double ema_decay = 0;    // of the averaged weights; 0 = none are kept
};

enum class Strategy { no_shard, shard_optimizer, shard_grad_op, full, hybrid, hybrid_optimizer };
enum class Reshard { yes, no, node };
struct ParallelSection {
  Strategy strategy = Strategy::full;
  std::string ignore;                            // "PATTERN, ...": units whose tensors match stay whole on every rank
  std::int64_t prefetch = 1;                     // 0..3 units
  std::int64_t prefetch_backward = -1;           // 0..3 units; -1 = as prefetch
  double bucket_mb = 25;                         // MiB of gradients that leave together
  bool reduce_each_micro_step = true;            // no: whole gradients are kept on every rank until the last one
  bool overlap = true;                           // communication on threads of its own
  std::int64_t shard_size = 0;                   // ranks of a shard group of hybrid strategies; 0 = the ranks of a node
  std::string units = "layer";                   // layer | block | size:N | layers:K
  Reshard reshard_after_forward = Reshard::yes;  // no, node: a gathered unit stays full until its backward
};

enum class ReductionOrder { automatic, rank, hierarchical };
struct ReductionSection {
  ReductionOrder order = ReductionOrder::automatic;  // automatic: rank on one node, hierarchical across nodes
};

struct CheckpointSection {
  std::int64_t every = 0;  // steps; 0 = not by steps
  double minutes = 30;     // 0 = not by time
  std::int64_t keep = 2;   // newest complete checkpoints to keep; 0 = all
};

struct ComputeSection {
  std::string backend = "cpu";  // cpu | cuda
  std::int64_t threads = 1;     // of each rank
};

struct OutputSection {
  std::string timeline;  // "FIRST:LAST": steps that timeline.json shows; empty = none
};

struct RunConfig {
  RunSection run;
  ModelSection model;
  DataSection data;
  TrainSection train;
  OptimSection optim;
  ParallelSection parallel;
  ReductionSection reduction;
  CheckpointSection checkpoint;
  ComputeSection compute;
  OutputSection output;
};

}  // namespace lamina
