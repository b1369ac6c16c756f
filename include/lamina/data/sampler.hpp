// Which window of which data a sample is: a pure function of (seed, sample index).
//
// Samples are numbered over the whole run: step s of global batch B takes samples [s*B, (s+1)*B). Nothing else is
// state, so a run that goes on at sample n, at any world size, sees what it would have seen.
//
// One stream: epoch e is samples [e*N, (e+1)*N) and visits each of its N windows exactly once, in an order of its own
// (a Feistel permutation keyed by seed, stream and epoch; base/random.hpp). Several streams with weights: stream k gets
// its share of every prefix of the samples up to an error below the number of streams (nested Bresenham lines: the
// first stream against all others, the second against the rest, ...), and each stream goes through epochs of its own.
// Weights are relative; they are rounded to 2^-32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina {

struct SampleStream {
  std::uint64_t windows = 0;  // at least 1
  double weight = 1;          // above 0, relative to the others
};

struct Draw {
  std::size_t stream = 0;
  std::uint64_t window = 0;  // of the stream
  std::uint64_t epoch = 0;   // of the stream
};

class DataSampler {
 public:
  DataSampler(std::uint64_t seed, std::span<const SampleStream> streams);
  // Any sample below 2^63.
  [[nodiscard]] Draw at(std::uint64_t sample) const;

 private:
  struct Stream {
    std::uint64_t windows;
    std::uint64_t share;  // of the samples that no stream before took, in units of 2^-32
  };
  std::uint64_t seed_;
  std::vector<Stream> streams_;
};

}  // namespace lamina
