#include "norm.hpp"

namespace lamina {

void norm_forward(Ops& ops, const ModelConfig& config, TensorView y, const NormStats& stats, ConstTensorView x,
                  const NormTensors<const float*>& w) {
  const auto eps = static_cast<float>(config.norm_eps);
  if (config.norm == NormKind::rms) {
    ops.rms_norm_forward(y, stats.rstd, x, w.weight, eps);
  } else {
    ops.layer_norm_forward(y, stats.mean, stats.rstd, x, w.weight, w.bias, eps);
  }
}

void norm_backward(Ops& ops, TensorView dx, const NormTensors<float*>& dw, ConstTensorView dy, ConstTensorView x,
                   const NormStats& stats, const NormTensors<const float*>& w, Write write_dx, Write write_dw) {
  if (stats.mean.empty()) {
    ops.rms_norm_backward(dx, dw.weight, dy, x, stats.rstd, w.weight, write_dx, write_dw);
  } else {
    ops.layer_norm_backward(dx, dw.weight, dw.bias, dy, x, stats.mean, stats.rstd, w.weight, write_dx, write_dw);
  }
}

}  // namespace lamina
