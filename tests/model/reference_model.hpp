// A transformer in plain double loops, written from the definitions and sharing no code with src/model: the oracle of
// the tests.
//
// It reads weights by their Hugging Face names and computes the sum of token losses, or all logits.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include <lamina/model/model_config.hpp>

namespace lamina::test {

using Weights = std::map<std::string, std::vector<double>>;
using Matrix = std::vector<std::vector<double>>;  // rows

struct ReferenceBatch {
  std::size_t sequences = 1, seq_len = 0;
  std::vector<std::int32_t> tokens, labels;
  std::vector<std::int32_t> positions, first_visible;  // empty: as MicroBatch
};

class ReferenceModel {
 public:
  ReferenceModel(const ModelConfig& config, const Weights& weights) : c_(config), w_(weights) {}

  [[nodiscard]] double loss_sum(const ReferenceBatch& batch) const {
    double sum = 0;
    for (std::size_t s = 0; s < batch.sequences; ++s) {
      const Matrix rows = logits(batch, s);
      for (std::size_t t = 0; t < rows.size(); ++t) {
        const std::int32_t label = batch.labels[s * batch.seq_len + t];
        if (label == -100) continue;
        sum += log_sum_exp(rows[t]) - rows[t][static_cast<std::size_t>(label)];
      }
    }
    return sum;
  }

  // Of sequence `s`: one row a position.
  [[nodiscard]] Matrix logits(const ReferenceBatch& batch, std::size_t s) const {
    Matrix x = embed(batch, s);
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) {
      add_to(x, attention(norm(x, name(layer, gpt2() ? "ln_1" : "input_layernorm")), layer, batch, s));
      add_to(x, mlp(norm(x, name(layer, gpt2() ? "ln_2" : "post_attention_layernorm")), layer));
    }
    x = norm(x, gpt2() ? "transformer.ln_f" : "model.norm");
    const char* table = gpt2() ? "transformer.wte" : "model.embed_tokens";
    return linear(x, c_.tied_head ? table : "lm_head", static_cast<std::size_t>(c_.vocab_size), false);
  }

 private:
  [[nodiscard]] bool gpt2() const { return c_.position == PositionKind::learned; }
  [[nodiscard]] std::string name(std::int64_t layer, const std::string& rest) const {
    return (gpt2() ? "transformer.h." : "model.layers.") + std::to_string(layer) + "." + rest;
  }
  [[nodiscard]] const std::vector<double>& at(const std::string& tensor) const { return w_.at(tensor); }
  static double log_sum_exp(const std::vector<double>& row) {
    double largest = row[0], sum = 0;
    for (const double value : row) largest = std::max(largest, value);
    for (const double value : row) sum += std::exp(value - largest);
    return largest + std::log(sum);
  }
  static void add_to(Matrix& x, const Matrix& y) {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
    }
  }

  // Position of token t of sequence s as the embedding sees it.
  static std::size_t position(const ReferenceBatch& batch, std::size_t s, std::size_t t) {
    return batch.positions.empty() ? t : static_cast<std::size_t>(batch.positions[s * batch.seq_len + t]);
  }

  [[nodiscard]] Matrix embed(const ReferenceBatch& batch, std::size_t s) const {
    const auto h = static_cast<std::size_t>(c_.hidden);
    Matrix x(batch.seq_len, std::vector<double>(h));
    const std::vector<double>& table = at(gpt2() ? "transformer.wte.weight" : "model.embed_tokens.weight");
    const std::vector<double>* places = gpt2() ? &at("transformer.wpe.weight") : nullptr;
    for (std::size_t t = 0; t < batch.seq_len; ++t) {
      const auto id = static_cast<std::size_t>(batch.tokens[s * batch.seq_len + t]);
      for (std::size_t i = 0; i < h; ++i) {
        x[t][i] = table[id * h + i];
        if (places != nullptr) x[t][i] += (*places)[position(batch, s, t) * h + i];
      }
    }
    return x;
  }

  // tensor.weight as [out, in], or [in, out] when `transposed`; tensor.bias if there is one.
  [[nodiscard]] Matrix linear(const Matrix& x, const std::string& tensor, std::size_t out, bool transposed) const {
    const std::vector<double>& w = at(tensor + ".weight");
    const auto bias = w_.find(tensor + ".bias");
    Matrix y(x.size(), std::vector<double>(out));
    for (std::size_t t = 0; t < x.size(); ++t) {
      const std::size_t in = x[t].size();
      for (std::size_t o = 0; o < out; ++o) {
        double sum = bias == w_.end() ? 0 : bias->second[o];
        for (std::size_t i = 0; i < in; ++i) sum += x[t][i] * (transposed ? w[i * out + o] : w[o * in + i]);
        y[t][o] = sum;
      }
    }
    return y;
  }

  [[nodiscard]] std::vector<double> norm_row(std::vector<double> row, const std::string& tensor) const {
    const std::vector<double>& w = at(tensor + ".weight");
    const std::vector<double>* bias = c_.norm == NormKind::layer ? &at(tensor + ".bias") : nullptr;
    const auto n = static_cast<double>(row.size());
    double mean = 0, square = 0;
    if (c_.norm == NormKind::layer) {
      for (const double value : row) mean += value / n;
    }
    for (const double value : row) square += (value - mean) * (value - mean) / n;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - mean) / std::sqrt(square + c_.norm_eps) * w[i];
      if (bias != nullptr) row[i] += (*bias)[i];
    }
    return row;
  }
  [[nodiscard]] Matrix norm(const Matrix& x, const std::string& tensor) const {
    Matrix y;
    for (const auto& row : x) y.push_back(norm_row(row, tensor));
    return y;
  }

  [[nodiscard]] double frequency(std::size_t pair) const {
    const double d = static_cast<double>(c_.head_dim);
    const double plain = 1 / std::pow(c_.rope.theta, 2 * static_cast<double>(pair) / d);
    if (c_.rope.scaling == RopeScaling::none) return plain;
    if (c_.rope.scaling == RopeScaling::linear) return plain / c_.rope.factor;
    const double turns = static_cast<double>(c_.rope.original_max_positions) * plain / (2 * std::numbers::pi);
    if (turns > c_.rope.high_freq_factor) return plain;
    if (turns < c_.rope.low_freq_factor) return plain / c_.rope.factor;
    const double blend = (turns - c_.rope.low_freq_factor) / (c_.rope.high_freq_factor - c_.rope.low_freq_factor);
    return plain * (blend + (1 - blend) / c_.rope.factor);
  }

  // One head of one token: cut out of `row`, normalised and rotated as the family asks.
  [[nodiscard]] std::vector<double> head_of(const std::vector<double>& row, std::size_t first, std::size_t pos,
                                            const std::string& norm_name) const {
    const auto d = static_cast<std::size_t>(c_.head_dim);
    std::vector<double> x(row.begin() + static_cast<std::ptrdiff_t>(first),
                          row.begin() + static_cast<std::ptrdiff_t>(first + d));
    if (c_.qk_norm) x = norm_row(x, norm_name);
    if (gpt2()) return x;
    const std::vector<double> old = x;
    for (std::size_t i = 0; i < d / 2; ++i) {
      const double angle = static_cast<double>(pos) * frequency(i);
      x[i] = old[i] * std::cos(angle) - old[i + d / 2] * std::sin(angle);
      x[i + d / 2] = old[i + d / 2] * std::cos(angle) + old[i] * std::sin(angle);
    }
    return x;
  }

  // q, k and v side by side.
  [[nodiscard]] Matrix project(const Matrix& x, std::int64_t layer) const {
    const auto q = static_cast<std::size_t>(c_.q_size()), kv = static_cast<std::size_t>(c_.kv_size());
    if (gpt2()) return linear(x, name(layer, "attn.c_attn"), q + 2 * kv, true);
    Matrix all = linear(x, name(layer, "self_attn.q_proj"), q, false);
    for (const char* part : {"self_attn.k_proj", "self_attn.v_proj"}) {
      const Matrix y = linear(x, name(layer, part), kv, false);
      for (std::size_t t = 0; t < all.size(); ++t) all[t].insert(all[t].end(), y[t].begin(), y[t].end());
    }
    return all;
  }

  [[nodiscard]] std::size_t first_key(const ReferenceBatch& batch, std::size_t s, std::int64_t layer,
                                      std::size_t t) const {
    const auto window = static_cast<std::size_t>(c_.window[static_cast<std::size_t>(layer)]);
    std::size_t first = window > 0 && t + 1 > window ? t + 1 - window : 0;
    if (!batch.first_visible.empty()) {
      first = std::max(first, static_cast<std::size_t>(batch.first_visible[s * batch.seq_len + t]));
    }
    return first;
  }

  [[nodiscard]] Matrix attention(const Matrix& x, std::int64_t layer, const ReferenceBatch& batch,
                                 std::size_t s) const {
    const auto q = static_cast<std::size_t>(c_.q_size()), kv = static_cast<std::size_t>(c_.kv_size());
    const auto d = static_cast<std::size_t>(c_.head_dim), heads = static_cast<std::size_t>(c_.heads);
    const std::size_t share = heads / static_cast<std::size_t>(c_.kv_heads);
    const Matrix qkv = project(x, layer);
    Matrix out(x.size(), std::vector<double>(q, 0.0));
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t kv_first = q + head / share * d;
      Matrix keys;
      for (std::size_t t = 0; t < x.size(); ++t) {
        keys.push_back(head_of(qkv[t], kv_first, position(batch, s, t), name(layer, "self_attn.k_norm")));
      }
      for (std::size_t t = 0; t < x.size(); ++t) {
        const auto query = head_of(qkv[t], head * d, position(batch, s, t), name(layer, "self_attn.q_norm"));
        const std::size_t first = first_key(batch, s, layer, t);
        std::vector<double> scores;
        for (std::size_t u = first; u <= t; ++u) {
          double dot = 0;
          for (std::size_t i = 0; i < d; ++i) dot += query[i] * keys[u][i];
          scores.push_back(dot / std::sqrt(static_cast<double>(d)));
        }
        const double lse = log_sum_exp(scores);
        for (std::size_t u = first; u <= t; ++u) {
          const double p = std::exp(scores[u - first] - lse);
          for (std::size_t i = 0; i < d; ++i) out[t][head * d + i] += p * qkv[u][kv_first + kv + i];
        }
      }
    }
    const std::string o = name(layer, gpt2() ? "attn.c_proj" : "self_attn.o_proj");
    return linear(out, o, static_cast<std::size_t>(c_.hidden), gpt2());
  }

  [[nodiscard]] Matrix mlp(const Matrix& x, std::int64_t layer) const {
    const auto f = static_cast<std::size_t>(c_.intermediate), h = static_cast<std::size_t>(c_.hidden);
    Matrix y = linear(x, name(layer, gpt2() ? "mlp.c_fc" : "mlp.gate_proj"), f, gpt2());
    const Matrix up = gpt2() ? Matrix() : linear(x, name(layer, "mlp.up_proj"), f, false);
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (std::size_t i = 0; i < f; ++i) {
        double& value = y[t][i];
        const double cubic = std::sqrt(2 / std::numbers::pi) * (value + 0.044715 * value * value * value);
        value = gpt2() ? 0.5 * value * (1 + std::tanh(cubic)) : value / (1 + std::exp(-value)) * up[t][i];
      }
    }
    return linear(y, name(layer, gpt2() ? "mlp.c_proj" : "mlp.down_proj"), h, gpt2());
  }

  const ModelConfig& c_;
  const Weights& w_;
};

}  // namespace lamina::test
