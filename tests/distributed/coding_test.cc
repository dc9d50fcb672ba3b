#include "distributed/codecs/coding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/random.h"
#include "distributed/averaging/averaging.h"

namespace crema {
namespace {

constexpr DistributedParameter::Codec kLossy[] = {DistributedParameter::FP16,      DistributedParameter::BF16,
                                                  DistributedParameter::INT8,      DistributedParameter::TOPK,
                                                  DistributedParameter::THRESHOLD, DistributedParameter::ONEBIT};

// A large parameter, its bias, a large bias, three statistics, and a history.
StateLayout Layout() {
  StateLayout layout;
  layout.buckets = {{3000, false}, {20, true}, {2000, true}, {1500, false}};
  for (const Bucket& bucket : layout.buckets) layout.trained += static_cast<int64_t>(bucket.count);
  layout.values = layout.trained + 3;
  layout.history = layout.trained;
  return layout;
}

std::vector<float> RandomFloats(uint64_t seed, int64_t count, float scale = 1) {
  const RandomStream random(seed, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * random.Uniform(i) - 1);
  return values;
}

CodecOptions OptionsOf(DistributedParameter::Codec codec) {
  DistributedParameter settings;
  settings.set_codec(codec);
  return CodecOf(settings, Direction::kUp);
}

TEST(Coding, BringsOverDifferencesAndWhatIsExact) {
  const StateLayout layout = Layout();
  for (const auto codec : kLossy) {
    SCOPED_TRACE(DistributedParameter::Codec_Name(codec));
    StateEncoder encoder(OptionsOf(codec), layout);
    const StateDecoder decoder(OptionsOf(codec), layout);
    const auto anchor = RandomFloats(1, layout.trained);
    for (const bool with_history : {false, true}) {
      auto values = RandomFloats(2, layout.values + (with_history ? layout.history : 0), 0.01f);
      for (int64_t i = 0; i < layout.trained; ++i) values[i] += anchor[i];
      const Payload code = encoder.Encode(values, anchor, false);
      EXPECT_LE(code->size(), decoder.most_bytes());
      EXPECT_LT(code->size(), values.size() * sizeof(float));
      const Payload decoded = decoder.Decode(code, anchor);
      const auto got = FloatsOf(decoded);
      ASSERT_EQ(got.size(), values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const bool exact = i >= 3000 && (i < 5020 || i >= static_cast<size_t>(layout.trained));
        ASSERT_NEAR(got[i], values[i], exact ? 1e-7 : 0.021) << i;
      }
      encoder.Settle(false);
    }
  }
}

TEST(Coding, SendsLaterWhatItLeftOut) {
  const StateLayout layout = Layout();
  for (const auto codec : {DistributedParameter::INT8, DistributedParameter::TOPK}) {
    SCOPED_TRACE(DistributedParameter::Codec_Name(codec));
    StateEncoder encoder(OptionsOf(codec), layout);
    const StateDecoder decoder(OptionsOf(codec), layout);
    const auto step = RandomFloats(3, layout.values, 0.01f);
    std::vector<double> sum(static_cast<size_t>(layout.trained));
    const int rounds = 7;
    for (int round = 0; round < rounds; ++round) {
      const bool last = round + 1 == rounds;
      const Payload decoded = decoder.Decode(encoder.Encode(step, {}, last), {});
      encoder.Settle(true);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += FloatsOf(decoded)[i];
    }
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], rounds * static_cast<double>(step[i]), 1e-6) << i;
  }
}

TEST(Coding, ForgetsNothingThatWasNotCommitted) {
  const StateLayout layout = Layout();
  StateEncoder encoder(OptionsOf(DistributedParameter::TOPK), layout);
  const auto step = RandomFloats(4, layout.values);
  const Payload first = encoder.Encode(step, {}, false);
  encoder.Settle(false);
  EXPECT_EQ(*encoder.Encode(step, {}, false), *first);
  // Coded again for another round, before anybody said what became of it.
  EXPECT_EQ(*encoder.Encode(step, {}, false), *first);
  encoder.Settle(true);
  encoder.Settle(true);  // of nothing
  EXPECT_NE(*encoder.Encode(step, {}, false), *first);
}

TEST(Coding, RefusesWhatIsNoCode) {
  const StateLayout layout = Layout();
  std::mt19937 random(5);
  for (const auto codec : kLossy) {
    SCOPED_TRACE(DistributedParameter::Codec_Name(codec));
    StateEncoder encoder(OptionsOf(codec), layout);
    const StateDecoder decoder(OptionsOf(codec), layout);
    const Payload code = encoder.Encode(RandomFloats(6, layout.values), {}, false);
    for (const size_t size : {size_t{0}, size_t{3}, size_t{4}, size_t{7}, code->size() / 2, code->size() - 1}) {
      const Payload cut = std::make_shared<Bytes>(code->begin(), code->begin() + size);
      EXPECT_THROW(decoder.Decode(cut, {}), MalformedCode) << size;
    }
    for (int i = 0; i < 300; ++i) {
      auto changed = std::make_shared<Bytes>(*code);
      for (int n = 0; n < 3; ++n) (*changed)[random() % changed->size()] = static_cast<std::byte>(random());
      try {
        decoder.Decode(changed, {});
      } catch (const MalformedCode&) {
      }
    }
    auto other = std::make_shared<Bytes>(*code);
    (*other)[0] = static_cast<std::byte>(codec == DistributedParameter::FP16 ? CodecKind::kInt8 : CodecKind::kFloat16);
    EXPECT_THROW(decoder.Decode(other, {}), MalformedCode);
  }
  StateEncoder encoder(OptionsOf(DistributedParameter::INT8), layout);
  auto values = RandomFloats(7, layout.values);
  values[10] = NAN;
  EXPECT_THROW(encoder.Encode(values, {}, false), NonFiniteValue);
}

}  // namespace
}  // namespace crema
