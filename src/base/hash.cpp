#include <new>

#include <lamina/base/hash.hpp>

#include <xxhash.h>

namespace lamina {

std::uint64_t xxh3_64(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

void Xxh3Stream::Free::operator()(void* state) const noexcept { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }

Xxh3Stream::Xxh3Stream(std::uint64_t seed) : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset_withSeed(static_cast<XXH3_state_t*>(state_.get()), seed);
}

void Xxh3Stream::update(const void* bytes, std::size_t size) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes, size);
}

std::uint64_t Xxh3Stream::digest() const { return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get())); }

}  // namespace lamina
