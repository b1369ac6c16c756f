// The operations of one training step of the small Llama of PERFORMANCE.md, as benchmark cases.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <lamina/backends/backend.hpp>

namespace lamina::bench {

struct Case {
  std::string name;
  double flops = 0;           // of matrix products (attention: the causal half only); 0 for the others
  double bytes = 0;           // moved when nothing is in a cache
  std::int64_t per_step = 0;  // calls in one training step
  std::function<void()> run;
};

struct StepShape {
  std::int64_t sequences = 4, seq_len = 256, hidden = 512, layers = 8, heads = 8, kv_heads = 4, mlp = 1408,
               vocabulary = 8192;
  std::int64_t loss_chunk = 256;  // tokens whose logits exist at once
  [[nodiscard]] std::int64_t tokens() const { return sequences * seq_len; }
  [[nodiscard]] std::int64_t head_dim() const { return hidden / heads; }
};

// Operands and cases. Keeps references to `backend`.
class OpsCases {
 public:
  OpsCases(Backend& backend, const StepShape& shape);
  [[nodiscard]] const std::vector<Case>& cases() const { return cases_; }
  // y += x over as many elements as AdamW updates: the memory bandwidth to compare with.
  [[nodiscard]] const Case& bandwidth() const { return bandwidth_; }

 private:
  TensorView matrix(std::int64_t rows, std::int64_t cols);
  void add_linear(const std::string& name, std::int64_t tokens, std::int64_t in, std::int64_t out,
                  std::int64_t per_step);
  void add_attention();
  void add_pointwise();
  void add_loss();
  void add_shards();

  Backend& backend_;
  StepShape shape_;
  std::vector<Buffer> memory_;
  std::vector<Case> cases_;
  Case bandwidth_;
  std::vector<std::int32_t> ids_, positions_;
  std::vector<float> losses_;
};

}  // namespace lamina::bench
