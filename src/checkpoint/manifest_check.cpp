#include "manifest_check.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/proof.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

class ManifestCheck {
 public:
  ManifestCheck(const Manifest& manifest, const std::string& where) : manifest_(manifest), where_(where) {}

  void run() {
    refuse_if(manifest_.world_size < 1 || manifest_.shard_count < 1 || manifest_.alignment < 1 || manifest_.step < 0,
              "world size, shard count, alignment or step is out of range");
    refuse_if(manifest_.optimizer_step < 0 || manifest_.skipped_in_a_row < 0 ||
                  manifest_.skipped_in_a_row > manifest_.skipped_steps || manifest_.skipped_steps > manifest_.step,
              "the numbers of updates or of skipped steps are impossible");
    check_names();
    check_second_moments();
    check_files();
    check_coverage();
    check_averages();
  }

 private:
  void refuse_if(bool wrong, std::string_view why) const {
    if (!wrong) return;
    throw CheckpointError(one_line(fmt::format("cannot use {}", where_), why, take_another));
  }

  void check_names() const {
    std::set<std::string_view> units, tensors;
    for (const UnitSpec& unit : manifest_.units) {
      refuse_if(!units.insert(unit.name).second, fmt::format("unit {} is listed twice", unit.name));
      std::int64_t elements = 0;
      for (const TensorSpec& tensor : unit.tensors) {
        refuse_if(!tensors.insert(tensor.name).second, fmt::format("tensor {} is listed twice", tensor.name));
        for (const std::string& alias : tensor.aliases) {
          refuse_if(!tensors.insert(alias).second, fmt::format("tensor {} is listed twice", alias));
        }
        refuse_if(!add_elements(tensor, elements), fmt::format("the shape of {} is impossible", tensor.name));
      }
    }
  }

  void check_second_moments() const {
    std::set<std::string_view> tensors, without;
    for (const UnitSpec& unit : manifest_.units) {
      for (const TensorSpec& tensor : unit.tensors) tensors.insert(tensor.name);
    }
    for (const std::string& name : manifest_.no_exp_avg_sq) {
      refuse_if(
          !tensors.contains(name) || !without.insert(name).second,
          fmt::format("it says of {} that there is no exp_avg_sq, which is not a tensor or was said before", name));
    }
  }

  // False when a size is negative or a product overflows.
  static bool add_elements(const TensorSpec& tensor, std::int64_t& sum) {
    std::int64_t product = 1;
    for (const std::int64_t size : tensor.shape) {
      if (size < 0 || __builtin_mul_overflow(product, size, &product)) return false;
    }
    return !__builtin_add_overflow(sum, product, &sum);
  }

  static bool plain(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
  }

  void check_files() const {
    std::set<std::string_view> names;
    for (const ShardFileRecord& file : manifest_.files) {
      refuse_if(!plain(file.name), fmt::format("\"{}\" is not a plain file name", file.name));
      refuse_if(!names.insert(file.name).second, fmt::format("file {} is listed twice", file.name));
    }
    for (const SideFileRecord& file : manifest_.side_files) {
      const std::string_view name = file.name;
      refuse_if(!name.starts_with("model/") || !plain(name.substr(6)),
                fmt::format("\"{}\" is not a file of the folder model", name));
      refuse_if(!names.insert(name).second, fmt::format("file {} is listed twice", name));
    }
  }

  // All or none: what is there for a part only would be dropped in silence.
  void check_averages() const {
    std::size_t slices = 0, averaged = 0;
    for (const ShardFileRecord& file : manifest_.files) {
      for (const SliceRecord& slice : file.slices) {
        if (slice.range.length() == 0) continue;
        ++slices;
        averaged += static_cast<std::size_t>(slice.ema.has_value());
      }
    }
    refuse_if(averaged != 0 && averaged != slices, "it holds averaged weights for a part of the model only");
  }

  // Every element of every unit exactly once.
  void check_coverage() const {
    std::vector<std::vector<FlatRange>> held(manifest_.units.size());
    for (const ShardFileRecord& file : manifest_.files) {
      std::set<std::size_t> units;
      for (const SliceRecord& slice : file.slices) {
        refuse_if(slice.unit >= held.size(), fmt::format("file {} holds a unit that is not listed", file.name));
        refuse_if(!units.insert(slice.unit).second, fmt::format("file {} holds a unit twice", file.name));
        refuse_if(slice.range.begin < 0 || slice.range.end < slice.range.begin,
                  fmt::format("file {} holds an impossible range", file.name));
        if (slice.range.length() > 0) held[slice.unit].push_back(slice.range);
      }
    }
    for (std::size_t unit = 0; unit < held.size(); ++unit) check_unit(manifest_.units[unit], held[unit]);
  }

  void check_unit(const UnitSpec& unit, std::vector<FlatRange>& held) const {
    std::sort(held.begin(), held.end(), [](const FlatRange& a, const FlatRange& b) { return a.begin < b.begin; });
    std::int64_t next = 0;
    for (const FlatRange& range : held) {
      refuse_if(range.begin > next,
                fmt::format("elements {} to {} of unit {} are in no file", next, range.begin, unit.name));
      refuse_if(range.begin < next,
                fmt::format("elements from {} of unit {} are in two files", range.begin, unit.name));
      next = range.end;
    }
    refuse_if(next < unit.elements(),
              fmt::format("elements {} to {} of unit {} are in no file", next, unit.elements(), unit.name));
    refuse_if(next > unit.elements(), fmt::format("unit {} has fewer elements than the files hold", unit.name));
  }

  const Manifest& manifest_;
  const std::string& where_;
};

}  // namespace

void check_manifest(const Manifest& manifest, const std::string& where) { ManifestCheck(manifest, where).run(); }

}  // namespace lamina
