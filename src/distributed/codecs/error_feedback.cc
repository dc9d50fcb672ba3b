#include "distributed/codecs/error_feedback.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = int64_t{1} << 18;

CREMA_MULTIVERSION void AddRange(const float* a, const float* b, int64_t n, float* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

// left = sum - left; returns the largest magnitude in it.
CREMA_MULTIVERSION float LeaveRange(const float* sum, int64_t n, float* left) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float error = sum[i] - left[i];
    left[i] = error;
    // As an integer: compilers vectorise no maximum of floats.
    largest = std::max(largest, std::bit_cast<int32_t>(error) & 0x7fffffff);
  }
  return std::bit_cast<float>(largest);
}

void ClipRange(float limit, int64_t n, float* left) {
  for (int64_t i = 0; i < n; ++i) left[i] = std::clamp(left[i], -limit, limit);
}

double SquaresOf(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return squares;
}

}  // namespace

CodecKind KindOf(const Bucket& bucket, CodecKind kind) {
  return bucket.exact || bucket.count < kLeastCompressedBytes / sizeof(float) ? CodecKind::kFloat32 : kind;
}

struct ErrorFeedback::State {
  Bucket bucket;
  const Codec* codec;
  // Empty where the codec is exact. `next` becomes `residual` when it is committed.
  std::vector<float> residual, next;
  bool pending = false;
};

ErrorFeedback::ErrorFeedback(const CodecOptions& options, std::vector<Bucket> buckets, float clip)
    : codec_(MakeCodec(options)), exact_(MakeCodec({.kind = CodecKind::kFloat32})), clip_(clip) {
  if (!(clip > 0))
    throw UserError("what codes leave out is clipped to more than 0 times its scale, not " + std::to_string(clip));
  states_.reserve(buckets.size());
  size_t largest = 0;
  for (const Bucket& bucket : buckets) {
    State& state = states_.emplace_back();
    state.bucket = bucket;
    state.codec = KindOf(bucket, codec_->kind()) == CodecKind::kFloat32 ? exact_.get() : codec_.get();
    if (state.codec == exact_.get()) continue;
    state.residual.resize(bucket.count);
    state.next.resize(bucket.count);
    largest = std::max(largest, bucket.count);
  }
  sum_.resize(largest);
}

ErrorFeedback::~ErrorFeedback() = default;

const Codec& ErrorFeedback::codec(size_t bucket) const { return *states_.at(bucket).codec; }

void ErrorFeedback::Encode(size_t bucket, std::span<const float> values, Bytes& out) {
  EncodeWith(codec(bucket), bucket, values, out);
}

void ErrorFeedback::EncodeExactly(size_t bucket, std::span<const float> values, Bytes& out) {
  EncodeWith(*exact_, bucket, values, out);
}

void ErrorFeedback::EncodeWith(const Codec& codec, size_t bucket, std::span<const float> values, Bytes& out) {
  State& state = states_.at(bucket);
  CREMA_CHECK(values.size() == state.bucket.count)
      << values.size() << " values for bucket " << bucket << " of " << state.bucket.count;
  state.pending = false;
  if (state.residual.empty()) {
    codec.Encode(values, out);
    return;
  }
  const auto n = static_cast<int64_t>(values.size());
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    AddRange(values.data() + begin, state.residual.data() + begin, end - begin, sum_.data() + begin);
  });
  const std::span<const float> sum(sum_.data(), values.size());
  const size_t before = out.size();
  codec.Encode(sum, out);
  codec.Decode(std::span(out).subspan(before), state.next);
  const float limit = std::min(clip_ * codec.Scale(values, state.next), std::numeric_limits<float>::max());
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    float* const left = state.next.data() + begin;
    if (LeaveRange(sum.data() + begin, end - begin, left) > limit) ClipRange(limit, end - begin, left);
  });
  state.pending = true;
}

void ErrorFeedback::Commit() {
  for (State& state : states_) {
    if (!state.pending) continue;
    state.residual.swap(state.next);
    state.pending = false;
  }
}

void ErrorFeedback::Abort() {
  for (State& state : states_) state.pending = false;
}

double ErrorFeedback::Clear() {
  const double lost = Norm();
  Abort();
  for (State& state : states_) std::ranges::fill(state.residual, 0.0f);
  return lost;
}

double ErrorFeedback::Norm() const {
  double squares = 0;
  for (const State& state : states_) squares += SquaresOf(state.residual);
  return std::sqrt(squares);
}

std::span<const float> ErrorFeedback::residual(size_t bucket) const { return states_.at(bucket).residual; }

}  // namespace crema
