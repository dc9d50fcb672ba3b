// What workers send, in fewer bytes: deltas of parameters or gradients, never parameters. All numbers little-endian.
#ifndef CREMA_DISTRIBUTED_CODECS_CODEC_H_
#define CREMA_DISTRIBUTED_CODECS_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "base/kept_memory.h"
#include "crema/error.h"

namespace crema {

// The codes of `count` floats. Varint: 7 bits a byte, low ones first, the top bit says that more follow, shortest form
// only. Gap: an index minus the one before it minus 1; the first one, the index itself. A count of 0 takes no bytes.
// The numbers go over the wire.
enum class CodecKind : uint8_t {
  // float32[count]. Exact.
  kFloat32 = 0,
  // IEEE 754 half[count], to the nearest, ties to even. Error at most max(|x| / 2^11, 2^-25); beyond 65504: 65504.
  kFloat16 = 1,
  // bfloat16[count], to the nearest, ties to even. Error at most |x| / 2^8; what would be infinite is the largest
  // finite.
  kBFloat16 = 2,
  // float32 scale[blocks of 256], then int8[count], -127 to 127: x = scale * int8, scale = (largest |x| of the block) /
  // 127. Error at most half a scale, + 1e-43. (Dettmers, "8-bit approximations for parallelism in deep learning",
  // 2015.)
  kInt8 = 3,
  // varint k, k varint gaps, float32[k]: the k = ceil(topk_ratio * count) largest |x|, of equal ones the first, without
  // zeros; the others are 0. Error at most the smallest |x| sent. (Aji and Heafield, "Sparse communication for
  // distributed gradient descent", 2017.)
  kTopK = 4,
  // float32 t, then a byte and what it says: 0: varint k, k varints (gap * 2 + negative); 1: two bits for each value,
  // low ones first, 0: 0, 1: t, 2: -t. Whichever is smaller. Where |x| >= t: t with the sign of x; else 0. Error below
  // max(t, |x| - t). (Strom, "Scalable distributed DNN training using commodity GPU cloud computing", 2015.)
  kThreshold = 5,
  // Columns of onebit_column values: a byte for each, then, of each: byte 0: only zeros: nothing. byte 1: float32 mean
  // of its negative values, float32 mean of its positive ones, a bit for each value, low ones first: is it negative?
  // byte 2: the same with, before these bits, as many that say: is it exactly 0? Those stay 0. Bits fill up bytes in
  // each column. Error below the largest |x| of the column. (Seide et al., "1-bit stochastic gradient descent", 2014,
  // where a column is what one output is made of.)
  kOneBit = 6,
};

// "INT8".
const char* NameOf(CodecKind kind);

struct CodecOptions {
  CodecKind kind = CodecKind::kFloat32;
  // TOPK: which part of the values is sent, above 0 up to 1.
  double topk_ratio = 0.01;
  // THRESHOLD: finite, above 0.
  float threshold = 1e-3f;
  // ONEBIT: values in a column, a multiple of 64 up to 65536. Sender and receiver need the same.
  uint32_t onebit_column = 512;
};

// Bytes that Encode did not make: truncated, too long, or a number that cannot be. A peer is broken or hostile.
class MalformedCode : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

// A value to be encoded is infinite or not a number.
class NonFiniteValue : public std::runtime_error {
 public:
  // index: of the first one.
  NonFiniteValue(size_t index, float value);

  size_t index() const { return index_; }

 private:
  size_t index_;
};

// Has no state: any number of threads may use one. Works on all threads where there are values enough; the bytes do not
// depend on how many. The same values make the same bytes.
class Codec {
 public:
  virtual ~Codec() = default;

  CodecKind kind() const { return kind_; }

  // Appends the code of `values` to `out`, at most EncodedBytesAtMost(values.size()) bytes; reserving them saves
  // copies. Throws NonFiniteValue, and then `out` is as before: no code carries what is not finite.
  void Encode(std::span<const float> values, Bytes& out) const;

  // Reads a code of exactly values.size() values that fills `code`. Any bytes are safe: throws MalformedCode where they
  // are no code, with nothing written outside of `values` (whose contents are then unspecified); allocates nothing.
  // What it writes is finite.
  void Decode(std::span<const std::byte> code, std::span<float> values) const;

  virtual size_t EncodedBytesAtMost(size_t count) const = 0;

  // What magnitude this code can soon make up for, given what was to be sent and what of it and of earlier errors the
  // code decodes to: more than a few times as much is old when it arrives. THRESHOLD: the threshold. ONEBIT: the
  // largest |x| of both. FP16: 65504. Others: infinite.
  virtual float Scale(std::span<const float> /*values*/, std::span<const float> /*decoded*/) const {
    return std::numeric_limits<float>::infinity();
  }

 protected:
  explicit Codec(CodecKind kind) : kind_(kind) {}

  // Throws MalformedCode with the codec's name and `what`.
  [[noreturn]] void Refuse(const std::string& what) const;

 private:
  // values: finite, at least one.
  virtual void EncodeFinite(std::span<const float> values, Bytes& out) const = 0;
  virtual void DecodeSome(std::span<const std::byte> code, std::span<float> values) const = 0;

  const CodecKind kind_;
};

// Throws UserError for options out of their range.
std::unique_ptr<const Codec> MakeCodec(const CodecOptions& options);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_CODECS_CODEC_H_
