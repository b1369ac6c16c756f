// Linear maps, normalisation, activations and element-wise operations: shape checks in front of the backend.
#include "shape_check.hpp"

#include <lamina/ops/ops.hpp>

#include <fmt/format.h>

namespace lamina {

using detail::ShapeCheck;

namespace {

// w of a linear map cols(x) -> cols(y).
void check_linear(const ShapeCheck& check, ConstTensorView y, ConstTensorView x, ConstTensorView w, WeightLayout layout,
                  std::string_view y_name, std::string_view x_name, std::string_view w_name) {
  check.valid({y_name, y});
  check.valid({x_name, x});
  check.valid({w_name, w});
  const bool out_in = layout == WeightLayout::out_in;
  const std::int64_t out = out_in ? w.rows : w.cols;
  const std::int64_t in = out_in ? w.cols : w.rows;
  if (x.rows != y.rows || x.cols != in || y.cols != out) {
    check.fail(fmt::format("{} {} does not fit {} {} and {} {} ({})", w_name, detail::shape_text(w), x_name,
                           detail::shape_text(x), y_name, detail::shape_text(y),
                           out_in ? "w is [out, in]" : "w is [in, out]"));
  }
}

}  // namespace

void Ops::linear_forward(TensorView y, ConstTensorView x, ConstTensorView w, ConstTensorView bias, WeightLayout layout,
                         Write write) {
  const ShapeCheck check("linear_forward");
  check_linear(check, y, x, w, layout, "y", "x", "w");
  if (!bias.empty()) check.vector({"bias", bias}, y.cols, {"y", y});
  check.apart({"y", y}, {"x", x});
  check.apart({"y", y}, {"w", w});
  do_linear_forward(y, x, w, bias, layout, write);
}

void Ops::linear_backward_input(TensorView dx, ConstTensorView dy, ConstTensorView w, WeightLayout layout,
                                Write write) {
  const ShapeCheck check("linear_backward_input");
  check_linear(check, dy, dx, w, layout, "dy", "dx", "w");
  check.apart({"dx", dx}, {"dy", dy});
  check.apart({"dx", dx}, {"w", w});
  do_linear_backward_input(dx, dy, w, layout, write);
}

void Ops::linear_backward_weight(TensorView dw, ConstTensorView dy, ConstTensorView x, WeightLayout layout,
                                 Write write) {
  const ShapeCheck check("linear_backward_weight");
  check_linear(check, dy, x, dw, layout, "dy", "x", "dw");
  check.apart({"dw", dw}, {"dy", dy});
  check.apart({"dw", dw}, {"x", x});
  do_linear_backward_weight(dw, dy, x, layout, write);
}

void Ops::linear_backward_bias(TensorView dbias, ConstTensorView dy, Write write) {
  const ShapeCheck check("linear_backward_bias");
  check.valid({"dy", dy});
  check.vector({"dbias", dbias}, dy.cols, {"dy", dy});
  check.apart({"dbias", dbias}, {"dy", dy});
  do_linear_backward_bias(dbias, dy, write);
}

void Ops::rms_norm_forward(TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w, float eps) {
  const ShapeCheck check("rms_norm_forward");
  check.same_shape({"y", y}, {"x", x});
  check.vector({"rstd", rstd}, x.rows, {"x", x});
  check.vector({"w", w}, x.cols, {"x", x});
  check.apart({"y", y}, {"x", x});
  do_rms_norm_forward(y, rstd, x, w, eps);
}

void Ops::rms_norm_backward(TensorView dx, TensorView dw, ConstTensorView dy, ConstTensorView x, ConstTensorView rstd,
                            ConstTensorView w, Write write_dx, Write write_dw) {
  const ShapeCheck check("rms_norm_backward");
  check.same_shape({"dx", dx}, {"x", x});
  check.same_shape({"dy", dy}, {"x", x});
  check.vector({"rstd", rstd}, x.rows, {"x", x});
  check.vector({"w", w}, x.cols, {"x", x});
  check.vector({"dw", dw}, x.cols, {"x", x});
  check.apart({"dx", dx}, {"x", x});
  if (dx.data != dy.data || dx.stride != dy.stride || write_dx == Write::add) check.apart({"dx", dx}, {"dy", dy});
  do_rms_norm_backward(dx, dw, dy, x, rstd, w, write_dx, write_dw);
}

void Ops::layer_norm_forward(TensorView y, TensorView mean, TensorView rstd, ConstTensorView x, ConstTensorView w,
                             ConstTensorView b, float eps) {
  const ShapeCheck check("layer_norm_forward");
  check.same_shape({"y", y}, {"x", x});
  check.vector({"mean", mean}, x.rows, {"x", x});
  check.vector({"rstd", rstd}, x.rows, {"x", x});
  check.vector({"w", w}, x.cols, {"x", x});
  check.vector({"b", b}, x.cols, {"x", x});
  check.apart({"y", y}, {"x", x});
  do_layer_norm_forward(y, mean, rstd, x, w, b, eps);
}

void Ops::layer_norm_backward(TensorView dx, TensorView dw, TensorView db, ConstTensorView dy, ConstTensorView x,
                              ConstTensorView mean, ConstTensorView rstd, ConstTensorView w, Write write_dx,
                              Write write_dw) {
  const ShapeCheck check("layer_norm_backward");
  check.same_shape({"dx", dx}, {"x", x});
  check.same_shape({"dy", dy}, {"x", x});
  check.vector({"mean", mean}, x.rows, {"x", x});
  check.vector({"rstd", rstd}, x.rows, {"x", x});
  check.vector({"w", w}, x.cols, {"x", x});
  check.vector({"dw", dw}, x.cols, {"x", x});
  check.vector({"db", db}, x.cols, {"x", x});
  check.apart({"dx", dx}, {"x", x});
  if (dx.data != dy.data || dx.stride != dy.stride || write_dx == Write::add) check.apart({"dx", dx}, {"dy", dy});
  do_layer_norm_backward(dx, dw, db, dy, x, mean, rstd, w, write_dx, write_dw);
}

void Ops::swiglu_forward(TensorView y, ConstTensorView gate_up) {
  const ShapeCheck check("swiglu_forward");
  check.valid({"y", y});
  check.shape({"gate_up", gate_up}, y.rows, 2 * y.cols, {"y", y});
  check.apart({"y", y}, {"gate_up", gate_up});
  do_swiglu_forward(y, gate_up);
}

void Ops::swiglu_backward(TensorView d_gate_up, ConstTensorView dy, ConstTensorView gate_up) {
  const ShapeCheck check("swiglu_backward");
  check.valid({"dy", dy});
  check.shape({"gate_up", gate_up}, dy.rows, 2 * dy.cols, {"dy", dy});
  check.same_shape({"d_gate_up", d_gate_up}, {"gate_up", gate_up});
  check.apart({"d_gate_up", d_gate_up}, {"dy", dy});
  if (d_gate_up.data != gate_up.data || d_gate_up.stride != gate_up.stride) {
    check.apart({"d_gate_up", d_gate_up}, {"gate_up", gate_up});
  }
  do_swiglu_backward(d_gate_up, dy, gate_up);
}

void Ops::gelu_forward(TensorView y, ConstTensorView x) {
  const ShapeCheck check("gelu_forward");
  check.same_shape({"y", y}, {"x", x});
  check.apart({"y", y}, {"x", x});
  do_gelu_forward(y, x);
}

void Ops::gelu_backward(TensorView dx, ConstTensorView dy, ConstTensorView x) {
  const ShapeCheck check("gelu_backward");
  check.same_shape({"dx", dx}, {"x", x});
  check.same_shape({"dy", dy}, {"x", x});
  check.apart({"dx", dx}, {"x", x});
  if (dx.data != dy.data || dx.stride != dy.stride) check.apart({"dx", dx}, {"dy", dy});
  do_gelu_backward(dx, dy, x);
}

void Ops::add(TensorView y, ConstTensorView x) {
  const ShapeCheck check("add");
  check.same_shape({"y", y}, {"x", x});
  check.apart({"y", y}, {"x", x});
  do_add(y, x);
}

void Ops::copy(TensorView y, ConstTensorView x) {
  const ShapeCheck check("copy");
  check.same_shape({"y", y}, {"x", x});
  check.apart({"y", y}, {"x", x});
  do_copy(y, x);
}

void Ops::fill(TensorView y, float value) {
  ShapeCheck("fill").valid({"y", y});
  do_fill(y, value);
}

}  // namespace lamina
