// The model's norm, RMSNorm or LayerNorm, as one operation.
#pragma once

#include "activations.hpp"

#include <lamina/ops/ops.hpp>

namespace lamina {

// weight and bias [1, h]; the bias is empty for RMSNorm.
template <typename Pointer>
struct NormTensors {
  BasicTensorView<Pointer> weight, bias;
};

// y, x [T, h].
void norm_forward(Ops& ops, const ModelConfig& config, TensorView y, const NormStats& stats, ConstTensorView x,
                  const NormTensors<const float*>& w);

// dx and the gradients of weight and bias as the `write`s say.
void norm_backward(Ops& ops, TensorView dx, const NormTensors<float*>& dw, ConstTensorView dy, ConstTensorView x,
                   const NormStats& stats, const NormTensors<const float*>& w, Write write_dx, Write write_dw);

}  // namespace lamina
