#include "staging.hpp"
#include "strict_names.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>
#include <lamina/checkpoint/folder_tensors.hpp>
#include <lamina/checkpoint/pretrained_reader.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

// Base models are published without the name of the part they are in the model with a head.
constexpr std::string_view base_prefixes[] = {"transformer.", "model."};

std::vector<std::string> all_names(const TensorSpec& tensor) {
  std::vector<std::string> names{tensor.name};
  names.insert(names.end(), tensor.aliases.begin(), tensor.aliases.end());
  return names;
}

}  // namespace

struct PretrainedReader::State {
  std::filesystem::path path;
  SafetensorsFolder folder;
  std::unordered_map<std::string, std::vector<SafetensorsFolder::Place>> places;  // by the model's name
  std::vector<float> staging;

  State(const std::filesystem::path& folder_path, std::span<const UnitSpec> units)
      : path(folder_path), folder(folder_path) {
    const std::vector<std::string> missing = resolve(units);
    const std::vector<std::string> extra = unused();
    std::string text;
    if (!missing.empty()) text += "it lacks " + join_names(missing);
    if (!missing.empty() && !extra.empty()) text += ", and ";
    if (!extra.empty()) text += "it holds " + join_names(extra) + ", which the model does not have";
    if (!text.empty()) refuse(text, "check that config.json belongs to these weights");
  }

  [[noreturn]] void refuse(const std::string& why, std::string_view fix) const {
    throw DataError(one_line(fmt::format("cannot load the weights of {}", path.string()), why, fix));
  }

  // Whether the folder's names lack `prefix` altogether.
  bool lacks(std::string_view prefix) const {
    return std::none_of(folder.places().begin(), folder.places().end(),
                        [&](auto place) { return folder.entry(place).name.starts_with(prefix); });
  }

  // Fills `places`; returns the tensors that are under none of their names.
  std::vector<std::string> resolve(std::span<const UnitSpec> units) {
    std::vector<std::string_view> left_out;
    for (const std::string_view prefix : base_prefixes) {
      if (lacks(prefix)) left_out.push_back(prefix);
    }
    std::vector<std::string> missing;
    for (const UnitSpec& unit : units) {
      for (const TensorSpec& tensor : unit.tensors) {
        auto& found = places[tensor.name];
        for (const std::string& name : all_names(tensor)) add_place(name, left_out, found);
        if (found.empty()) missing.push_back(tensor.name);
        for (const auto place : found) check_shape(tensor, folder.entry(place));
      }
    }
    return missing;
  }

  void add_place(const std::string& name, std::span<const std::string_view> left_out,
                 std::vector<SafetensorsFolder::Place>& found) const {
    const SafetensorsFolder::Place* place = folder.find(name);
    for (const std::string_view prefix : left_out) {
      if (place == nullptr && name.starts_with(prefix)) place = folder.find(name.substr(prefix.size()));
    }
    if (place != nullptr) found.push_back(*place);
  }

  void check_shape(const TensorSpec& tensor, const SafetensorsEntry& entry) const {
    if (entry.shape == tensor.shape) return;
    refuse(fmt::format("{} has shape {} there and {} in this model", entry.name, shape_text(entry.shape),
                       shape_text(tensor.shape)),
           "check that config.json belongs to these weights");
  }

  std::vector<std::string> unused() const {
    std::set<std::string> used;
    for (const auto& [name, found] : places) {
      for (const auto place : found) used.insert(folder.entry(place).name);
    }
    std::vector<std::string> names;
    for (const auto place : folder.places()) {
      const std::string& name = folder.entry(place).name;
      if (!used.contains(name) && !is_known_buffer(name)) names.push_back(name);
    }
    return names;
  }

  void read_span(const TensorSpec& tensor, std::int64_t first, std::span<float> out) {
    const auto it = places.find(tensor.name);
    require(it != places.end(), "PretrainedReader: a tensor of the units it was opened with");
    const auto& found = it->second;
    folder.read(found.front(), first, out);
    check_finite(folder.entry(found.front()).name, first, out);
    for (std::size_t other = 1; other < found.size(); ++other) check_equal(found.front(), found[other], first, out);
  }

  void check_finite(const std::string& name, std::int64_t first, std::span<const float> values) const {
    const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (bad == values.end()) return;
    refuse(fmt::format("element {} of {} is {}", first + (bad - values.begin()), name, *bad),
           "take weights without NaN and infinity");
  }

  // Two stored names of one tied tensor.
  void check_equal(SafetensorsFolder::Place one, SafetensorsFolder::Place other, std::int64_t first,
                   std::span<const float> values) {
    while (!values.empty()) {
      const std::size_t count = std::min(values.size(), static_cast<std::size_t>(staging_floats));
      staging.resize(std::max(staging.size(), count));
      folder.read(other, first, std::span(staging).first(count));
      if (std::memcmp(staging.data(), values.data(), count * sizeof(float)) != 0) {
        refuse(fmt::format("{} and {} differ although config.json ties them", folder.entry(one).name,
                           folder.entry(other).name),
               "set tie_word_embeddings to false");
      }
      first += static_cast<std::int64_t>(count);
      values = values.subspan(count);
    }
  }
};

PretrainedReader::PretrainedReader(const std::filesystem::path& folder, std::span<const UnitSpec> units)
    : state_(std::make_unique<State>(folder, units)) {}
PretrainedReader::~PretrainedReader() = default;
PretrainedReader::PretrainedReader(PretrainedReader&&) noexcept = default;
PretrainedReader& PretrainedReader::operator=(PretrainedReader&&) noexcept = default;

std::uint64_t PretrainedReader::bytes_read() const { return state_->folder.bytes_read(); }

void PretrainedReader::read(const FlatLayout& target, FlatRange range, std::span<float> out) {
  require(static_cast<std::int64_t>(out.size()) == range.length(), "PretrainedReader: `out` is as long as the range");
  for (const Span& span : target.spans(range)) {
    state_->read_span(
        target.unit().tensors[span.tensor], span.tensor_offset,
        out.subspan(static_cast<std::size_t>(span.flat_offset - range.begin), static_cast<std::size_t>(span.length)));
  }
  const std::int64_t held = std::clamp(target.elements() - range.begin, std::int64_t{0}, range.length());
  std::fill(out.begin() + held, out.end(), 0.0f);
}

}  // namespace lamina
