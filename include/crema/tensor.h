// Shapes, element types and tensors.
#ifndef CREMA_TENSOR_H_
#define CREMA_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace crema {

struct BFloat16;
struct Float16;

// kBF16 and kF16 (IEEE half precision) hold images between layers where a net computes in them; everything a user sees
// is kF32.
enum class DType : uint8_t { kF32, kI32, kU8, kBF16, kF16 };

// What factors of matrix products and convolutions in f32 may be rounded to, where that is faster; sums are of f32.
// kTF32 and kF16: 10 bits of mantissa; kBF16: 7.
enum class Factors : uint8_t { kF32, kTF32, kBF16, kF16 };

// Bytes of one element.
size_t SizeOf(DType dtype);
const char* Name(DType dtype);

// The extents of a tensor, outermost axis first (N, C, H, W for images). No axes means a scalar: count() is 1.
// Extents are >= 0; at most kMaxAxes axes, Caffe's limit.
class Shape {
 public:
  static constexpr int kMaxAxes = 32;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int axes() const { return static_cast<int>(dims_.size()); }
  // Negative axes count from the end. The axis must exist.
  int64_t operator[](int axis) const { return dims_[axis < 0 ? axis + axes() : axis]; }
  void set(int axis, int64_t extent) { dims_[axis < 0 ? axis + axes() : axis] = extent; }
  const std::vector<int64_t>& dims() const { return dims_; }

  // Product of the extents of axes [begin, end).
  int64_t count(int begin, int end) const;
  int64_t count(int begin) const { return count(begin, axes()); }
  int64_t count() const { return count(0, axes()); }

  // Whether there is this axis; those below 0 count from behind.
  bool HasAxis(int axis) const { return axis >= -axes() && axis < axes(); }
  // The same axis counted from the front.
  int CanonicalAxis(int axis) const { return axis < 0 ? axis + axes() : axis; }

  // "64x1x28x28"; "scalar" without axes.
  std::string ToString() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<int64_t> dims_;
};

// The order of a tensor's elements in memory. Shapes always name the axes as files do, channels second.
enum class Layout : uint8_t {
  kPlain,         // C order: the last axis densest (NCHW)
  kChannelsLast,  // the axis after the first densest, the others in C order (NHWC); at least three axes
};

struct TensorSpec {
  Shape shape;
  DType dtype = DType::kF32;
  Layout layout = Layout::kPlain;

  size_t bytes() const { return shape.count() * SizeOf(dtype); }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// A dense view of memory that something else owns (the program's arena, a Buffer). Cheap to copy; copies
// see the same elements. A gradient is another Tensor. Never reads or writes by itself, so threading is the caller's.
class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, TensorSpec spec) : data_(data), spec_(std::move(spec)) {}

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  Layout layout() const { return spec_.layout; }
  const TensorSpec& spec() const { return spec_; }
  int64_t count() const { return spec_.shape.count(); }
  size_t bytes() const { return spec_.bytes(); }

  void* raw() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }
  // The upper halves of floats (base/bfloat16.h).
  BFloat16* bf16() const { return static_cast<BFloat16*>(data_); }
  // base/float16.h
  Float16* f16() const { return static_cast<Float16*>(data_); }
  int32_t* i32() const { return static_cast<int32_t*>(data_); }
  uint8_t* u8() const { return static_cast<uint8_t*>(data_); }

  // Element i in C order of the axes, whatever type and layout: for reports, not for loops that must be fast.
  double value(int64_t i) const;

  // To other memory of the same spec.
  void MoveTo(void* data) { data_ = data; }

  // The same memory under another shape of equal count, in plain layout.
  Tensor Reshaped(Shape shape) const { return Tensor(data_, {std::move(shape), spec_.dtype}); }

 private:
  void* data_ = nullptr;
  TensorSpec spec_;
};

}  // namespace crema

#endif  // CREMA_TENSOR_H_
