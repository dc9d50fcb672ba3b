#include "distributed/codec.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "distributed/values.h"

namespace crema {
namespace {

constexpr size_t kCounts[] = {1,   2,   3,   7,   8,   15,  16,  17,  63,   64,   65,   127,  128,  129,
                              255, 256, 257, 511, 512, 513, 767, 768, 1023, 1024, 1025, 4097, 12345};

Bytes BytesOf(std::initializer_list<int> bytes) {
  Bytes result;
  for (const int byte : bytes) result.push_back(static_cast<std::byte>(byte));
  return result;
}

Bytes WithFloats(Bytes code, std::initializer_list<float> values) {
  for (const float value : values) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(value);
    code.insert(code.end(), bytes.begin(), bytes.end());
  }
  return code;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

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

TEST(CodecTest, OptionsOutOfRangeAreRefused) {
  for (const double ratio : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_THROW(MakeCodec({.kind = CodecKind::kTopK, .topk_ratio = ratio}), UserError) << ratio;
  }
  for (const float threshold : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_THROW(MakeCodec({.kind = CodecKind::kThreshold, .threshold = threshold}), UserError) << threshold;
  }
  for (const uint32_t column : {0u, 1u, 100u, 65600u, 0xffffffc0u}) {
    EXPECT_THROW(MakeCodec({.kind = CodecKind::kOneBit, .onebit_column = column}), UserError) << column;
  }
  EXPECT_THROW(MakeCodec({.kind = static_cast<CodecKind>(7)}), UserError);
}

TEST(CodecTest, BytesAreThoseOfTheFormat) {
  const auto code_of = [](CodecOptions options, const std::vector<float>& values) {
    return Encoded(*MakeCodec(options), values);
  };
  EXPECT_EQ(code_of({.kind = CodecKind::kFloat32}, {1, -2}), WithFloats({}, {1, -2}));
  EXPECT_EQ(code_of({.kind = CodecKind::kFloat16}, {1, -2, 65520, 0x1p-24f, -1e30f}),
            BytesOf({0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0x01, 0x00, 0xff, 0xfb}));
  EXPECT_EQ(code_of({.kind = CodecKind::kBFloat16}, {1, -2, kMost}), BytesOf({0x80, 0x3f, 0x00, 0xc0, 0x7f, 0x7f}));
  EXPECT_EQ(code_of({.kind = CodecKind::kInt8}, {127, -127, 2.5, 3.5, -0.4f}),
            WithFloats({}, {1}) + BytesOf({127, 0x81, 2, 4, 0}));
  // k = 3; gaps 1, 0, 200 - 3.
  std::vector<float> values(250, 0.5f);
  values[1] = -3;
  values[2] = 4;
  values[200] = 5;
  EXPECT_EQ(code_of({.kind = CodecKind::kTopK, .topk_ratio = 0.01}, values),
            WithFloats(BytesOf({3, 1, 0, 0xc5, 0x01}), {-3, 4, 5}));
  // Of equal ones the first; no zeros.
  EXPECT_EQ(code_of({.kind = CodecKind::kTopK, .topk_ratio = 0.5}, {1, -1, 1, 2}),
            WithFloats(BytesOf({2, 0, 2}), {1, 2}));
  EXPECT_EQ(code_of({.kind = CodecKind::kTopK, .topk_ratio = 1}, {0, 7, -0.0f}), WithFloats(BytesOf({1, 1}), {7}));
  EXPECT_EQ(code_of({.kind = CodecKind::kThreshold, .threshold = 3}, values),
            WithFloats({}, {3}) + BytesOf({0, 3, 3, 0, 0x8a, 0x03}));
  EXPECT_EQ(code_of({.kind = CodecKind::kThreshold, .threshold = 1}, {1, -2, 0.5f, 2, -1}),
            WithFloats({}, {1}) + BytesOf({1, 0x49, 0x02}));
  std::vector<float> columns(64 + 64 + 3, 1);
  std::fill_n(columns.begin(), 64, 0.0f);
  columns[65] = -3;
  columns[66] = 3;  // the mean of the positive ones is 65 / 63
  columns[128] = -1;
  columns[129] = 0;
  EXPECT_EQ(code_of({.kind = CodecKind::kOneBit, .onebit_column = 64}, columns),
            WithFloats(BytesOf({0, 1, 2}), {-3, 65.0f / 63}) + BytesOf({2, 0, 0, 0, 0, 0, 0, 0}) +
                WithFloats({}, {-1, 1}) + BytesOf({2, 1}));
}

TEST(CodecTest, CodesThatCannotBeAreRefused) {
  const auto expect_refused = [](CodecOptions options, const Bytes& code, size_t count) {
    EXPECT_THROW(Decoded(*MakeCodec(options), code, count), MalformedCode);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  expect_refused({.kind = CodecKind::kFloat32}, WithFloats({}, {1, -kInfinity}), 2);
  expect_refused({.kind = CodecKind::kFloat16}, BytesOf({0x00, 0x7c}), 1);
  expect_refused({.kind = CodecKind::kFloat16}, BytesOf({0x01, 0xfc}), 1);
  expect_refused({.kind = CodecKind::kBFloat16}, BytesOf({0x80, 0xff}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {-1}) + BytesOf({1}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {kMost / 126}) + BytesOf({1}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {std::nanf("")}) + BytesOf({1}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {1}) + BytesOf({0x80}), 1);
  const CodecOptions topk = {.kind = CodecKind::kTopK};
  EXPECT_EQ(Decoded(*MakeCodec(topk), WithFloats(BytesOf({1, 2}), {9}), 3), std::vector<float>({0, 0, 9}));
  expect_refused(topk, WithFloats(BytesOf({1, 3}), {9}), 3);
  expect_refused(topk, WithFloats(BytesOf({2, 2, 0}), {9, 9}), 3);
  expect_refused(topk, WithFloats(BytesOf({1, 0x82, 0x00}), {9}), 3);  // not the shortest form
  expect_refused(topk, WithFloats(BytesOf({1, 2}), {kInfinity}), 3);
  expect_refused(topk, WithFloats(BytesOf({4, 0, 0, 0, 0}), {9, 9, 9, 9}), 3);
  expect_refused(topk, BytesOf({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), 3);
  expect_refused(topk, BytesOf({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), 3);
  // A gap that would come round to 0.
  expect_refused(topk, WithFloats(BytesOf({2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), {9, 9}), 3);
  const CodecOptions threshold = {.kind = CodecKind::kThreshold};
  EXPECT_EQ(Decoded(*MakeCodec(threshold), WithFloats({}, {2}) + BytesOf({0, 1, 5}), 3),
            std::vector<float>({0, 0, -2}));
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({0, 1, 6}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({0, 1, 5, 0}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({2, 1, 5}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({1, 0x03}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({1, 0x40}), 3);  // a fourth value
  for (const float bad : {0.0f, -1.0f, kInfinity, std::nanf("")}) {
    expect_refused(threshold, WithFloats({}, {bad}) + BytesOf({0, 0}), 3);
  }
  const CodecOptions onebit = {.kind = CodecKind::kOneBit};
  EXPECT_EQ(Decoded(*MakeCodec(onebit), WithFloats(BytesOf({2}), {-1, 2}) + BytesOf({1, 2}), 3),
            std::vector<float>({0, -1, 2}));
  expect_refused(onebit, WithFloats(BytesOf({2}), {-1, 2}) + BytesOf({1, 1}), 3);  // 0 and negative
  expect_refused(onebit, WithFloats(BytesOf({2}), {-1, 2}) + BytesOf({8, 0}), 3);  // a fourth value
  expect_refused(onebit, WithFloats(BytesOf({1}), {-1, 2}) + BytesOf({8}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {1, 2}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {-1, -2}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {-kInfinity, 2}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {-1, std::nanf("")}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({3}), {-1, 2}) + BytesOf({0}), 3);
}

// Every half, and every float exactly between two of them, which goes to the even one.
TEST(CodecTest, HalvesAreRoundedToTheNearestEven) {
  const auto codec = MakeCodec({.kind = CodecKind::kFloat16});
  std::vector<float> halves, middles, above, below;
  const auto value_of = [](int half) {
    const int exponent = half >> 10, fraction = half & 1023;
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  };
  for (int half = 0; half < 0x7c00; ++half) halves.push_back(static_cast<float>(value_of(half)));
  EXPECT_EQ(ThroughCode(*codec, halves), halves);
  for (int half = 0; half + 1 < 0x7c00; ++half) {
    middles.push_back(static_cast<float>((value_of(half) + value_of(half + 1)) / 2));
    above.push_back(std::nextafter(middles.back(), kMost));
    below.push_back(std::nextafter(middles.back(), 0.0f));
  }
  const auto rounded = ThroughCode(*codec, middles), rounded_above = ThroughCode(*codec, above),
             rounded_below = ThroughCode(*codec, below);
  for (int half = 0; half + 1 < 0x7c00; ++half) {
    ASSERT_EQ(rounded[half], halves[half + half % 2]) << half;
    ASSERT_EQ(rounded_above[half], halves[half + 1]) << half;
    ASSERT_EQ(rounded_below[half], halves[half]) << half;
  }
}

TEST(CodecTest, TopKSendsTheLargest) {
  for (const double ratio : {1e-6, 0.001, 0.01, 0.3, 0.99, 1.0}) {
    for (const size_t n : {size_t{1}, size_t{1000}, (size_t{1} << 18) + 1}) {
      SCOPED_TRACE(std::to_string(ratio) + " of " + std::to_string(n));
      const auto codec = MakeCodec({.kind = CodecKind::kTopK, .topk_ratio = ratio});
      auto values = Gaussians(n, n);
      // Many equal ones.
      for (float& value : values) value = std::round(value * 20) / 20;
      const auto k = std::max<size_t>(1, static_cast<size_t>(std::ceil(ratio * static_cast<double>(n))));
      std::vector<uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return std::abs(values[a]) > std::abs(values[b]); });
      std::vector<float> expected(n);
      for (size_t i = 0; i < k; ++i) expected[order[i]] = values[order[i]];
      const auto code = Encoded(*codec, values);
      EXPECT_LE(code.size(), codec->EncodedBytesAtMost(n));
      EXPECT_TRUE(Decoded(*codec, code, n) == expected);
    }
  }
}

TEST(CodecTest, SizesAreWhatTheyAreFor) {
  constexpr size_t kCount = 100'000;
  const auto values = Gaussians(kCount, 1);
  const auto bits_a_value = [&](CodecOptions options) {
    return 8.0 * static_cast<double>(Encoded(*MakeCodec(options), values).size()) / kCount;
  };
  EXPECT_EQ(bits_a_value({.kind = CodecKind::kFloat32}), 32);
  EXPECT_EQ(bits_a_value({.kind = CodecKind::kFloat16}), 16);
  EXPECT_EQ(bits_a_value({.kind = CodecKind::kBFloat16}), 16);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kInt8}), 8.2);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kTopK, .topk_ratio = 0.01}), 0.45);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kThreshold, .threshold = 1}), 2.01);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kThreshold, .threshold = 3}), 0.05);  // 0.27% of them
  EXPECT_LT(bits_a_value({.kind = CodecKind::kOneBit}), 1.2);
}

TEST(CodecTest, OneBitCarriesTheMeansOfItsSigns) {
  const auto values = Gaussians(1024, 2);
  const auto decoded = ThroughCode(*MakeCodec({.kind = CodecKind::kOneBit}), values);
  for (size_t column = 0; column < values.size(); column += 512) {
    double sum = 0, decoded_sum = 0;
    for (size_t i = column; i < column + 512; ++i) {
      sum += std::max(values[i], 0.0f);
      decoded_sum += std::max(decoded[i], 0.0f);
    }
    EXPECT_NEAR(decoded_sum, sum, 1e-4 * sum);
  }
}

}  // namespace
}  // namespace crema
