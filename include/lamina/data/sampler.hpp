// Which window of which data a sample is: a pure function of (seed, sample index).
//
// Samples are numbered over the whole run: step s of global batch B takes samples [s*B, (s+1)*B). Nothing else is
// state, so a run that goes on at sample n, at any world size, sees what it would have seen.
//
// One stream of N windows: epoch e visits windows in an order of its own (a Feistel permutation keyed by seed, stream
// and epoch; base/random.hpp). Where epochs end (`EpochEnd`) when the global batch B does not divide N:
//   wrap  epoch e is samples [e*N, (e+1)*N): every window once, and a batch may hold the end of one epoch and the
//         beginning of the next (with N < B also a window twice);
//   drop  epoch e is samples [e*U, (e+1)*U) with U = N - N mod B: the last N - U windows of the epoch's order are left
//         out (which ones differs from epoch to epoch); N >= B;
//   pad   epoch e is samples [e*P, (e+1)*P) with P the next multiple of B: every window once, the last P - N samples
//         are padding.
// With drop and pad no batch spans two epochs. A sample's number then means another window at another B: the checkpoint
// keeps B.
//
// Several streams with weights: stream k gets its share of every prefix of the samples up to an error below the number
// of streams (nested Bresenham lines: the first stream against all others, the second against the rest, ...), and each
// stream goes through epochs of its own. Weights are relative; they are rounded to 2^-32.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <lamina/config/run_config.hpp>

namespace lamina {

struct SampleStream {
  std::uint64_t windows = 0;  // at least 1
  double weight = 1;          // above 0, relative to the others
};

struct Draw {
  std::size_t stream = 0;
  std::uint64_t window = 0;  // of the stream
  std::uint64_t epoch = 0;   // of the stream
  bool padding = false;      // no window: a row without labels
};

struct EpochEnd {
  LastBatch last_batch = LastBatch::wrap;
  std::uint64_t global_batch = 1;
};
[[nodiscard]] std::string_view name_of(LastBatch last_batch);  // "wrap", "drop", "pad"
// Samples of an epoch of `windows`; 0 for drop with fewer windows than a batch.
[[nodiscard]] std::uint64_t samples_an_epoch(std::uint64_t windows, const EpochEnd& end);

class DataSampler {
 public:
  // Several streams only wrap: each has epochs of its own. No epoch may be without samples.
  DataSampler(std::uint64_t seed, std::span<const SampleStream> streams, const EpochEnd& end = {});
  // Orders of other epochs for the same samples: what the run uses after its data began anew for the `times`-th time. 0
  // is the order that a fresh run has.
  void begin_anew(std::uint64_t times);
  // Any sample below 2^63.
  [[nodiscard]] Draw at(std::uint64_t sample) const;

 private:
  struct Stream {
    std::uint64_t windows;
    std::uint64_t epoch;  // samples of one
    std::uint64_t share;  // of the samples that no stream before took, in units of 2^-32
  };
  std::uint64_t seed_;   // as given
  std::uint64_t order_;  // what keys the orders: the seed until the data begin anew
  std::vector<Stream> streams_;
};

}  // namespace lamina
