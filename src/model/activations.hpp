// The memory of one micro-batch: what each block keeps for its backward, and what is scratch.
//
// Kept per token and block: the residual stream twice (2h), q|k|v, the attention output, log-sum-exps, and the MLP's
// pre-activation. Norm outputs, SwiGLU/GELU outputs and normalised q and k are recomputed in the backward: each is one
// cheap pass.
#pragma once

#include <cstdint>
#include <vector>

#include <lamina/model/model_config.hpp>
#include <lamina/tensor/tensor_view.hpp>

namespace lamina {

// Row statistics of a norm; `mean` is empty for RMSNorm.
struct NormStats {
  TensorView rstd, mean;  // [1, T]
};

struct BlockActivations {
  TensorView x_in, x_mid, x_out;  // [T, h] residual stream; without training all three are the same memory
  TensorView qkv;                 // [T, q+2kv]: q and k rotated, unless normalised per head (then as projected)
  TensorView attention;           // [T, q]
  TensorView lse;                 // [heads, T]
  TensorView up;                  // [T, 2f] gate|up, or [T, f] before GELU; the backward writes its gradient over it
  NormStats norm1, norm2;
};

struct BlockScratch {
  TensorView normed;       // [T, h] a norm's output, later its gradient
  TensorView mlp;          // [T, f] activation output, later its gradient
  TensorView d_attention;  // [T, q]; shares memory with `mlp`
  TensorView d_qkv;        // [T, q+2kv]
  TensorView rotated;      // [T, q+kv] normalised and rotated q|k; only with qk_norm
  TensorView head_rstd;    // [heads+kv_heads, T]; only with qk_norm
};

struct HeadActivations {
  NormStats norm;     // of one chunk
  TensorView normed;  // [chunk, h]
  TensorView logits;  // [chunk, V]
};

// Hands out consecutive matrices of one float buffer; with a null base it only counts.
class Arena {
 public:
  explicit Arena(float* base) : base_(base) {}
  TensorView take(std::int64_t rows, std::int64_t cols);
  [[nodiscard]] std::int64_t floats() const { return used_; }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

struct ActivationLimits {
  std::int64_t tokens = 0;
  std::int64_t rope_positions = 0;  // rows of the rope table; 0 without rope
  std::int64_t head_rows = 0;       // tokens whose logits exist at once
  bool training = false;
};

struct Activations {
  std::vector<BlockActivations> blocks;
  BlockScratch scratch;
  HeadActivations head;
  TensorView final_x;     // [T, h] after the last block
  TensorView d_x;         // [T, h] gradient of the residual stream; only for training
  TensorView rope_table;  // [rope_positions, 2*(head_dim/2)]
};

// Tokens whose logits exist at once.
inline constexpr std::int64_t head_chunk = 256;

[[nodiscard]] Activations lay_out_activations(Arena& arena, const ModelConfig& config, const ActivationLimits& limits);

// The same memory seen as `tokens` rows (at most as many as it was laid out for).
[[nodiscard]] BlockActivations narrowed(const BlockActivations& whole, std::int64_t tokens);
[[nodiscard]] BlockScratch narrowed(const BlockScratch& whole, std::int64_t tokens);

}  // namespace lamina
