// First weights of a run: random or pretrained, each rank its own slices only. Averaged weights, where the store keeps
// some, begin as these. Not collective: publish_all makes them known.
#pragma once

#include <cstdint>
#include <filesystem>

#include <lamina/model/model_plan.hpp>
#include <lamina/shard/weight_store.hpp>

namespace lamina {

// Publishes every unit. Collective.
void publish_all(WeightStore& store);

// Averaged weights = weights, where the store keeps some.
void begin_average(WeightStore& store);

void initialise_randomly(const ModelPlan& plan, std::uint64_t seed, WeightStore& store);

// Reads the safetensors of `model_folder`. Throws DataError.
void initialise_from_pretrained(const std::filesystem::path& model_folder, const ModelPlan& plan, WeightStore& store);

}  // namespace lamina
