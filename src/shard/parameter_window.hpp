// Where a store's gathered units are: in slots of the shard group's fabric, or, when a rank holds all weights, in its
// own memory.
#pragma once

#include "unit_tracker.hpp"

#include <span>
#include <vector>

#include <lamina/comm/fabric.hpp>

namespace lamina {

class ParameterWindow {
 public:
  virtual ~ParameterWindow() = default;
  // own_part: this rank's part of the unit.
  virtual void start(std::size_t unit, std::span<const float> own_part) = 0;
  [[nodiscard]] virtual std::span<const float> finish(std::size_t unit) = 0;
  virtual void release(std::size_t unit) = 0;
};

class SlotWindow final : public ParameterWindow {
 public:
  SlotWindow(Fabric& fabric, std::size_t units, int slots) : fabric_(fabric), slot_of_(units, -1), pool_(slots) {}
  void start(std::size_t unit, std::span<const float> own_part) override {
    slot_of_[unit] = pool_.take();
    fabric_.gather_start(slot_of_[unit], own_part);
  }
  [[nodiscard]] std::span<const float> finish(std::size_t unit) override {
    return fabric_.gather_finish(slot_of_[unit]);
  }
  void release(std::size_t unit) override {
    fabric_.release(slot_of_[unit]);
    pool_.give_back(slot_of_[unit]);
  }

 private:
  Fabric& fabric_;
  std::vector<int> slot_of_;
  SlotPool pool_;
};

class ResidentWindow final : public ParameterWindow {
 public:
  explicit ResidentWindow(std::size_t units) : parts_(units) {}
  void start(std::size_t unit, std::span<const float> own_part) override { parts_[unit] = own_part; }
  [[nodiscard]] std::span<const float> finish(std::size_t unit) override { return parts_[unit]; }
  void release(std::size_t) override {}

 private:
  std::vector<std::span<const float>> parts_;
};

}  // namespace lamina
