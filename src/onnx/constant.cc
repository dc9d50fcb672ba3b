#include "onnx/constant.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "base/input_file.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "crema/error.h"
#include "import/layers.h"

namespace crema::onnx {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const TensorProto& tensor, const std::string& message) {
  throw UserError("tensor \"" + Printable(tensor.name()) + "\": " + message);
}

// Bytes of an element; 0 for types that crema does not compute with.
int64_t BytesOf(int32_t type) {
  switch (type) {
    case TensorProto::UINT8:
    case TensorProto::INT8:
    case TensorProto::BOOL:
      return 1;
    case TensorProto::UINT16:
    case TensorProto::INT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return 2;
    case TensorProto::FLOAT:
    case TensorProto::INT32:
    case TensorProto::UINT32:
      return 4;
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return 8;
    default:
      return 0;
  }
}

bool IsWhole(int32_t type) {
  return type != TensorProto::FLOAT && type != TensorProto::FLOAT16 && type != TensorProto::BFLOAT16 &&
         type != TensorProto::DOUBLE;
}

int64_t Number(const TensorProto& tensor, const StringStringEntryProto& entry) {
  const std::string& text = entry.value();
  int64_t number = -1;
  if (!ParseWhole(text, &number) || number < 0) {
    Fail(tensor, entry.key() + " \"" + text + "\" of its external data is no number of bytes");
  }
  return number;
}

// The file inside `folder` that holds it: links and ".." must not lead elsewhere.
fs::path ExternalFile(const TensorProto& tensor, const std::string& folder, const std::string& location) {
  const fs::path relative(location);
  bool inside = !location.empty() && relative.is_relative() && location.find('\0') == std::string::npos;
  for (const fs::path& part : relative) inside &= part != "..";
  std::error_code failure;
  const fs::path root = fs::canonical(folder, failure),
                 file = fs::weakly_canonical(fs::path(folder) / relative, failure);
  const fs::path from_root = file.lexically_relative(root);
  if (!inside || from_root.empty() || *from_root.begin() == "..") {
    Fail(tensor, "its external data \"" + location + "\" is outside the model's folder, which is not read");
  }
  if (!fs::is_regular_file(file, failure)) {
    Fail(tensor,
         "its external data " + (fs::path(folder) / relative).string() + " is missing; put the file beside the model");
  }
  return file;
}

std::string ExternalBytes(const TensorProto& tensor, const std::string& folder, int64_t bytes) {
  std::string location;
  int64_t offset = 0, length = bytes;
  for (const StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = Number(tensor, entry);
    if (entry.key() == "length") length = Number(tensor, entry);
  }
  const fs::path path = ExternalFile(tensor, folder, location);
  const auto size = static_cast<int64_t>(fs::file_size(path));
  if (length != bytes) {
    Fail(tensor,
         "its extents want " + std::to_string(bytes) + " bytes, but its external data has " + std::to_string(length));
  }
  if (offset > size || length > size - offset) {
    Fail(tensor, "its external data takes " + std::to_string(length) + " bytes from byte " + std::to_string(offset) +
                     " of " + path.string() + " on, which has " + std::to_string(size) + "; was the file cut short?");
  }
  std::string data(static_cast<size_t>(length), '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(offset);
  file.read(data.data(), length);
  if (!file) FailToRead(path.string(), file);
  return data;
}

template <typename Stored>
void TakeBytes(const std::string& bytes, Constant* constant) {
  const int64_t count = constant->count();
  for (int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof value), sizeof value);
    if constexpr (std::is_integral_v<Stored>) {
      constant->integers.push_back(static_cast<int64_t>(value));
    } else {
      constant->floats.push_back(static_cast<float>(value));
    }
  }
}

void TakeBytes(int32_t type, const std::string& bytes, Constant* constant) {
  constant->whole ? constant->integers.reserve(constant->count()) : constant->floats.reserve(constant->count());
  switch (type) {
    case TensorProto::FLOAT:
      return TakeBytes<float>(bytes, constant);
    case TensorProto::DOUBLE:
      return TakeBytes<double>(bytes, constant);
    case TensorProto::FLOAT16:
      return TakeBytes<Float16>(bytes, constant);
    case TensorProto::BFLOAT16:
      return TakeBytes<BFloat16>(bytes, constant);
    case TensorProto::INT8:
      return TakeBytes<int8_t>(bytes, constant);
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return TakeBytes<uint8_t>(bytes, constant);
    case TensorProto::INT16:
      return TakeBytes<int16_t>(bytes, constant);
    case TensorProto::UINT16:
      return TakeBytes<uint16_t>(bytes, constant);
    case TensorProto::INT32:
      return TakeBytes<int32_t>(bytes, constant);
    case TensorProto::UINT32:
      return TakeBytes<uint32_t>(bytes, constant);
    default:
      return TakeBytes<int64_t>(bytes, constant);
  }
}

template <typename Values>
void TakeField(const TensorProto& tensor, const Values& values, Constant* constant) {
  if (values.size() != constant->count()) {
    Fail(tensor, "its extents " + constant->shape.ToString() + " want " + std::to_string(constant->count()) +
                     " elements, but the file has " + std::to_string(values.size()));
  }
  if (constant->whole) {
    constant->integers.assign(values.begin(), values.end());
  } else {
    constant->floats.assign(values.begin(), values.end());
  }
}

void TakeFields(const TensorProto& tensor, Constant* constant) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return TakeField(tensor, tensor.float_data(), constant);
    case TensorProto::DOUBLE:
      return TakeField(tensor, tensor.double_data(), constant);
    case TensorProto::INT64:
      return TakeField(tensor, tensor.int64_data(), constant);
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return TakeField(tensor, tensor.uint64_data(), constant);
    default:
      break;
  }
  TakeField(tensor, tensor.int32_data(), constant);
  if (constant->whole) return;
  for (int64_t i = 0; i < constant->count(); ++i) {
    const auto bits = static_cast<uint16_t>(tensor.int32_data(static_cast<int>(i)));
    const bool half = tensor.data_type() == TensorProto::FLOAT16;
    constant->floats[i] =
        half ? static_cast<float>(std::bit_cast<Float16>(bits)) : static_cast<float>(std::bit_cast<BFloat16>(bits));
  }
}

}  // namespace

Constant Floats(Shape shape, std::vector<float> values) {
  return {.shape = std::move(shape), .whole = false, .floats = std::move(values)};
}

Constant Integers(std::vector<int64_t> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return {.shape = shape, .whole = true, .integers = std::move(values)};
}

Constant ReadTensor(const TensorProto& tensor, const std::string& folder) {
  Constant constant;
  constant.shape = Shape(std::vector<int64_t>(tensor.dims().begin(), tensor.dims().end()));
  constant.whole = IsWhole(tensor.data_type());
  const int64_t element = BytesOf(tensor.data_type()), count = CheckedCount(constant.shape.dims());
  if (element == 0) {
    Fail(tensor, "its type (" + std::to_string(tensor.data_type()) +
                     " in ONNX's list) is none that crema computes with; export the model in float32");
  }
  if (count < 0 || constant.shape.axes() > Shape::kMaxAxes) {
    Fail(tensor, "no tensor can have the extents " + constant.shape.ToString());
  }
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    TakeBytes(tensor.data_type(), ExternalBytes(tensor, folder, count * element), &constant);
  } else if (tensor.has_raw_data()) {
    if (static_cast<int64_t>(tensor.raw_data().size()) != count * element) {
      Fail(tensor, "its extents " + constant.shape.ToString() + " want " + std::to_string(count * element) +
                       " bytes, but the file has " + std::to_string(tensor.raw_data().size()));
    }
    TakeBytes(tensor.data_type(), tensor.raw_data(), &constant);
  } else {
    TakeFields(tensor, &constant);
  }
  return constant;
}

}  // namespace crema::onnx
