// What a compute backend computes: the one interface between the model and the hardware.
//
// All matrices are row-major views; T is the number of tokens (rows) of a micro-batch, batch-major: row b*S + s is
// position s of sequence b. Public functions check shapes once for every backend and throw InternalError naming the
// operands; the do_* functions compute. Outputs never alias inputs unless said. Results are deterministic: they depend
// on the inputs and the number of threads only.
//
// `Write::overwrite` stores the result (old content, even NaN, is ignored); `Write::add` adds to what is there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <lamina/base/exact_sum.hpp>
#include <lamina/tensor/tensor_view.hpp>

namespace lamina {

enum class Write { overwrite, add };

// How a weight of a linear map I -> O lies in memory: [O, I] (nn.Linear) or [I, O] (GPT-2's Conv1D).
enum class WeightLayout { out_in, in_out };

inline constexpr std::int32_t ignored_label = -100;

// One causal attention problem. Query row i of a sequence sits at absolute position kv_len - q_len + i and sees keys at
// positions [max(0, pos - window + 1), pos]; window 0 means unlimited. q: [batch*q_len, heads*head_dim]; k, v:
// [batch*kv_len, kv_heads*head_dim]; heads is a multiple of kv_heads; query head h uses key/value head h / (heads /
// kv_heads).
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  float scale = 0;          // usually 1/sqrt(head_dim)
  std::int64_t window = 0;  // sliding window in tokens, 0 = none
  // Optional: first visible position of each query row ([batch*q_len], absolute within its sequence, <= its own
  // position), so that packed documents do not see each other. Requires q_len == kv_len. Empty = 0 everywhere.
  std::span<const std::int32_t> first_visible = {};
};

// One AdamW step on contiguous elements (Loshchilov and Hutter 2019, as torch.optim.AdamW computes it):
//   g = grad_scale * grad;  p *= 1 - lr*weight_decay;  m = beta1*m + (1-beta1)*g;  v = beta2*v + (1-beta2)*g*g;
//   p -= lr/bias1 * m / (sqrt(v)/sqrt(bias2) + eps),  bias_i = 1 - beta_i^t.
// In double, because 1 - beta2 of a float beta2 is wrong in the fifth digit; the update itself computes in fp32.
struct AdamWStep {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  double bias1 = 1, bias2 = 1;
  double grad_scale = 1;
};

// One step of SGD on contiguous elements, as torch.optim.SGD computes it (no dampening):
//   g = grad_scale * grad + weight_decay * p;  b = momentum*b + g;  p -= lr * (nesterov ? g + momentum*b : b).
// Without momentum: p -= lr * g.
struct SgdStep {
  double lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double grad_scale = 1;
};

// One Lion step on contiguous elements (Chen et al. 2023, algorithm 2):
//   g = grad_scale * grad;  u = sign(beta1*m + (1-beta1)*g);  p = p * (1 - lr*weight_decay) - lr*u;
//   m = beta2*m + (1-beta2)*g.  sign(0) is 0.
struct LionStep {
  double lr = 0, beta1 = 0, beta2 = 0, weight_decay = 0;
  double grad_scale = 1;
};

// What the loss of a labelled token is besides its cross-entropy. With p = softmax(logits) and V logits:
//   (1-e) * -log p[label] + e/V * sum_i -log p[i] + z * log(sum_i exp logits[i])^2
// e: label smoothing (Szegedy et al. 2016, as torch.nn.CrossEntropyLoss computes it), 0 <= e < 1. z: the coefficient of
// PaLM's z-loss (Chowdhery et al. 2022), z >= 0, which keeps the normaliser near 1.
struct LossTerms {
  double label_smoothing = 0;
  double z_loss = 0;
};

class Ops {
 public:
  virtual ~Ops() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // --- linear maps: y[T,O], x[T,I], w as `layout` says, bias [1,O] or empty
  // -------------------------------------------
  void linear_forward(TensorView y, ConstTensorView x, ConstTensorView w, ConstTensorView bias, WeightLayout layout,
                      Write write = Write::overwrite);  // Write::add: y += x w (+ bias)
  void linear_backward_input(TensorView dx, ConstTensorView dy, ConstTensorView w, WeightLayout layout, Write write);
  void linear_backward_weight(TensorView dw, ConstTensorView dy, ConstTensorView x, WeightLayout layout, Write write);
  // dbias[1,O] = column sums of dy[T,O].
  void linear_backward_bias(TensorView dbias, ConstTensorView dy, Write write);

  // --- normalisation: x, y [T,h]; weight, bias [1,h]; rstd, mean [1,T] kept for backward
  // ------------------------------ y = x * rstd * w, rstd = 1/sqrt(mean(x^2) + eps).
  void rms_norm_forward(TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w, float eps);
  // dx as `write_dx` says (Write::add joins the residual path); dw as `write_dw` says. dx may be the same view as dy
  // only with overwrite.
  void rms_norm_backward(TensorView dx, TensorView dw, ConstTensorView dy, ConstTensorView x, ConstTensorView rstd,
                         ConstTensorView w, Write write_dx, Write write_dw);
  void layer_norm_forward(TensorView y, TensorView mean, TensorView rstd, ConstTensorView x, ConstTensorView w,
                          ConstTensorView b, float eps);
  void layer_norm_backward(TensorView dx, TensorView dw, TensorView db, ConstTensorView dy, ConstTensorView x,
                           ConstTensorView mean, ConstTensorView rstd, ConstTensorView w, Write write_dx,
                           Write write_dw);

  // --- positions -----------------------------------------------------------------------------------------------------
  // Rotates x [T, heads*head_dim] in place (Su et al. 2021, "rotate half" pairing of i and i + head_dim/2, as Hugging
  // Face stores Llama weights). cos_sin: [max_positions, 2*(head_dim/2)], cosines then sines; positions: [T]. `inverse`
  // rotates back (the backward). With an odd head_dim the last element is left alone.
  void rope(TensorView x, std::int64_t head_dim, ConstTensorView cos_sin, std::span<const std::int32_t> positions,
            bool inverse);

  // --- attention
  // ------------------------------------------------------------------------------------------------------- o
  // [batch*q_len, heads*head_dim]; lse [heads, batch*q_len] (log-sum-exp of the scaled scores). Blocked with online
  // softmax (Dao et al. 2022): never a q_len x kv_len matrix for kv_len > 256.
  void attention_forward(TensorView o, TensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                         const AttentionShape& shape);
  // Overwrites dq, dk, dv.
  void attention_backward(TensorView dq, TensorView dk, TensorView dv, ConstTensorView d_out, ConstTensorView o,
                          ConstTensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                          const AttentionShape& shape);

  // --- activations
  // ----------------------------------------------------------------------------------------------------- y[T,f] =
  // silu(gate) * up, with gate_up[T,2f] = [gate, up].
  void swiglu_forward(TensorView y, ConstTensorView gate_up);
  // d_gate_up may be the same view as gate_up.
  void swiglu_backward(TensorView d_gate_up, ConstTensorView dy, ConstTensorView gate_up);
  // GELU in the tanh form ("gelu_new"). dx may be the same view as dy.
  void gelu_forward(TensorView y, ConstTensorView x);
  void gelu_backward(TensorView dx, ConstTensorView dy, ConstTensorView x);
  // y += x.
  void add(TensorView y, ConstTensorView x);
  void copy(TensorView y, ConstTensorView x);
  void fill(TensorView y, float value);

  // --- tokens
  // ---------------------------------------------------------------------------------------------------------- y[t] =
  // table[ids[t]] (Write::add: +=). ids in [0, table.rows): checked, InternalError.
  void embedding_forward(TensorView y, ConstTensorView table, std::span<const std::int32_t> ids,
                         Write write = Write::overwrite);
  // d_table[ids[t]] += dy[t] in token order; Write::overwrite clears the table first.
  void embedding_backward(TensorView d_table, ConstTensorView dy, std::span<const std::int32_t> ids, Write write);
  // logits [c,V] of c tokens; labels [c] in [0,V) or ignored_label; losses [c] get -log softmax(logits)[label] and what
  // `terms` say (0 when ignored). With `to_gradient` logits become the gradient of the SUM of losses (0 rows when
  // ignored): softmax - onehot without terms.
  void cross_entropy(TensorView logits, std::span<const std::int32_t> labels, std::span<float> losses, bool to_gradient,
                     const LossTerms& terms = {});

  // --- shards
  // ---------------------------------------------------------------------------------------------------------- One pass
  // over contiguous shards of equal length.
  void adamw(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq, std::span<const float> grad,
             const AdamWStep& step);
  // As adamw, but the decay enters the gradient (torch.optim.Adam): g = grad_scale * grad + weight_decay * p, and p is
  // not decayed by itself.
  void adam(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq, std::span<const float> grad,
            const AdamWStep& step);
  // momentum_buffer: as long as param, or empty exactly when step.momentum is 0.
  void sgd(std::span<float> param, std::span<float> momentum_buffer, std::span<const float> grad, const SgdStep& step);
  void lion(std::span<float> param, std::span<float> exp_avg, std::span<const float> grad, const LionStep& step);
  // Adds the sum of squares to `sum`, exactly: the result does not depend on the order of elements nor on how they are
  // cut.
  void add_sum_of_squares(ExactSum& sum, std::span<const float> x);

 protected:
  virtual void do_linear_forward(TensorView y, ConstTensorView x, ConstTensorView w, ConstTensorView bias,
                                 WeightLayout layout, Write write) = 0;
  virtual void do_linear_backward_input(TensorView dx, ConstTensorView dy, ConstTensorView w, WeightLayout layout,
                                        Write write) = 0;
  virtual void do_linear_backward_weight(TensorView dw, ConstTensorView dy, ConstTensorView x, WeightLayout layout,
                                         Write write) = 0;
  virtual void do_linear_backward_bias(TensorView dbias, ConstTensorView dy, Write write) = 0;
  virtual void do_rms_norm_forward(TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w, float eps) = 0;
  virtual void do_rms_norm_backward(TensorView dx, TensorView dw, ConstTensorView dy, ConstTensorView x,
                                    ConstTensorView rstd, ConstTensorView w, Write write_dx, Write write_dw) = 0;
  virtual void do_layer_norm_forward(TensorView y, TensorView mean, TensorView rstd, ConstTensorView x,
                                     ConstTensorView w, ConstTensorView b, float eps) = 0;
  virtual void do_layer_norm_backward(TensorView dx, TensorView dw, TensorView db, ConstTensorView dy,
                                      ConstTensorView x, ConstTensorView mean, ConstTensorView rstd, ConstTensorView w,
                                      Write write_dx, Write write_dw) = 0;
  virtual void do_rope(TensorView x, std::int64_t head_dim, ConstTensorView cos_sin,
                       std::span<const std::int32_t> positions, bool inverse) = 0;
  virtual void do_attention_forward(TensorView o, TensorView lse, ConstTensorView q, ConstTensorView k,
                                    ConstTensorView v, const AttentionShape& shape) = 0;
  virtual void do_attention_backward(TensorView dq, TensorView dk, TensorView dv, ConstTensorView d_out,
                                     ConstTensorView o, ConstTensorView lse, ConstTensorView q, ConstTensorView k,
                                     ConstTensorView v, const AttentionShape& shape) = 0;
  virtual void do_swiglu_forward(TensorView y, ConstTensorView gate_up) = 0;
  virtual void do_swiglu_backward(TensorView d_gate_up, ConstTensorView dy, ConstTensorView gate_up) = 0;
  virtual void do_gelu_forward(TensorView y, ConstTensorView x) = 0;
  virtual void do_gelu_backward(TensorView dx, ConstTensorView dy, ConstTensorView x) = 0;
  virtual void do_add(TensorView y, ConstTensorView x) = 0;
  virtual void do_copy(TensorView y, ConstTensorView x) = 0;
  virtual void do_fill(TensorView y, float value) = 0;
  virtual void do_embedding_forward(TensorView y, ConstTensorView table, std::span<const std::int32_t> ids,
                                    Write write) = 0;
  virtual void do_embedding_backward(TensorView d_table, ConstTensorView dy, std::span<const std::int32_t> ids,
                                     Write write) = 0;
  virtual void do_cross_entropy(TensorView logits, std::span<const std::int32_t> labels, std::span<float> losses,
                                bool to_gradient, const LossTerms& terms) = 0;
  virtual void do_adamw(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                        std::span<const float> grad, const AdamWStep& step) = 0;
  virtual void do_adam(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                       std::span<const float> grad, const AdamWStep& step) = 0;
  virtual void do_sgd(std::span<float> param, std::span<float> momentum_buffer, std::span<const float> grad,
                      const SgdStep& step) = 0;
  virtual void do_lion(std::span<float> param, std::span<float> exp_avg, std::span<const float> grad,
                       const LionStep& step) = 0;
  virtual void do_add_sum_of_squares(ExactSum& sum, std::span<const float> x) = 0;
};

}  // namespace lamina
