#include "distributed/codecs/coding.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/check.h"

namespace crema {

namespace {

static_assert(std::endian::native == std::endian::little, "codes hold little-endian floats");

constexpr size_t kHeadBytes = 4;

CodecKind KindOf(DistributedParameter::Codec codec) {
  switch (codec) {
    case DistributedParameter::FP16:
      return CodecKind::kFloat16;
    case DistributedParameter::BF16:
      return CodecKind::kBFloat16;
    case DistributedParameter::INT8:
      return CodecKind::kInt8;
    case DistributedParameter::TOPK:
      return CodecKind::kTopK;
    case DistributedParameter::THRESHOLD:
      return CodecKind::kThreshold;
    case DistributedParameter::ONEBIT:
      return CodecKind::kOneBit;
    case DistributedParameter::NONE:
      break;
  }
  return CodecKind::kFloat32;
}

[[noreturn]] void Refuse(const char* why) { throw MalformedCode(std::string("a code of parameters ") + why); }

}  // namespace

CodecOptions CodecOf(const DistributedParameter& settings, Direction direction) {
  CodecOptions options;
  options.kind = KindOf(direction == Direction::kUp ? settings.codec() : settings.down_codec());
  options.topk_ratio = static_cast<double>(settings.topk_ratio());
  options.threshold = settings.codec_threshold();
  return options;
}

StateEncoder::StateEncoder(const CodecOptions& options, const StateLayout& layout)
    : layout_(layout), kind_(options.kind), feedback_(options, layout.buckets) {}

Payload StateEncoder::Encode(std::span<const float> values, std::span<const float> anchor, bool exactly) {
  CREMA_CHECK(values.size() >= static_cast<size_t>(layout_.values));
  CREMA_CHECK(anchor.empty() || anchor.size() >= static_cast<size_t>(layout_.trained));
  Settle(false);
  return EncodePart(0, layout_.buckets.size(), values, anchor, exactly);
}

Payload StateEncoder::EncodePart(size_t first, size_t last, std::span<const float> values,
                                 std::span<const float> anchor, bool exactly) {
  open_ = true;
  const auto code = std::make_shared<Bytes>(kHeadBytes, std::byte{0});
  (*code)[0] = static_cast<std::byte>(exactly ? CodecKind::kFloat32 : kind_);
  const float* at = values.data();
  const float* from = anchor.data();
  for (size_t bucket = first; bucket < last; ++bucket) {
    const size_t count = layout_.buckets[bucket].count;
    differences_.assign(at, at + count);
    if (from) {
      for (size_t i = 0; i < count; ++i) differences_[i] -= from[i];
      from += count;
    }
    at += count;
    const size_t place = code->size();
    code->resize(place + sizeof(uint32_t));
    if (exactly) {
      feedback_.EncodeExactly(bucket, differences_, *code);
    } else {
      feedback_.Encode(bucket, differences_, *code);
    }
    const uint32_t length = static_cast<uint32_t>(code->size() - place - sizeof(uint32_t));
    std::memcpy(code->data() + place, &length, sizeof length);
  }
  const std::span<const std::byte> rest = std::as_bytes(std::span(at, values.data() + values.size()));
  code->insert(code->end(), rest.begin(), rest.end());
  return code;
}

void StateEncoder::Settle(bool committed) {
  if (!open_) return;
  open_ = false;
  if (committed) {
    feedback_.Commit();
  } else {
    feedback_.Abort();
  }
}

void StateEncoder::Forget() {
  open_ = false;
  feedback_.Clear();
}

StateDecoder::StateDecoder(const CodecOptions& options, const StateLayout& layout)
    : layout_(layout), codec_(MakeCodec(options)), exact_(MakeCodec(CodecOptions{})) {
  most_bytes_ = kHeadBytes;
  for (const Bucket& bucket : layout_.buckets) {
    most_bytes_ +=
        sizeof(uint32_t) + std::max(codec_->EncodedBytesAtMost(bucket.count), exact_->EncodedBytesAtMost(bucket.count));
  }
  most_bytes_ += static_cast<uint64_t>(layout_.values - layout_.trained + layout_.history) * sizeof(float);
}

std::span<const std::byte> StateDecoder::DecodeBuckets(size_t first, size_t last, const Payload& code,
                                                       std::span<const float> anchor, Bytes& values) const {
  std::span<const std::byte> rest(*code);
  if (rest.size() < kHeadBytes) Refuse("has no beginning");
  const CodecKind kind = static_cast<CodecKind>(rest[0]);
  if ((kind != codec_->kind() && kind != CodecKind::kFloat32) || rest[1] != std::byte{0} || rest[2] != std::byte{0} ||
      rest[3] != std::byte{0}) {
    Refuse("is of another codec than the settings say");
  }
  rest = rest.subspan(kHeadBytes);
  float* out = reinterpret_cast<float*>(values.data());
  const float* from = anchor.data();
  for (size_t i = first; i < last; ++i) {
    const Bucket& bucket = layout_.buckets[i];
    uint32_t length = 0;
    if (rest.size() < sizeof length) Refuse("ends too soon");
    std::memcpy(&length, rest.data(), sizeof length);
    rest = rest.subspan(sizeof length);
    if (rest.size() < length) Refuse("ends too soon");
    const Codec& codec = KindOf(bucket, kind) == CodecKind::kFloat32 ? *exact_ : *codec_;
    codec.Decode(rest.first(length), {out, bucket.count});
    rest = rest.subspan(length);
    if (from) {
      for (size_t k = 0; k < bucket.count; ++k) out[k] = from[k] + out[k];
      from += bucket.count;
    }
    out += bucket.count;
  }
  return rest;
}

Payload StateDecoder::Decode(const Payload& code, std::span<const float> anchor) const {
  CREMA_CHECK(anchor.empty() || anchor.size() >= static_cast<size_t>(layout_.trained));
  // As long as it can be, until it is known whether there is a history.
  const auto values = std::make_shared<Bytes>(layout_.bytes(false));
  const std::span<const std::byte> rest = DecodeBuckets(0, layout_.buckets.size(), code, anchor, *values);
  const uint64_t others = static_cast<uint64_t>(layout_.values - layout_.trained) * sizeof(float);
  const uint64_t history = static_cast<uint64_t>(layout_.history) * sizeof(float);
  if (rest.size() != others && rest.size() != others + history) Refuse("has another length than the net's");
  const size_t coded = static_cast<size_t>(layout_.trained) * sizeof(float);
  values->resize(coded + rest.size());
  std::memcpy(values->data() + coded, rest.data(), rest.size());
  return values;
}

Payload StateDecoder::DecodePart(size_t first, size_t last, size_t others, const Payload& code,
                                 std::span<const float> anchor) const {
  size_t coded = 0;
  for (size_t i = first; i < last; ++i) coded += layout_.buckets[i].count;
  const auto values = std::make_shared<Bytes>((coded + others) * sizeof(float));
  const std::span<const std::byte> rest = DecodeBuckets(first, last, code, anchor, *values);
  if (rest.size() != others * sizeof(float)) Refuse("has another length than the piece");
  std::copy(rest.begin(), rest.end(), values->begin() + static_cast<std::ptrdiff_t>(coded * sizeof(float)));
  return values;
}

}  // namespace crema
