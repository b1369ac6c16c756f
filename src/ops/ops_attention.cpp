// Positions and attention: shape checks in front of the backend.
#include "shape_check.hpp"

#include <lamina/ops/ops.hpp>

#include <fmt/format.h>

namespace lamina {

using detail::ShapeCheck;

namespace {

void check_attention_shape(const ShapeCheck& check, const AttentionShape& s) {
  check.that(s.batch >= 0 && s.q_len >= 0 && s.kv_len >= s.q_len,
             fmt::format("batch {}, q_len {} and kv_len {} must be non-negative with kv_len >= q_len", s.batch, s.q_len,
                         s.kv_len));
  check.that(s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.heads % s.kv_heads == 0,
             fmt::format("{} heads of {} elements must be a positive multiple of {} kv_heads", s.heads, s.head_dim,
                         s.kv_heads));
  check.that(s.window >= 0, fmt::format("window {} must be 0 (none) or positive", s.window));
  check.that(s.scale != 0, "scale is 0: usually 1/sqrt(head_dim)");
}

void check_first_visible(const ShapeCheck& check, const AttentionShape& s) {
  if (s.first_visible.empty()) return;
  check.that(s.q_len == s.kv_len, fmt::format("first_visible requires q_len {} == kv_len {}", s.q_len, s.kv_len));
  check.that(static_cast<std::int64_t>(s.first_visible.size()) == s.batch * s.q_len,
             fmt::format("first_visible [{}] must have batch {} x q_len {} entries", s.first_visible.size(), s.batch,
                         s.q_len));
  for (std::size_t i = 0; i < s.first_visible.size(); ++i) {
    const std::int64_t position = static_cast<std::int64_t>(i) % s.q_len;
    if (s.first_visible[i] < 0 || s.first_visible[i] > position) {
      check.fail(
          fmt::format("first_visible[{}] = {} is outside [0, {}], its own position", i, s.first_visible[i], position));
    }
  }
}

struct AttentionViews {
  ConstTensorView o, lse, q, k, v;
};

void check_attention(const ShapeCheck& check, const AttentionViews& a, const AttentionShape& s) {
  check_attention_shape(check, s);
  const std::int64_t q_rows = s.batch * s.q_len;
  const std::int64_t kv_rows = s.batch * s.kv_len;
  const auto expect = [&](std::string_view name, ConstTensorView view, std::int64_t rows, std::int64_t cols) {
    check.valid({name, view});
    if (view.rows == rows && view.cols == cols) return;
    check.fail(fmt::format(
        "{} {} must be [{}, {}] for batch {}, q_len {}, kv_len {}, {} heads, {} kv_heads, head_dim {}", name,
        detail::shape_text(view), rows, cols, s.batch, s.q_len, s.kv_len, s.heads, s.kv_heads, s.head_dim));
  };
  expect("q", a.q, q_rows, s.heads * s.head_dim);
  expect("k", a.k, kv_rows, s.kv_heads * s.head_dim);
  expect("v", a.v, kv_rows, s.kv_heads * s.head_dim);
  expect("o", a.o, q_rows, s.heads * s.head_dim);
  expect("lse", a.lse, s.heads, q_rows);
  check_first_visible(check, s);
}

}  // namespace

void Ops::rope(TensorView x, std::int64_t head_dim, ConstTensorView cos_sin, std::span<const std::int32_t> positions,
               bool inverse) {
  const ShapeCheck check("rope");
  check.valid({"x", x});
  check.valid({"cos_sin", cos_sin});
  check.that(head_dim > 0 && x.cols % head_dim == 0,
             fmt::format("x {} must hold whole heads of {} elements", detail::shape_text(x), head_dim));
  check.that(cos_sin.cols == 2 * (head_dim / 2),
             fmt::format("cos_sin {} does not fit head_dim {}: expected [positions, {}]", detail::shape_text(cos_sin),
                         head_dim, 2 * (head_dim / 2)));
  check.length("positions", positions.size(), x.rows, {"x", x});
  check.in_range("positions", positions, cos_sin.rows, "rows of cos_sin");
  check.apart({"x", x}, {"cos_sin", cos_sin});
  do_rope(x, head_dim, cos_sin, positions, inverse);
}

void Ops::attention_forward(TensorView o, TensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                            const AttentionShape& shape) {
  const ShapeCheck check("attention_forward");
  check_attention(check, {o, lse, q, k, v}, shape);
  check.apart({"o", o}, {"q", q});
  check.apart({"o", o}, {"k", k});
  check.apart({"o", o}, {"v", v});
  do_attention_forward(o, lse, q, k, v, shape);
}

void Ops::attention_backward(TensorView dq, TensorView dk, TensorView dv, ConstTensorView d_out, ConstTensorView o,
                             ConstTensorView lse, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                             const AttentionShape& shape) {
  const ShapeCheck check("attention_backward");
  check_attention(check, {o, lse, q, k, v}, shape);
  check.same_shape({"d_out", d_out}, {"o", o});
  check.same_shape({"dq", dq}, {"q", q});
  check.same_shape({"dk", dk}, {"k", k});
  check.same_shape({"dv", dv}, {"v", v});
  for (const detail::Operand& out : {detail::Operand{"dq", dq}, detail::Operand{"dk", dk}, detail::Operand{"dv", dv}}) {
    for (const detail::Operand& in : {detail::Operand{"d_out", d_out}, detail::Operand{"o", o}, detail::Operand{"q", q},
                                      detail::Operand{"k", k}, detail::Operand{"v", v}}) {
      check.apart(out, in);
    }
  }
  check.apart({"dk", dk}, {"dv", dv});
  check.apart({"dq", dq}, {"dk", dk});
  check.apart({"dq", dq}, {"dv", dv});
  do_attention_backward(dq, dk, dv, d_out, o, lse, q, k, v, shape);
}

}  // namespace lamina
