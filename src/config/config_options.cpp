#include "option_field.hpp"

#include <array>
#include <string>
#include <utility>

#include <lamina/config/command_line.hpp>
#include <lamina/config/parse_value.hpp>

namespace lamina {

namespace {

using detail::choice_option;
using detail::field;
using detail::integer_option;
using detail::number_option;
using detail::seed_option;
using detail::switch_option;
using detail::text_choice_option;
using detail::text_option;

constexpr IntegerRange from_zero{0};
constexpr IntegerRange from_one{1};
using Options = std::vector<ConfigOption>;

void add_run(Options& out) {
  const auto in = [](auto member) { return field(&RunConfig::run, member); };
  out.push_back(text_option("run", "dir", "FOLDER", "folder for everything the run writes", in(&RunSection::dir)));
  out.push_back(
      seed_option("run", "seed", "seed of random weights and of the order of the data", in(&RunSection::seed)));
  out.push_back(text_option("run", "resume", "auto|never|CHECKPOINT",
                            "auto: go on from the newest intact checkpoint in dir if there is one; never: begin anew",
                            in(&RunSection::resume)));
  out.push_back(switch_option("run", "overwrite",
                              "with resume = never: moves what dir holds of an earlier run to dir/aside and begins "
                              "anew, at each start",
                              in(&RunSection::overwrite)));
  out.push_back(text_option("run", "allow_drift", "KEY[, KEY ...]",
                            "settings that may differ from those of the checkpoint although they decide which samples "
                            "come when or what a loss means: run.seed, data.train, ...; empty: none",
                            in(&RunSection::allow_drift)));
  out.push_back(number_option("run", "deadline_s", "SECONDS",
                              "ranks that wait for each other while none gets on for longer than this end the run "
                              "with exit code 69",
                              in(&RunSection::deadline_s)));
  out.push_back(number_option("run", "local_deadline_s", "SECONDS",
                              "reading, saving or loading on a slow disk may take a rank this long in one piece, while "
                              "it gives signs of life",
                              in(&RunSection::local_deadline_s)));
  out.push_back(integer_option("run", "pretend_nodes",
                               "split the ranks into this many equal pretended nodes; 0: as found", from_zero,
                               in(&RunSection::pretend_nodes)));
}

void add_model(Options& out) {
  const auto in = [](auto member) { return field(&RunConfig::model, member); };
  out.push_back(text_option("model", "path", "FOLDER",
                            "Hugging Face folder with config.json and, for init = pretrained, weights",
                            in(&ModelSection::path)));
  out.push_back(choice_option("model", "init", {"random", "pretrained"},
                              "where weights come from when nothing is resumed", in(&ModelSection::init)));
}

void add_data(Options& out) {
  const auto in = [](auto member) { return field(&RunConfig::data, member); };
  out.push_back(
      text_option("data", "train", "FILE[:WEIGHT][, FILE:WEIGHT ...]",
                  "training data: token files, .txt, .jsonl or .json, also .gz, mixed by weight; a name with a "
                  "comma stands between double quotes",
                  in(&DataSection::train)));
  out.push_back(
      text_option("data", "validation", "FILE", "validation data; empty: none", in(&DataSection::validation)));
  out.push_back(integer_option("data", "seq_len", "tokens of one sequence", from_one, in(&DataSection::seq_len)));
  out.push_back(
      text_option("data", "tokenizer", "auto|byte|PATH",
                  "for .txt and .jsonl; auto: the model folder's tokenizer.json; byte for random weights in a folder "
                  "without any tokenizer",
                  in(&DataSection::tokenizer)));
  out.push_back(switch_option("data", "append_eos",
                              "yes: every text of a .jsonl file ends with the tokenizer's end-of-text token",
                              in(&DataSection::append_eos)));
  out.push_back(text_option("data", "text_key", "KEY", "key of a text in JSON lines", in(&DataSection::text_key)));
  out.push_back(text_option("data", "chat_key", "auto|KEY",
                            "key of a conversation in JSON lines; auto: messages or conversations",
                            in(&DataSection::chat_key)));
  out.push_back(text_option("data", "ignore_keys", "KEY[, KEY ...]",
                            "keys of JSON lines and of their messages to leave out", in(&DataSection::ignore_keys)));
  out.push_back(text_option("data", "date", "YYYY-MM-DD",
                            "the date for chat templates that ask for today's; empty: 2024-07-26, that data stay equal",
                            in(&DataSection::date)));
  out.push_back(switch_option("data", "document_mask",
                              "yes: attention and labels stop at the boundaries of packed documents",
                              in(&DataSection::document_mask)));
  out.push_back(choice_option("data", "last_batch", {"wrap", "drop", "pad"},
                              "an epoch that global_batch does not divide. wrap: its last batch goes on with the next "
                              "epoch; drop: the rest is left out; pad: rows without labels fill the batch",
                              in(&DataSection::last_batch)));
  out.push_back(choice_option("data", "bin_dtype", {"auto", "uint16", "uint32"},
                              "the tokens of .bin files without header and index. auto: uint16, and refused where the "
                              "vocabulary is larger than that or the file reads as uint32, too",
                              in(&DataSection::bin_dtype)));
}

void add_train(Options& out) {
  const auto in = [](auto member) { return field(&RunConfig::train, member); };
  out.push_back(
      integer_option("train", "steps", "optimizer steps of the whole run", from_one, in(&TrainSection::steps)));
  out.push_back(integer_option("train", "global_batch",
                               "sequences of one step over all ranks: a multiple of ranks x micro_batch", from_one,
                               in(&TrainSection::global_batch)));
  out.push_back(integer_option("train", "micro_batch", "sequences that a rank computes at once", from_one,
                               in(&TrainSection::micro_batch)));
  out.push_back(integer_option("train", "eval_every", "steps between validations; 0: never", from_zero,
                               in(&TrainSection::eval_every)));
  out.push_back(integer_option("train", "eval_sequences", "sequences of one validation; 0: all of the validation data",
                               from_zero, in(&TrainSection::eval_sequences)));
  out.push_back(
      integer_option("train", "log_every", "steps between lines of the log", from_one, in(&TrainSection::log_every)));
  out.push_back(integer_option("train", "stop_at",
                               "save and end after this step, to be resumed later; 0: go on to the end", from_zero,
                               in(&TrainSection::stop_at)));
  out.push_back(number_option("train", "label_smoothing", "0 <= X < 1",
                              "share of the target that goes to all tokens alike, in training only",
                              in(&TrainSection::label_smoothing)));
  out.push_back(number_option("train", "z_loss", "X >= 0",
                              "adds X * log(sum of exp(logits))^2 to the loss of a token, in training only; 0: nothing",
                              in(&TrainSection::z_loss)));
  out.push_back(switch_option("train", "skip_nonfinite",
                              "yes: a step whose loss or gradient norm is not finite changes nothing and the run goes "
                              "on, until 100 in a row; no: the run ends",
                              in(&TrainSection::skip_nonfinite)));
}

void add_muon(Options& out) {
  const auto in = [](auto member) { return field(&RunConfig::optim, member); };
  out.push_back(number_option("optim", "muon_momentum", "0 <= X < 1",
                              "muon: how much of the mean gradient of a block's matrix stays",
                              in(&OptimSection::muon_momentum)));
  out.push_back(switch_option("optim", "muon_nesterov", "muon: yes looks one momentum step ahead",
                              in(&OptimSection::muon_nesterov)));
  out.push_back(
      choice_option("optim", "muon_adjust_lr", {"match_rms_adamw", "original"},
                    "muon: what multiplies lr for a matrix. match_rms_adamw: 0.2 sqrt(max(rows, columns)), so "
                    "that lr and weight_decay are those of AdamW for all tensors; original: sqrt(max(1, rows "
                    "/ columns)), published with lr = 0.02, which needs groups with a small lr for the "
                    "tensors of the AdamW part",
                    in(&OptimSection::muon_adjust_lr)));
}

void add_optim(Options& out) {
  const auto in = [](auto member) { return field(&RunConfig::optim, member); };
  out.push_back(choice_option("optim", "kind", {"adamw", "adam", "sgd", "lion", "muon"},
                              "AdamW; Adam, whose decay enters the gradient; SGD; Lion (published with beta2 = 0.99); "
                              "Muon for the matrices of decoder blocks with AdamW for all other tensors",
                              in(&OptimSection::kind)));
  out.push_back(number_option("optim", "lr", "X > 0", "highest learning rate", in(&OptimSection::lr)));
  out.push_back(number_option("optim", "min_lr", "X >= 0",
                              "learning rate that the schedule has reached when all steps are done: the last step "
                              "still has a little more",
                              in(&OptimSection::min_lr)));
  out.push_back(number_option("optim", "warmup", "STEPS or 0 <= SHARE < 1",
                              "linear warm-up over W steps, or over a share of train.steps: step 1 has lr / W, step W "
                              "has lr, and so has the one after it, with which the schedule begins",
                              in(&OptimSection::warmup)));
  out.push_back(choice_option("optim", "schedule", {"constant", "cosine", "linear", "wsd"},
                              "learning rate after the warm-up", in(&OptimSection::schedule)));
  out.push_back(integer_option("optim", "decay", "steps of the final decay of wsd; 0: a fifth of all steps", from_zero,
                               in(&OptimSection::decay)));
  out.push_back(number_option("optim", "beta1", "0 <= X < 1",
                              "adamw, adam, lion, the AdamW part of muon: decay of the first moment",
                              in(&OptimSection::beta1)));
  out.push_back(
      number_option("optim", "beta2", "0 <= X < 1",
                    "adamw, adam, the AdamW part of muon: decay of the second moment; lion: decay of its moment",
                    in(&OptimSection::beta2)));
  out.push_back(number_option("optim", "eps", "X > 0",
                              "adamw, adam, the AdamW part of muon: added to the root of the second moment",
                              in(&OptimSection::eps)));
  out.push_back(number_option("optim", "momentum", "0 <= X < 1", "sgd: how much of the last update stays; 0: none",
                              in(&OptimSection::momentum)));
  out.push_back(
      switch_option("optim", "nesterov", "sgd: yes looks one momentum step ahead", in(&OptimSection::nesterov)));
  add_muon(out);
  out.push_back(
      number_option("optim", "weight_decay", "X >= 0",
                    "decay of matrices, not of norms and biases: decoupled in adamw, lion and muon, added to the "
                    "gradient in adam and sgd",
                    in(&OptimSection::weight_decay)));
  out.push_back(text_option("optim", "groups", "PATTERN[:lr=X][:decay=Y][, ...]",
                            "settings for tensors by name (* = anything; the first match counts): lr multiplies the "
                            "learning rate, decay replaces weight_decay, also for norms and biases; lr = 0 saves no "
                            "memory or time: gradients and moments are still kept",
                            in(&OptimSection::groups)));
  out.push_back(number_option("optim", "grad_clip", "X >= 0", "highest global gradient norm; 0: no clipping",
                              in(&OptimSection::grad_clip)));
  out.push_back(number_option("optim", "ema_decay", "0 <= X < 1",
                              "keep an exponential moving average of the weights, ema = X ema + (1 - X) weight after "
                              "each step, as one more fp32 value a parameter, for lamina-consolidate --weights ema; "
                              "0: none",
                              in(&OptimSection::ema_decay)));
}

void add_parallel(Options& out) {
  out.push_back(choice_option("parallel", "strategy",
                              {"no_shard", "shard_optimizer", "shard_grad_op", "full", "hybrid", "hybrid_optimizer"},
                              "what is split over the ranks: nothing (DDP); optimizer state (ZeRO-1); also gradients "
                              "and, between steps, weights (ZeRO-2); "
                              "everything (ZeRO-3); everything inside a shard group, copied across groups; the same "
                              "with optimizer state over all ranks",
                              field(&RunConfig::parallel, &ParallelSection::strategy)));
  out.push_back(integer_option("parallel", "shard_size",
                               "ranks of a shard group of the hybrid strategies; 0: the ranks of a node", from_zero,
                               field(&RunConfig::parallel, &ParallelSection::shard_size)));
  out.push_back(text_option("parallel", "units", "layer|block|size:N|layers:K",
                            "what is gathered together: embedding, each block, head; blocks, the rest full all the "
                            "time; modules of N parameters and more; K blocks at a time",
                            field(&RunConfig::parallel, &ParallelSection::units)));
  out.push_back(text_option("parallel", "ignore", "PATTERN[, PATTERN ...]",
                            "units all of whose tensors have such names (* = anything) stay whole on every rank; other "
                            "units are sharded",
                            field(&RunConfig::parallel, &ParallelSection::ignore)));
  out.push_back(choice_option(
      "parallel", "reshard_after_forward", {"yes", "no", "node"},
      "no: gathered units stay until their backward; node: one copy a node stays (on CPU ranks the same as no)",
      field(&RunConfig::parallel, &ParallelSection::reshard_after_forward)));
  out.push_back(integer_option("parallel", "prefetch", "units gathered ahead of use", IntegerRange{0, 3},
                               field(&RunConfig::parallel, &ParallelSection::prefetch)));
  out.push_back(integer_option("parallel", "prefetch_backward", "the same in the backward pass; -1: as prefetch",
                               IntegerRange{-1, 3}, field(&RunConfig::parallel, &ParallelSection::prefetch_backward)));
  out.push_back(number_option("parallel", "bucket_mb", "MIB > 0",
                              "a unit's gradient leaves in buckets of at most this size, as soon as each is final",
                              field(&RunConfig::parallel, &ParallelSection::bucket_mb)));
  out.push_back(switch_option("parallel", "reduce_each_micro_step",
                              "no: every rank keeps whole gradients in memory and reduces them in a step's last "
                              "micro-step only; not with reduction.order = rank",
                              field(&RunConfig::parallel, &ParallelSection::reduce_each_micro_step)));
  out.push_back(
      switch_option("parallel", "overlap",
                    "yes: gathers and reductions run on threads of their own, at the same time as computations",
                    field(&RunConfig::parallel, &ParallelSection::overlap)));
}

void add_machine(Options& out) {
  out.push_back(choice_option("reduction", "order", {"auto", "rank", "hierarchical"},
                              "rank: same bits at every world size; auto: rank on one node, hierarchical on several",
                              field(&RunConfig::reduction, &ReductionSection::order)));
  out.push_back(integer_option("checkpoint", "every",
                               "steps between checkpoints; 0: by time only; the end of a run always saves", from_zero,
                               field(&RunConfig::checkpoint, &CheckpointSection::every)));
  out.push_back(number_option("checkpoint", "minutes", "X >= 0",
                              "save after the step that ends this long after the last checkpoint; 0: by steps only",
                              field(&RunConfig::checkpoint, &CheckpointSection::minutes)));
  out.push_back(integer_option("checkpoint", "keep", "newest complete checkpoints to keep; 0: all", from_zero,
                               field(&RunConfig::checkpoint, &CheckpointSection::keep)));
  out.push_back(text_choice_option("compute", "backend", {"cpu", "cuda"}, "what computes",
                                   field(&RunConfig::compute, &ComputeSection::backend)));
  out.push_back(integer_option("compute", "threads", "threads of each rank", IntegerRange{1, 4096},
                               field(&RunConfig::compute, &ComputeSection::threads)));
}

Options make_options() {
  Options out;
  add_run(out);
  add_model(out);
  add_data(out);
  add_train(out);
  add_optim(out);
  add_parallel(out);
  add_machine(out);
  out.push_back(text_option("output", "timeline", "FIRST:LAST",
                            "steps whose operations are written to timeline.json in dir, a Chrome trace; empty: none",
                            field(&RunConfig::output, &OutputSection::timeline)));
  return out;
}

}  // namespace

const std::vector<ConfigOption>& config_options() {
  static const Options options = make_options();
  return options;
}

}  // namespace lamina
