#include "families/family.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include <lamina/base/check.hpp>
#include <lamina/base/random.hpp>
#include <lamina/model/init_weights.hpp>

namespace lamina {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "model.layers.17.mlp.up_proj.weight" -> "model.layers.0.mlp.up_proj.weight".
std::string as_layer_zero(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (is_number(std::string_view(name).substr(begin, end - begin))) {
      return name.substr(0, begin) + "0" + name.substr(end);
    }
    begin = end + 1;
  }
  return name;
}

Role role_of(const ModelConfig& config, const std::string& name) {
  const Family& family = family_of(config);
  const std::string wanted = as_layer_zero(name);
  for (const auto& tensors : {family.block(config, 0), family.embedding(config), family.head(config)}) {
    for (const NamedTensor& tensor : tensors) {
      if (tensor.spec.name == wanted) return tensor.role;
    }
  }
  require(false, "init_tensor: tensor " + name + " belongs to the model");
  return {};
}

// The value of every element, or nothing for a random matrix.
std::optional<float> constant_of(Role role) {
  switch (role) {
    case Role::norm1:
    case Role::norm2:
    case Role::q_norm:
    case Role::k_norm:
    case Role::final_norm:
      return 1.0F;
    case Role::q_bias:
    case Role::k_bias:
    case Role::v_bias:
    case Role::qkv_bias:
    case Role::o_bias:
    case Role::gate_bias:
    case Role::up_bias:
    case Role::fc_bias:
    case Role::down_bias:
    case Role::norm1_bias:
    case Role::norm2_bias:
    case Role::final_norm_bias:
      return 0.0F;
    default:
      return std::nullopt;
  }
}

}  // namespace

void init_tensor(const ModelConfig& config, std::uint64_t seed, const TensorSpec& tensor, std::int64_t first,
                 std::span<float> out) {
  require(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= tensor.elements(),
          "init_tensor: the slice lies inside the tensor");
  const Role role = role_of(config, tensor.name);
  if (const auto constant = constant_of(role)) {
    std::ranges::fill(out, *constant);
    return;
  }
  const bool residual = role == Role::o || role == Role::down;
  const double scale = residual ? 1 / std::sqrt(2 * static_cast<double>(config.layers)) : 1;
  const double deviation = config.init_std * scale;
  const std::uint64_t key = stream_key(seed, tensor.name);
  fill_normal(key, static_cast<std::uint64_t>(first), deviation, out);
}

}  // namespace lamina
