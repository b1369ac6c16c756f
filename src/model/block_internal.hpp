// Shared by the forward and the backward of DecoderBlock.
#pragma once

#include "decoder_block.hpp"

namespace lamina {

struct DecoderBlock::Heads {
  TensorView q, k, v;
};

template <typename Pointer>
BlockTensors<Pointer> DecoderBlock::tensors(Pointer base) const {
  const std::int64_t h = config_.hidden, f = config_.intermediate, q = config_.q_size(), d = config_.head_dim;
  const std::int64_t qkv = q + 2 * config_.kv_size();
  const bool fused = map_.has(Role::qkv), gated = map_.has(Role::gate);
  const std::int64_t up = gated ? 2 * f : f;
  // The matrix [out, in], or [in, out] as the family stores it.
  const auto linear = [&](Role first, Role last, std::int64_t out, std::int64_t in) {
    return layout_ == WeightLayout::out_in ? map_.matrix(base, first, last, out, in)
                                           : map_.matrix(base, first, last, in, out);
  };
  BlockTensors<Pointer> t;
  t.qkv = fused ? linear(Role::qkv, Role::qkv, qkv, h) : linear(Role::q, Role::v, qkv, h);
  t.o = linear(Role::o, Role::o, h, q);
  t.up = gated ? linear(Role::gate, Role::up, up, h) : linear(Role::fc, Role::fc, up, h);
  t.down = linear(Role::down, Role::down, h, f);
  t.qkv_bias = fused ? map_.vector(base, Role::qkv_bias, qkv) : map_.vector(base, Role::q_bias, Role::v_bias, qkv);
  t.o_bias = map_.vector(base, Role::o_bias, h);
  t.up_bias = gated ? map_.vector(base, Role::gate_bias, Role::up_bias, up) : map_.vector(base, Role::fc_bias, up);
  t.down_bias = map_.vector(base, Role::down_bias, h);
  t.norm1 = {map_.vector(base, Role::norm1, h), map_.vector(base, Role::norm1_bias, h)};
  t.norm2 = {map_.vector(base, Role::norm2, h), map_.vector(base, Role::norm2_bias, h)};
  t.q_norm = map_.vector(base, Role::q_norm, d);
  t.k_norm = map_.vector(base, Role::k_norm, d);
  return t;
}

}  // namespace lamina
