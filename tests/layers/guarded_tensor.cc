#include "layers/guarded_tensor.h"

#include <algorithm>
#include <cstring>

namespace crema::testing {

namespace {

constexpr uint32_t kPattern = 0xFFFFFFFFu;  // a NaN
constexpr size_t kGuard = 64;               // words on either side; keeps the tensor aligned

}  // namespace

GuardedTensor::GuardedTensor(const TensorSpec& spec, Device& device)
    : memory_(kGuard * 3 + static_cast<size_t>(spec.shape.count())) {
  // NaNs that differ between tensors: what is copied from one guard zone into another shows.
  static uint32_t tensors = 0;
  serial_ = ++tensors;
  for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = GuardWord(i);
  const auto address = reinterpret_cast<uintptr_t>(memory_.data() + kGuard);
  tensor_ = Tensor(reinterpret_cast<void*>((address + 63) / 64 * 64), spec);
  Poison();
  if (device.type() == DeviceType::kCpu) return;
  device_ = &device;
  const std::byte* begin = static_cast<const std::byte*>(tensor_.raw()) - kGuard * sizeof(uint32_t);
  copy_ =
      Buffer(device, static_cast<size_t>(reinterpret_cast<const std::byte*>(memory_.data() + memory_.size()) - begin));
  on_device_ = Tensor(copy_.data() + kGuard * sizeof(uint32_t), spec);
}

void GuardedTensor::Upload() const {
  if (copy_.bytes() == 0) return;
  device_->CopyIn(static_cast<const std::byte*>(tensor_.raw()) - kGuard * sizeof(uint32_t), copy_.data(),
                  copy_.bytes());
}

void GuardedTensor::Download() const {
  if (copy_.bytes() == 0) return;
  device_->CopyOut(copy_.data(), static_cast<std::byte*>(tensor_.raw()) - kGuard * sizeof(uint32_t), copy_.bytes());
}

uint32_t GuardedTensor::GuardWord(size_t index) const {
  return 0x7FC00000u | ((serial_ * 1021u + static_cast<uint32_t>(index)) & 0x3FFFFFu);
}

void GuardedTensor::Poison() {
  if (tensor_.defined()) std::memset(tensor_.raw(), 0xFF, tensor_.bytes());
}

bool GuardedTensor::GuardsIntact() const {
  if (!tensor_.defined()) return true;
  const auto* bytes = reinterpret_cast<const uint8_t*>(memory_.data());
  const size_t begin = static_cast<size_t>(tensor_.u8() - bytes), end = begin + tensor_.bytes();
  const auto intact = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      if (bytes[i] != static_cast<uint8_t>(GuardWord(i / 4) >> (8 * (i % 4)))) return false;
    }
    return true;
  };
  return intact(0, begin) && intact(end, memory_.size() * 4);
}

int64_t GuardedTensor::Poisoned() const {
  if (!tensor_.defined()) return 0;
  if (SizeOf(tensor_.dtype()) == 2) {
    const auto* halves = static_cast<const uint16_t*>(tensor_.raw());
    return std::count(halves, halves + tensor_.count(), static_cast<uint16_t>(kPattern));
  }
  if (tensor_.dtype() != DType::kF32) return 0;
  const auto* words = static_cast<const uint32_t*>(tensor_.raw());
  return std::count(words, words + tensor_.count(), kPattern);
}

}  // namespace crema::testing
