// What a rank has asked of its fabrics, in order. All ranks must ask the same: train compares once a step, and after
// each evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lamina {

enum class CollectiveKind : std::uint8_t { gather, reduce, finish_gradients, publish };

class CollectiveOrder {
 public:
  struct Entry {
    CollectiveKind kind = CollectiveKind::gather;
    std::uint32_t unit = 0;
    bool operator==(const Entry&) const = default;
  };

  // What one thread asks is noted in its order: gathers and publications, reductions and completions.
  void note(CollectiveKind kind, std::size_t unit) {
    const bool parameters = kind == CollectiveKind::gather || kind == CollectiveKind::publish;
    (parameters ? parameters_ : gradients_).push_back({kind, static_cast<std::uint32_t>(unit)});
  }
  void clear() {
    parameters_.clear();
    gradients_.clear();
  }
  // Of the parameters first, then of the gradients.
  [[nodiscard]] std::vector<Entry> entries() const;
  // XXH3-64 of the entries.
  [[nodiscard]] std::uint64_t hash() const;

  // All entries as text, to be sent to another rank, and back.
  [[nodiscard]] std::string to_text() const;
  [[nodiscard]] static CollectiveOrder from_text(const std::string& text);

 private:
  std::vector<Entry> parameters_, gradients_;
};

[[nodiscard]] const char* name_of(CollectiveKind kind);

}  // namespace lamina
