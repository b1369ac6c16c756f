// How much address space the limits of this process leave (ulimit -v and -d, as batch systems set them).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lamina {

struct AddressSpace {
  std::string_view limit_name;  // "ulimit -v"
  std::uint64_t limit = 0, used = 0;
  [[nodiscard]] std::uint64_t left() const { return limit - (used < limit ? used : limit); }
};

// Of the limit that leaves least; none when there is no limit.
[[nodiscard]] std::optional<AddressSpace> address_space();

// Throws UsageError when less than `need` is left: several libraries end without a word, or never return, when they get
// no more. `what` is what needs it: "matrix products".
void require_address_space(std::uint64_t need, std::string_view what);

}  // namespace lamina
