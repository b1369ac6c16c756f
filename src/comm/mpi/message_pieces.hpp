// Long messages in pieces: counts in MPI are ints.
#pragma once

#include <algorithm>
#include <cstddef>

namespace lamina {

// post(piece) for pieces of `data` (a span) that fit one message, in order; both ends cut alike.
template <typename Data, typename Post>
void in_message_pieces(Data data, Post&& post) {
  constexpr std::size_t most = std::size_t{1} << 28;  // floats
  for (std::size_t begin = 0; begin < data.size(); begin += most) {
    post(data.subspan(begin, std::min(most, data.size() - begin)));
  }
}

}  // namespace lamina
