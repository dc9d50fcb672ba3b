#include "crema/tensor.h"

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/float16.h"

namespace crema {

size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  CREMA_CHECK(false) << "unknown element type";
  return 0;
}

const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
  }
  return "?";
}

double Tensor::value(int64_t i) const {
  if (layout() == Layout::kChannelsLast) {
    const int64_t channels = shape()[1], pixels = shape().count(2);
    const int64_t pixel = i % pixels, channel = i / pixels % channels, item = i / pixels / channels;
    i = (item * pixels + pixel) * channels + channel;
  }
  switch (dtype()) {
    case DType::kF32:
      return f32()[i];
    case DType::kI32:
      return i32()[i];
    case DType::kU8:
      return u8()[i];
    case DType::kBF16:
      return bf16()[i];
    case DType::kF16:
      return f16()[i];
  }
  return 0;
}

int64_t Shape::count(int begin, int end) const {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= dims_[i];
  return n;
}

std::string Shape::ToString() const {
  if (dims_.empty()) return "scalar";
  std::string text;
  for (int64_t d : dims_) {
    if (!text.empty()) text += 'x';
    text += std::to_string(d);
  }
  return text;
}

}  // namespace crema
