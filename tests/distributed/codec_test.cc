#include "distributed/codecs/codec.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <bit>

#include "distributed/values.h"

namespace crema {
namespace {

constexpr size_t kCounts[] = {1,   2,   3,   7,   8,   15,  16,  17,  63,   64,   65,   127,  128,  129,
                              255, 256, 257, 511, 512, 513, 767, 768, 1023, 1024, 1025, 4097, 12345};

// Runs of every kind of value, in random order of kinds.
std::vector<float> Mixture(size_t n, uint64_t stream) {
  const RandomStream random(23, stream);
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const float sign = random.Below(3 * i, 2) == 0 ? 1.0f : -1.0f;
    const auto bits = static_cast<uint32_t>(random.Bits64(3 * i + 1));
    switch (random.Below(3 * (i / 5) + 2, 7)) {
      case 0:
        values[i] = 0 * sign;
        break;
      case 1:
        values[i] = std::bit_cast<float>(bits & 0x7fffff) * sign;  // subnormal
        break;
      case 2:
        values[i] = kMost * sign;
        break;
      case 3:
        values[i] = std::bit_cast<float>(bits % 0x7f800000u) * sign;
        break;
      case 4:
        values[i] = std::bit_cast<float>(0x38000000u + bits % 0x1000000u) * sign;  // around the smallest normal half
        break;
      default:
        values[i] = random.Gaussian(i);
    }
  }
  return values;
}

// What codec.h promises for each value.
void ExpectWithinBounds(const CodecOptions& options, const std::vector<float>& values,
                        const std::vector<float>& decoded) {
  const size_t n = values.size();
  const auto magnitude = [&](size_t i) { return std::abs(static_cast<double>(values[i])); };
  const auto largest_of = [&](size_t begin, size_t length) {
    double largest = 0;
    for (size_t i = begin; i < std::min(n, begin + length); ++i) largest = std::max(largest, magnitude(i));
    return largest;
  };
  double smallest_sent = kMost;
  if (options.kind == CodecKind::kTopK) {
    for (size_t i = 0; i < n; ++i)
      smallest_sent = decoded[i] != 0 ? std::min(smallest_sent, magnitude(i)) : smallest_sent;
  }
  for (size_t i = 0; i < n; ++i) {
    const double error = std::abs(static_cast<double>(values[i]) - decoded[i]);
    const double x = magnitude(i);
    double bound = 0;
    switch (options.kind) {
      case CodecKind::kFloat32:
        break;
      case CodecKind::kFloat16:
        bound = std::max(x / 2048, 0x1p-25) + std::max(0.0, x - 65504);
        break;
      case CodecKind::kBFloat16:
        bound = std::max(x / 256, 0x1p-134);
        break;
      case CodecKind::kInt8:
        bound = largest_of(i / 256 * 256, 256) / 254 * (1 + 1e-5) + 1e-43;
        break;
      case CodecKind::kTopK:
        bound = decoded[i] != 0 ? 0 : smallest_sent;
        break;
      case CodecKind::kThreshold:
        bound = std::max<double>(options.threshold, x - options.threshold);
        break;
      case CodecKind::kOneBit:
        bound = largest_of(i / options.onebit_column * options.onebit_column, options.onebit_column);
        break;
    }
    ASSERT_LE(error, bound) << "value " << i << " of " << n << ": " << values[i] << " became " << decoded[i];
    ASSERT_TRUE(decoded[i] == 0 || std::signbit(decoded[i]) == std::signbit(values[i])) << i;
  }
}

class EveryCodec : public testing::TestWithParam<CodecOptions> {
 protected:
  const std::unique_ptr<const Codec> codec_ = MakeCodec(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec, testing::ValuesIn(AllCodecs()), NameOfOptions);

TEST_P(EveryCodec, KeepsItsErrorBoundForAnyLength) {
  for (const size_t n : kCounts) {
    SCOPED_TRACE(n);
    const auto values = Gaussians(n, n);
    const auto code = Encoded(*codec_, values);
    EXPECT_LE(code.size(), codec_->EncodedBytesAtMost(n));
    ExpectWithinBounds(GetParam(), values, Decoded(*codec_, code, n));
  }
}

TEST_P(EveryCodec, KeepsItsErrorBoundForAnyFiniteValue) {
  for (const size_t n : kCounts) {
    SCOPED_TRACE(n);
    const auto values = Mixture(n, n);
    const auto code = Encoded(*codec_, values);
    EXPECT_LE(code.size(), codec_->EncodedBytesAtMost(n));
    ExpectWithinBounds(GetParam(), values, Decoded(*codec_, code, n));
  }
}

TEST_P(EveryCodec, KeepsItsErrorBoundForOneMagnitude) {
  for (const float magnitude : {kMost, kLeast, 64 * kLeast, 190 * kLeast, std::numeric_limits<float>::min(), 1.0f}) {
    SCOPED_TRACE(magnitude);
    std::vector<float> values(777, magnitude);
    for (size_t i = 0; i < values.size(); i += 3) values[i] = -magnitude;
    const auto code = Encoded(*codec_, values);
    EXPECT_LE(code.size(), codec_->EncodedBytesAtMost(values.size()));
    ExpectWithinBounds(GetParam(), values, Decoded(*codec_, code, values.size()));
  }
}

TEST_P(EveryCodec, KeepsZeros) {
  for (const size_t n : kCounts) EXPECT_EQ(ThroughCode(*codec_, std::vector<float>(n)), std::vector<float>(n)) << n;
  // Zeros among others, too.
  auto values = Gaussians(2000, 3);
  for (size_t i = 0; i < values.size(); i += 2) values[i] = 0;
  const auto decoded = ThroughCode(*codec_, values);
  for (size_t i = 0; i < values.size(); i += 2) ASSERT_EQ(decoded[i], 0) << i;
}

TEST_P(EveryCodec, NothingIsNoBytes) {
  EXPECT_EQ(codec_->EncodedBytesAtMost(0), 0u);
  EXPECT_TRUE(Encoded(*codec_, {}).empty());
  EXPECT_TRUE(Decoded(*codec_, {}, 0).empty());
  EXPECT_THROW(Decoded(*codec_, BytesOf({0}), 0), MalformedCode);
  EXPECT_THROW(Decoded(*codec_, {}, 1), MalformedCode);
}

TEST_P(EveryCodec, AppendsTheSameBytesOnAnyNumberOfThreads) {
  const size_t n = (size_t{5} << 18) + 77;
  const auto values = Gaussians(n, 5);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto code = Encoded(*codec_, values);
  const auto decoded = Decoded(*codec_, code, n);
  omp_set_num_threads(4);
  auto after = BytesOf({1, 2, 3});  // also puts the code at an odd address
  codec_->Encode(values, after);
  const Bytes appended(after.begin() + 3, after.end());
  std::vector<float> decoded_in_place(n);
  codec_->Decode(std::span(after).subspan(3), decoded_in_place);
  omp_set_num_threads(threads);
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 3, BytesOf({1, 2, 3}).begin()));
  EXPECT_TRUE(appended == code);
  EXPECT_TRUE(decoded_in_place == decoded);
  ExpectWithinBounds(GetParam(), values, decoded);
}

TEST_P(EveryCodec, RefusesToEncodeWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad :
       {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::signaling_NaN()}) {
    for (const size_t n : {size_t{1}, size_t{64}, size_t{300}, (size_t{1} << 19) + 5}) {
      for (const size_t place : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> values(n, 1.0f);
        values[place] = values[n - 1] = bad;
        auto out = BytesOf({1, 2});
        try {
          codec_->Encode(values, out);
          ADD_FAILURE() << bad << " at " << place << " of " << n;
        } catch (const NonFiniteValue& e) {
          EXPECT_EQ(e.index(), place);
        }
        EXPECT_EQ(out, BytesOf({1, 2}));
      }
    }
  }
}

TEST_P(EveryCodec, RefusesOtherLengths) {
  for (const size_t n : kCounts) {
    auto code = Encoded(*codec_, Gaussians(n, n, 10));
    code.push_back(std::byte{0});
    EXPECT_THROW(Decoded(*codec_, code, n), MalformedCode) << n;
    code.pop_back();
    EXPECT_NO_THROW(Decoded(*codec_, code, n)) << n;
    while (!code.empty()) {
      code.pop_back();
      ASSERT_THROW(Decoded(*codec_, code, n), MalformedCode) << code.size() << " bytes for " << n;
      code.resize(code.size() - std::min(code.size(), code.size() > 300 ? 97ul : 0ul));
    }
  }
}

// Exactly as many floats as there are, between pages that sanitizers guard and values that must stay.
void ExpectRefusedOrFinite(const Codec& codec, const Bytes& code, size_t count, int* refused) {
  constexpr float kGuard = -77.25f;
  const Bytes exact_code(code.begin(), code.end());
  std::vector<float> values(count + 2, kGuard);
  try {
    codec.Decode(exact_code, std::span(values).subspan(1, count));
    for (size_t i = 1; i <= count; ++i) ASSERT_TRUE(std::isfinite(values[i])) << i;
  } catch (const MalformedCode& e) {
    ++*refused;
    ASSERT_NE(std::string(e.what()).find(NameOf(codec.kind())), std::string::npos) << e.what();
  }
  ASSERT_EQ(values.front(), kGuard);
  ASSERT_EQ(values.back(), kGuard);
}

TEST_P(EveryCodec, SurvivesMutations) {
  const RandomStream random(31, static_cast<uint64_t>(GetParam().kind));
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return random.Below(draw++, n); };
  int refused = 0;
  constexpr int kRounds = 6000;
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    const size_t count = kCounts[below(std::size(kCounts) - 2)];
    auto code = Encoded(*codec_, below(2) == 0 ? Gaussians(count, round) : Mixture(count, round));
    for (uint64_t edits = 1 + below(4); edits > 0; --edits) {
      // Headers and forms stand at the beginning.
      const size_t place = code.empty() ? 0 : below(below(2) == 0 ? std::min<size_t>(code.size(), 12) : code.size());
      switch (code.empty() ? 3 : below(5)) {
        case 0:
          code[place] ^= std::byte{1} << below(8);
          break;
        case 1:
          code[place] = static_cast<std::byte>(below(4) == 0 ? 0xff : below(256));
          break;
        case 2:
          code.resize(place);
          break;
        case 3:
          code.insert(code.begin() + place, 1 + below(9), static_cast<std::byte>(below(256)));
          break;
        default:
          code.erase(code.begin() + place);
      }
    }
    ExpectRefusedOrFinite(*codec_, code, count, &refused);
  }
  EXPECT_GT(refused, kRounds / 4);
  EXPECT_LT(refused, kRounds);  // flipped bits of values make other values
}

TEST_P(EveryCodec, SurvivesRandomBytes) {
  const RandomStream random(37, static_cast<uint64_t>(GetParam().kind));
  uint64_t draw = 0;
  int refused = 0;
  constexpr int kRounds = 6000;
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    const size_t count = random.Below(draw++, 600), bound = codec_->EncodedBytesAtMost(count);
    // Often of a length that the codec would not refuse at once.
    Bytes code(random.Below(draw++, 2) == 0 ? bound : random.Below(draw++, 2 * bound + 20));
    const uint64_t range = random.Below(draw++, 2) == 0 ? 256 : 3;
    for (std::byte& byte : code) byte = static_cast<std::byte>(random.Below(draw++, range));
    ExpectRefusedOrFinite(*codec_, code, count, &refused);
  }
  EXPECT_GT(refused, kRounds / 20);
}

}  // namespace
}  // namespace crema
