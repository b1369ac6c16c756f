#include <sstream>

#include <lamina/base/check.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/shard/collective_order.hpp>

namespace lamina {

std::vector<CollectiveOrder::Entry> CollectiveOrder::entries() const {
  std::vector<Entry> all = parameters_;
  all.insert(all.end(), gradients_.begin(), gradients_.end());
  return all;
}

std::uint64_t CollectiveOrder::hash() const {
  Xxh3Stream stream;
  for (const Entry& entry : entries()) {
    const std::uint64_t word = (static_cast<std::uint64_t>(entry.kind) << 32) | entry.unit;
    stream.update(&word, sizeof(word));
  }
  return stream.digest();
}

std::string CollectiveOrder::to_text() const {
  std::ostringstream out;
  for (const Entry& entry : entries()) out << static_cast<int>(entry.kind) << ' ' << entry.unit << ' ';
  return std::move(out).str();
}

CollectiveOrder CollectiveOrder::from_text(const std::string& text) {
  CollectiveOrder order;
  std::istringstream in(text);
  int kind = 0;
  std::size_t unit = 0;
  while (in >> kind >> unit) order.note(static_cast<CollectiveKind>(kind), unit);
  require(in.eof(), "an order of collectives arrives whole");
  return order;
}

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::gather:
      return "gather";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::finish_gradients:
      return "finish the gradients";
    case CollectiveKind::publish:
      return "publish";
  }
  return "?";
}

}  // namespace lamina
