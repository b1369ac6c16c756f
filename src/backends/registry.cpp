#include "backend_factories.hpp"

#include <vector>

#include <lamina/backends/backend.hpp>
#include <lamina/base/error.hpp>
#include <lamina/base/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lamina {
namespace {

struct Entry {
  std::string name;
  Backend (*make)(std::int64_t threads);
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"cpu", cpu::make_backend},
      {"cuda", cuda::make_backend},
  };
  return all;
}

}  // namespace

Backend make_backend(const std::string& name, std::int64_t threads) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry.make(threads);
    names.push_back(entry.name);
  }
  const std::string near = nearest_name(name, names);
  throw UsageError(one_line(fmt::format("unknown compute backend \"{}\"", name),
                            fmt::format("the known ones are {}", fmt::join(names, ", ")),
                            fmt::format("set compute.backend = {}", near.empty() ? names.front() : near)));
}

}  // namespace lamina
