// Token tables and the loss: shape checks in front of the backend.
#include "shape_check.hpp"

#include <cmath>

#include <lamina/ops/ops.hpp>

#include <fmt/format.h>

namespace lamina {

using detail::ShapeCheck;

namespace {

void check_embedding(const ShapeCheck& check, const detail::Operand& rows, const detail::Operand& table,
                     std::span<const std::int32_t> ids) {
  check.valid(rows);
  check.valid(table);
  check.shape(rows, rows.view.rows, table.view.cols, table);
  check.length("ids", ids.size(), rows.view.rows, rows);
  check.in_range("ids", ids, table.view.rows, "rows of the table");
  check.apart(rows, table);
}

}  // namespace

void Ops::embedding_forward(TensorView y, ConstTensorView table, std::span<const std::int32_t> ids, Write write) {
  check_embedding(ShapeCheck("embedding_forward"), {"y", y}, {"table", table}, ids);
  do_embedding_forward(y, table, ids, write);
}

void Ops::embedding_backward(TensorView d_table, ConstTensorView dy, std::span<const std::int32_t> ids, Write write) {
  check_embedding(ShapeCheck("embedding_backward"), {"dy", dy}, {"d_table", d_table}, ids);
  do_embedding_backward(d_table, dy, ids, write);
}

void Ops::cross_entropy(TensorView logits, std::span<const std::int32_t> labels, std::span<float> losses,
                        bool to_gradient, const LossTerms& terms) {
  const ShapeCheck check("cross_entropy");
  check.valid({"logits", logits});
  check.that(logits.cols > 0, "logits have no columns");
  check.length("labels", labels.size(), logits.rows, {"logits", logits});
  check.length("losses", losses.size(), logits.rows, {"logits", logits});
  check.in_range_or("labels", labels, logits.cols, ignored_label);
  check.that(terms.label_smoothing >= 0 && terms.label_smoothing < 1, "label smoothing lies outside [0, 1)");
  check.that(terms.z_loss >= 0 && std::isfinite(terms.z_loss), "the z-loss has no coefficient from 0 up");
  do_cross_entropy(logits, labels, losses, to_gradient, terms);
}

}  // namespace lamina
