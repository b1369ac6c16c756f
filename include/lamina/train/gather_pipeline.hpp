// Gathers units ahead of their use, in the order of use.
#pragma once

#include <span>
#include <vector>

#include <lamina/shard/weight_store.hpp>

namespace lamina {

// `uses` lists the units one pass needs, one entry a use; neighbours differ. For each entry in turn: acquire(),
// compute, release(). acquire() starts the gathers of up to store.prefetch() later uses before it waits for its own. A
// unit that is still in use is not gathered ahead again: one gather for each use, whatever the depth. A store that
// keeps units full gathers each once, and it is released after its last use.
class GatherPipeline {
 public:
  GatherPipeline(WeightStore& store, std::vector<std::size_t> uses);

  [[nodiscard]] std::span<const float> acquire();
  void release();
  // All uses are over.
  [[nodiscard]] bool done() const { return current_ == uses_.size(); }

 private:
  WeightStore& store_;
  std::vector<std::size_t> uses_;
  std::size_t current_ = 0;   // the use that acquire() serves next
  std::size_t gathered_ = 0;  // uses before this one have been gathered
};

}  // namespace lamina
