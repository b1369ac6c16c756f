// RMSNorm and LayerNorm. Gradients of weight and bias are summed per chunk of rows, and the chunks in order, so that
// they do not depend on the number of threads.
#include "cpu_ops.hpp"
#include "lanes.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

#include <algorithm>
#include <cmath>

namespace lamina::cpu {
namespace {

constexpr std::int64_t chunk_rows = 64;

std::int64_t chunk_count(std::int64_t rows) { return (rows + chunk_rows - 1) / chunk_rows; }

// target = (write == add ? target : 0) + the sum of `chunks` rows of partial sums, `distance` floats apart.
void combine_chunks(TensorView target, const float* partial, std::int64_t chunks, std::int64_t distance, Write write) {
  if (write == Write::overwrite) std::fill_n(target.data, target.cols, 0.0F);
  for_groups(target.cols, [&](auto io, std::int64_t i) {
    Float8 sum{};
    for (std::int64_t c = 0; c < chunks; ++c) sum += io.load(partial + c * distance + i);
    io.store(target.data + i, io.load(target.data + i) + sum);
  });
}

float reciprocal_root(float mean_square, float eps) { return 1.0F / std::sqrt(mean_square + eps); }

struct RmsRow {
  const float* x;
  const float* w;
  const float* dy;
  float* dx;
  float* dw;  // running sum of the chunk
  float rstd;
};

void rms_norm_backward_row(const RmsRow& r, std::int64_t n, Write write_dx) {
  const float dot =
      sum_over(n, [&](auto io, std::int64_t i) { return io.load(r.dy + i) * io.load(r.w + i) * io.load(r.x + i); });
  const Float8 rstd = splat(r.rstd);
  const Float8 pull = splat(r.rstd * r.rstd * r.rstd * dot / static_cast<float>(n));
  const bool adds = write_dx == Write::add;
  for_groups(n, [&](auto io, std::int64_t i) {
    const Float8 dy = io.load(r.dy + i);
    const Float8 x = io.load(r.x + i);
    io.store(r.dw + i, io.load(r.dw + i) + dy * (x * rstd));
    const Float8 dx = dy * io.load(r.w + i) * rstd - x * pull;
    io.store(r.dx + i, adds ? io.load(r.dx + i) + dx : dx);
  });
}

struct LayerRow {
  const float* x;
  const float* w;
  const float* dy;
  float* dx;
  float* dw;  // running sums of the chunk
  float* db;
  float mean, rstd;
};

void layer_norm_backward_row(const LayerRow& r, std::int64_t n, Write write_dx) {
  const Float8 mean = splat(r.mean);
  const Float8 rstd = splat(r.rstd);
  const float size = static_cast<float>(n);
  const float mean_g =
      sum_over(n, [&](auto io, std::int64_t i) { return io.load(r.dy + i) * io.load(r.w + i); }) / size;
  // Padded lanes of dy are zero, so those of x need not be.
  const float mean_gx = sum_over(n,
                                 [&](auto io, std::int64_t i) {
                                   return io.load(r.dy + i) * io.load(r.w + i) * ((io.load(r.x + i) - mean) * rstd);
                                 }) /
                        size;
  const bool adds = write_dx == Write::add;
  for_groups(n, [&](auto io, std::int64_t i) {
    const Float8 dy = io.load(r.dy + i);
    const Float8 x_hat = (io.load(r.x + i) - mean) * rstd;
    io.store(r.dw + i, io.load(r.dw + i) + dy * x_hat);
    io.store(r.db + i, io.load(r.db + i) + dy);
    const Float8 dx = rstd * (dy * io.load(r.w + i) - splat(mean_g) - x_hat * splat(mean_gx));
    io.store(r.dx + i, adds ? io.load(r.dx + i) + dx : dx);
  });
}

void layer_norm_row(float* y, float& mean_out, float& rstd_out, const float* x, const float* w, const float* b,
                    std::int64_t n, float eps) {
  const float size = static_cast<float>(n);
  const float mean = sum_over(n, [&](auto io, std::int64_t i) { return io.load(x + i); }) / size;
  const float variance = sum_over(n,
                                  [&](auto io, std::int64_t i) {
                                    const Float8 d = io.load(x + i, mean) - splat(mean);  // padded lanes give zero
                                    return d * d;
                                  }) /
                         size;
  const float rstd = reciprocal_root(variance, eps);
  for_groups(n, [&](auto io, std::int64_t i) {
    io.store(y + i, (io.load(x + i) - splat(mean)) * splat(rstd) * io.load(w + i) + io.load(b + i));
  });
  mean_out = mean;
  rstd_out = rstd;
}

}  // namespace

void CpuOps::do_rms_norm_forward(TensorView y, TensorView rstd, ConstTensorView x, ConstTensorView w, float eps) {
  parallel_ranges(threads_, x.rows, x.size() * 2, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const float* in = x.row(t);
      float* out = y.row(t);
      const float squares = sum_over(x.cols, [&](auto io, std::int64_t i) {
        const Float8 v = io.load(in + i);
        return v * v;
      });
      const float scale = reciprocal_root(squares / static_cast<float>(x.cols), eps);
      rstd.data[t] = scale;
      for_groups(x.cols, [&](auto io, std::int64_t i) {
        io.store(out + i, io.load(in + i) * splat(scale) * io.load(w.data + i));
      });
    }
  });
}

void CpuOps::do_rms_norm_backward(TensorView dx, TensorView dw, ConstTensorView dy, ConstTensorView x,
                                  ConstTensorView rstd, ConstTensorView w, Write write_dx, Write write_dw) {
  static thread_local Scratch scratch;
  const std::int64_t chunks = chunk_count(x.rows);
  float* partial = scratch.floats(chunks * x.cols);
  parallel_ranges(threads_, x.rows, x.size() * 3, chunk_rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      float* chunk = partial + t / chunk_rows * x.cols;
      if (t % chunk_rows == 0) std::fill_n(chunk, x.cols, 0.0F);
      rms_norm_backward_row({x.row(t), w.data, dy.row(t), dx.row(t), chunk, rstd.data[t]}, x.cols, write_dx);
    }
  });
  combine_chunks(dw, partial, chunks, x.cols, write_dw);
}

void CpuOps::do_layer_norm_forward(TensorView y, TensorView mean, TensorView rstd, ConstTensorView x, ConstTensorView w,
                                   ConstTensorView b, float eps) {
  parallel_ranges(threads_, x.rows, x.size() * 3, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      layer_norm_row(y.row(t), mean.data[t], rstd.data[t], x.row(t), w.data, b.data, x.cols, eps);
    }
  });
}

void CpuOps::do_layer_norm_backward(TensorView dx, TensorView dw, TensorView db, ConstTensorView dy, ConstTensorView x,
                                    ConstTensorView mean, ConstTensorView rstd, ConstTensorView w, Write write_dx,
                                    Write write_dw) {
  static thread_local Scratch scratch;
  const std::int64_t chunks = chunk_count(x.rows);
  const std::int64_t distance = 2 * x.cols;
  float* partial = scratch.floats(chunks * distance);
  parallel_ranges(threads_, x.rows, x.size() * 4, chunk_rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      float* chunk = partial + t / chunk_rows * distance;
      if (t % chunk_rows == 0) std::fill_n(chunk, distance, 0.0F);
      layer_norm_backward_row(
          {x.row(t), w.data, dy.row(t), dx.row(t), chunk, chunk + x.cols, mean.data[t], rstd.data[t]}, x.cols,
          write_dx);
    }
  });
  combine_chunks(dw, partial, chunks, distance, write_dw);
  combine_chunks(db, partial + x.cols, chunks, distance, write_dw);
}

}  // namespace lamina::cpu
