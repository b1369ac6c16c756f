// The operations on the CPU: OpenBLAS for matrix products, own vector kernels for the rest.
//
// Results depend on inputs and the number of threads only; those of everything but matrix products do not depend on the
// threads either, because work is cut by rows or by fixed chunks and sums use fixed lanes (lanes.hpp). No result
// depends on where an operand lies in memory.
#pragma once

#include <memory>

#include <lamina/ops/ops.hpp>

namespace lamina::cpu {

// Makes the kernels; call only on a processor that has the compiled features (cpu_features.hpp).
[[nodiscard]] std::unique_ptr<Ops> make_cpu_ops(int threads);

class CpuOps final : public Ops {
 public:
  explicit CpuOps(int threads) : threads_(threads) {}
  [[nodiscard]] std::string_view name() const override { return "cpu"; }

 protected:
  void do_linear_forward(TensorView y, ConstTensorView x, ConstTensorView w, ConstTensorView bias, WeightLayout layout,
                         Write write) override;
  void do_linear_backward_input(TensorView dx, ConstTensorView dy, ConstTensorView w, WeightLayout layout,
                                Write write) override;
  void do_linear_backward_weight(TensorView dw, ConstTensorView dy, ConstTensorView x, WeightLayout layout,
                                 Write write) override;
  void do_linear_backward_bias(TensorView dbias, ConstTensorView dy, Write write) override;
  void do_rms_norm_forward(TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w, float eps) override;
  void do_rms_norm_backward(TensorView dx, TensorView dw, ConstTensorView dy, ConstTensorView x, ConstTensorView rstd,
                            ConstTensorView w, Write write_dx, Write write_dw) override;
  void do_layer_norm_forward(TensorView y, TensorView mean, TensorView rstd, ConstTensorView x, ConstTensorView w,
                             ConstTensorView b, float eps) override;
  void do_layer_norm_backward(TensorView dx, TensorView dw, TensorView db, ConstTensorView dy, ConstTensorView x,
                              ConstTensorView mean, ConstTensorView rstd, ConstTensorView w, Write write_dx,
                              Write write_dw) override;
  void do_rope(TensorView x, std::int64_t head_dim, ConstTensorView cos_sin, std::span<const std::int32_t> positions,
               bool inverse) override;
  void do_attention_forward(TensorView o, TensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                            const AttentionShape& shape) override;
  void do_attention_backward(TensorView dq, TensorView dk, TensorView dv, ConstTensorView d_out, ConstTensorView o,
                             ConstTensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                             const AttentionShape& shape) override;
  void do_swiglu_forward(TensorView y, ConstTensorView gate_up) override;
  void do_swiglu_backward(TensorView d_gate_up, ConstTensorView dy, ConstTensorView gate_up) override;
  void do_gelu_forward(TensorView y, ConstTensorView x) override;
  void do_gelu_backward(TensorView dx, ConstTensorView dy, ConstTensorView x) override;
  void do_add(TensorView y, ConstTensorView x) override;
  void do_copy(TensorView y, ConstTensorView x) override;
  void do_fill(TensorView y, float value) override;
  void do_embedding_forward(TensorView y, ConstTensorView table, std::span<const std::int32_t> ids,
                            Write write) override;
  void do_embedding_backward(TensorView d_table, ConstTensorView dy, std::span<const std::int32_t> ids,
                             Write write) override;
  void do_cross_entropy(TensorView logits, std::span<const std::int32_t> labels, std::span<float> losses,
                        bool to_gradient, const LossTerms& terms) override;
  void do_adam(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
               std::span<const float> grad, const AdamWStep& step) override;
  void do_sgd(std::span<float> param, std::span<float> momentum_buffer, std::span<const float> grad,
              const SgdStep& step) override;
  void do_lion(std::span<float> param, std::span<float> exp_avg, std::span<const float> grad,
               const LionStep& step) override;
  void do_adamw(std::span<float> param, std::span<float> exp_avg, std::span<float> exp_avg_sq,
                std::span<const float> grad, const AdamWStep& step) override;
  void do_add_sum_of_squares(ExactSum& sum, std::span<const float> x) override;

 private:
  int threads_;
};

}  // namespace lamina::cpu
