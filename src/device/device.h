// Where memory lives and kernels run.
#ifndef CREMA_DEVICE_DEVICE_H_
#define CREMA_DEVICE_DEVICE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "crema/device.h"

namespace crema {

enum class DeviceType { kCpu, kCuda };

class Operations;  // ops/operations.h

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceType type() const = 0;
  virtual std::string name() const = 0;
  // Whether it can multiply bf16 numbers, adding in f32; if kernels do, and faster, says ops/arrays/bfloat16.h.
  virtual bool ComputesBFloat16() const { return false; }
  // Whether it multiplies numbers in half precision (f16), adding in f32.
  virtual bool ComputesFloat16() const { return false; }
  // Whether it multiplies f32 numbers that are rounded to TF32 faster than others.
  virtual bool ComputesTF32() const { return false; }
  // To be called by a thread that worked on another device before.
  virtual void UseHere() const {}
  // Memory aligned for every kernel of the device. Throws EnvironmentError when there is not enough.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* data) = 0;
  // Bytes that could be allocated now without pushing others out; for the CPU within the limits of its control group.
  virtual size_t FreeMemory() const = 0;
  // Copies from the host's memory to the device's and back, after everything issued before; returns when it is done.
  virtual void CopyIn(const void* host, void* data, size_t bytes) = 0;
  virtual void CopyOut(const void* data, void* host, size_t bytes) = 0;
  // What computes there; null: the CPU's (OperationsOf).
  virtual Operations* operations() { return nullptr; }
};

// Owns memory of a device. Contents are undefined until written.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, size_t bytes)
      : device_(&device), data_(bytes ? device.Allocate(bytes) : nullptr), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (data_) device_->Free(data_);
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Numbers that a device keeps for all passes. Thread-safe once uploaded.
template <typename Number>
class DeviceTable {
 public:
  void Upload(Device& device, const std::vector<Number>& values) {
    buffer_ = Buffer(device, values.size() * sizeof(Number));
    if (!values.empty()) device.CopyIn(values.data(), buffer_.data(), buffer_.bytes());
  }
  // In the device's memory; null where there are none.
  const Number* data() const { return reinterpret_cast<const Number*>(buffer_.data()); }

 private:
  Buffer buffer_;
};

// Facts about the hardware for `crema device_query`.
struct DeviceFacts {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // what, value
};
DeviceFacts DescribeCpu();
// One entry a GPU. Without CUDA in the build, or without a driver, none; *why then says which.
std::vector<DeviceFacts> DescribeGpus(std::string* why);

}  // namespace crema

#endif  // CREMA_DEVICE_DEVICE_H_
