// How every HDF5 call is made here: quiet, and with its result turned into an exception.
#pragma once

#include <string>
#include <string_view>

#include <lamina/base/error.hpp>
#include <lamina/hdf5/handle.hpp>

#include <hdf5.h>

namespace lamina::hdf5 {

// Turns HDF5's own printing off for the calling thread (the setting is per thread). Cheap after the first call.
void be_quiet();

// The error for a call that just failed: "cannot ATTEMPT PLACE: HDF5's reason".
[[nodiscard]] DataError failure(std::string_view attempt, std::string_view place);

// Pass a call's result through; throw when it is negative.
template <typename Result>
Result checked(Result result, std::string_view attempt, std::string_view place) {
  if (result < 0) throw failure(attempt, place);
  return result;
}

// The same for calls that return a new identifier.
inline Handle owned(Handle::Kind kind, hid_t id, std::string_view attempt, std::string_view place) {
  return Handle(kind, checked(id, attempt, place));
}

}  // namespace lamina::hdf5
