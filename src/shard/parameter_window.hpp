// Where a store's gathered units are: in slots of the shard group's fabric, or, when a rank holds all weights, in its
// own memory.
#pragma once

#include <span>
#include <vector>

#include <lamina/comm/fabric.hpp>

namespace lamina {

class ParameterWindow {
 public:
  virtual ~ParameterWindow() = default;
  // own_part: this rank's part of the unit.
  virtual void gather(std::size_t unit, int slot, std::span<const float> own_part) = 0;
  // After gather().
  [[nodiscard]] virtual std::span<const float> full(std::size_t unit) const = 0;
  virtual void release(std::size_t unit) = 0;
};

class SlotWindow final : public ParameterWindow {
 public:
  SlotWindow(Fabric& fabric, std::size_t units) : fabric_(fabric), slot_of_(units, -1), full_(units) {}
  void gather(std::size_t unit, int slot, std::span<const float> own_part) override {
    slot_of_[unit] = slot;
    full_[unit] = fabric_.gather(slot, own_part);
  }
  [[nodiscard]] std::span<const float> full(std::size_t unit) const override { return full_[unit]; }
  void release(std::size_t unit) override { fabric_.release(slot_of_[unit]); }

 private:
  Fabric& fabric_;
  std::vector<int> slot_of_;
  std::vector<std::span<const float>> full_;
};

class ResidentWindow final : public ParameterWindow {
 public:
  explicit ResidentWindow(std::size_t units) : parts_(units) {}
  void gather(std::size_t unit, int, std::span<const float> own_part) override { parts_[unit] = own_part; }
  [[nodiscard]] std::span<const float> full(std::size_t unit) const override { return parts_[unit]; }
  void release(std::size_t) override {}

 private:
  std::vector<std::span<const float>> parts_;
};

}  // namespace lamina
