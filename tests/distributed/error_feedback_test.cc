#include "distributed/codecs/error_feedback.h"

#include <gtest/gtest.h>

#include <cmath>

#include "distributed/values.h"

namespace crema {
namespace {

constexpr size_t kCount = 3000;

double NormOf(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

Bytes EncodedBy(ErrorFeedback& feedback, size_t bucket, const std::vector<float>& values) {
  Bytes code;
  feedback.Encode(bucket, values, code);
  return code;
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

class EveryFeedback : public testing::TestWithParam<CodecOptions> {
 protected:
  ErrorFeedback feedback_{GetParam(), {{kCount}}};
};

std::vector<CodecOptions> LossyCodecs() {
  auto all = AllCodecs();
  all.erase(all.begin());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryFeedback, testing::ValuesIn(LossyCodecs()), NameOfOptions);

// The sum of what arrived and of what is left is the sum of what was given, in every round. Where THRESHOLD cannot send
// as much as comes, what is clipped would be missing: values are below half of its threshold here.
TEST_P(EveryFeedback, NothingIsLost) {
  constexpr int kRounds = 40;
  std::vector<double> given(kCount), arrived(kCount);
  for (int round = 0; round < kRounds; ++round) {
    const auto values = Gaussians(kCount, 100 + round, 0.05f);
    const auto code = EncodedBy(feedback_, 0, values);
    const auto decoded = Decoded(feedback_.codec(0), code, kCount);
    feedback_.Commit();
    const auto left = feedback_.residual(0);
    for (size_t i = 0; i < kCount; ++i) {
      given[i] += values[i];
      arrived[i] += decoded[i];
      ASSERT_NEAR(arrived[i] + left[i], given[i], 1e-5) << "value " << i << " in round " << round;
    }
  }
  EXPECT_NEAR(feedback_.Norm(), NormOf(feedback_.residual(0)), 1e-9);
  EXPECT_GT(feedback_.Norm(), 0);
}

// A code that sees the same values again and again would lose the same of them; with feedback the mean of what arrives
// goes to the values, as one over the number of rounds. (Unclipped: ONEBIT lets values pile up that are always large.)
TEST_P(EveryFeedback, TheMeanConverges) {
  const auto values = Gaussians(kCount, 7, 0.05f);
  const auto error_after = [&](int rounds, bool with_feedback) {
    ErrorFeedback feedback(GetParam(), {{kCount}}, std::numeric_limits<float>::infinity());
    std::vector<double> sum(kCount);
    for (int round = 0; round < rounds; ++round) {
      const auto decoded = Decoded(feedback.codec(0), EncodedBy(feedback, 0, values), kCount);
      if (with_feedback) feedback.Commit();
      for (size_t i = 0; i < kCount; ++i) sum[i] += decoded[i];
    }
    double squares = 0;
    for (size_t i = 0; i < kCount; ++i) squares += std::pow(sum[i] / rounds - values[i], 2);
    if (with_feedback) {
      EXPECT_NEAR(std::sqrt(squares), feedback.Norm() / rounds, 1e-4) << rounds << " rounds";
    }
    return std::sqrt(squares);
  };
  const double without = error_after(1600, false), once = error_after(1, true), few = error_after(100, true),
               many = error_after(1600, true);
  EXPECT_NEAR(without, once, 1e-9);
  EXPECT_LT(many, few / 3);
  EXPECT_LT(many, without / 8);
}

TEST_P(EveryFeedback, AbortBringsTheSameCodeAgain) {
  EncodedBy(feedback_, 0, Gaussians(kCount, 1));
  feedback_.Commit();
  const auto before = Copy(feedback_.residual(0));
  const auto values = Gaussians(kCount, 2);
  const auto code = EncodedBy(feedback_, 0, values);
  EXPECT_EQ(Copy(feedback_.residual(0)), before) << "changed before it was committed";
  feedback_.Abort();
  EXPECT_EQ(Copy(feedback_.residual(0)), before);
  feedback_.Commit();
  EXPECT_EQ(Copy(feedback_.residual(0)), before) << "an aborted code was committed";
  EXPECT_EQ(EncodedBy(feedback_, 0, values), code);
  feedback_.Commit();
  EXPECT_NE(Copy(feedback_.residual(0)), before);
  EXPECT_NE(EncodedBy(feedback_, 0, values), code) << "what was left out is not sent later";
}

TEST_P(EveryFeedback, OnlyTheLastCodeIsCommitted) {
  ErrorFeedback once(GetParam(), {{kCount}});
  EncodedBy(feedback_, 0, Gaussians(kCount, 3, 2));
  const auto values = Gaussians(kCount, 4);
  EXPECT_EQ(EncodedBy(feedback_, 0, values), EncodedBy(once, 0, values));
  feedback_.Commit();
  once.Commit();
  EXPECT_EQ(Copy(feedback_.residual(0)), Copy(once.residual(0)));
  feedback_.Commit();  // nothing new
  EXPECT_EQ(Copy(feedback_.residual(0)), Copy(once.residual(0)));
}

TEST_P(EveryFeedback, ClearTellsWhatIsLost) {
  EncodedBy(feedback_, 0, Gaussians(kCount, 5));
  feedback_.Commit();
  const double norm = NormOf(feedback_.residual(0));
  ASSERT_GT(norm, 0);
  EncodedBy(feedback_, 0, Gaussians(kCount, 6));  // neither committed nor aborted
  EXPECT_NEAR(feedback_.Clear(), norm, 1e-9 * norm);
  EXPECT_EQ(Copy(feedback_.residual(0)), std::vector<float>(kCount));
  feedback_.Commit();
  EXPECT_EQ(feedback_.Norm(), 0);
  EXPECT_EQ(feedback_.Clear(), 0);
}

TEST_P(EveryFeedback, EncodesExactlyWhatIsLeft) {
  const auto values = Gaussians(kCount, 8), more = Gaussians(kCount, 9);
  EncodedBy(feedback_, 0, values);
  feedback_.Commit();
  std::vector<float> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) expected[i] = feedback_.residual(0)[i] + more[i];
  Bytes code;
  feedback_.EncodeExactly(0, more, code);
  EXPECT_EQ(Decoded(*MakeCodec({}), code, kCount), expected);
  EXPECT_GT(feedback_.Norm(), 0);
  feedback_.Commit();
  EXPECT_EQ(feedback_.Norm(), 0);
}

TEST_P(EveryFeedback, WhatIsNotFiniteChangesNothing) {
  EncodedBy(feedback_, 0, Gaussians(kCount, 12));
  feedback_.Commit();
  const auto before = Copy(feedback_.residual(0));
  auto values = Gaussians(kCount, 13);
  EncodedBy(feedback_, 0, values);
  values[17] = std::nanf("");
  Bytes out(3);
  EXPECT_THROW(feedback_.Encode(0, values, out), NonFiniteValue);
  EXPECT_EQ(out.size(), 3u);
  feedback_.Commit();
  EXPECT_EQ(Copy(feedback_.residual(0)), before);
}

TEST(ErrorFeedbackTest, ZerosStayZero) {
  auto values = Gaussians(kCount, 14);
  for (size_t i = 0; i < kCount; i += 3) values[i] = 0;
  for (const CodecOptions& options : LossyCodecs()) {
    ErrorFeedback feedback(options, {{kCount}});
    for (int round = 0; round < 5; ++round) {
      const auto decoded = Decoded(feedback.codec(0), EncodedBy(feedback, 0, values), kCount);
      feedback.Commit();
      for (size_t i = 0; i < kCount; i += 3) {
        ASSERT_EQ(decoded[i], 0) << NameOf(options.kind);
        ASSERT_EQ(feedback.residual(0)[i], 0) << NameOf(options.kind);
      }
    }
  }
}

TEST(ErrorFeedbackTest, WhatIsLeftIsClipped) {
  ErrorFeedback feedback({.kind = CodecKind::kThreshold, .threshold = 0.1f}, {{kCount}});
  std::vector<float> values(kCount, 0.0f);
  values[1] = 0.25f;
  values[2] = -3;
  values[3] = 0.09f;
  EncodedBy(feedback, 0, values);
  feedback.Commit();
  EXPECT_FLOAT_EQ(feedback.residual(0)[1], 0.15f);
  EXPECT_FLOAT_EQ(feedback.residual(0)[2], -0.5f);
  EXPECT_FLOAT_EQ(feedback.residual(0)[3], 0.09f);
  // Comes in the rounds after.
  double arrived = 0;
  for (int round = 0; round < 5; ++round) {
    arrived += Decoded(feedback.codec(0), EncodedBy(feedback, 0, std::vector<float>(kCount)), kCount)[2];
    feedback.Commit();
  }
  EXPECT_NEAR(arrived, -0.5, 1e-6);

  ErrorFeedback onebit({.kind = CodecKind::kOneBit}, {{1024}});
  auto spike = Gaussians(1024, 15);
  spike[5] = 100'000;  // the mean of its column is that of some 256
  EncodedBy(onebit, 0, spike);
  onebit.Commit();
  EXPECT_NEAR(onebit.residual(0)[5], 100'000, 1000);
  // Much more than what comes now.
  EncodedBy(onebit, 0, Gaussians(1024, 16));
  onebit.Commit();
  EXPECT_LT(onebit.residual(0)[5], 10'000);

  ErrorFeedback half({.kind = CodecKind::kFloat16}, {{1024}});
  EncodedBy(half, 0, std::vector<float>(1024, 1e6f));
  half.Commit();
  EXPECT_EQ(half.residual(0)[9], 5 * 65504.0f);
}

TEST(ErrorFeedbackTest, ClippingNeedsALimit) {
  for (const float clip : {0.0f, -1.0f, std::nanf("")}) {
    EXPECT_THROW(ErrorFeedback({.kind = CodecKind::kOneBit}, {{1024}}, clip), UserError) << clip;
  }
}

TEST(ErrorFeedbackTest, HugeValuesStayFinite) {
  for (const CodecOptions& options : LossyCodecs()) {
    ErrorFeedback feedback(options, {{kCount}});
    std::vector<float> values(kCount, kMost);
    for (size_t i = 0; i < kCount; i += 2) values[i] = -kMost / 3;
    const auto decoded = Decoded(feedback.codec(0), EncodedBy(feedback, 0, values), kCount);
    feedback.Commit();
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(std::isfinite(decoded[i]) && std::isfinite(feedback.residual(0)[i])) << NameOf(options.kind);
    }
    EXPECT_TRUE(std::isfinite(feedback.Norm())) << NameOf(options.kind);
  }
}

TEST(ErrorFeedbackTest, SmallAndExactBucketsAreNotCompressed) {
  const std::vector<Bucket> buckets = {{1023}, {1024}, {5000, true}, {5000}, {0}};
  const CodecKind kinds[] = {CodecKind::kFloat32, CodecKind::kOneBit, CodecKind::kFloat32, CodecKind::kOneBit,
                             CodecKind::kFloat32};
  ErrorFeedback feedback({.kind = CodecKind::kOneBit}, buckets);
  Bytes out;
  for (size_t b = 0; b < buckets.size(); ++b) {
    EXPECT_EQ(KindOf(buckets[b], CodecKind::kOneBit), kinds[b]) << b;
    EXPECT_EQ(feedback.codec(b).kind(), kinds[b]) << b;
    const auto values = Gaussians(buckets[b].count, b);
    const size_t before = out.size();
    feedback.Encode(b, values, out);
    if (kinds[b] == CodecKind::kFloat32) {
      std::vector<float> decoded(values.size());
      feedback.codec(b).Decode(std::span(out).subspan(before), decoded);
      EXPECT_EQ(decoded, values);
      EXPECT_TRUE(feedback.residual(b).empty());
    } else {
      EXPECT_LT(out.size() - before, values.size() / 4);
    }
  }
  feedback.Commit();
  EXPECT_NEAR(feedback.Norm(), std::hypot(NormOf(feedback.residual(1)), NormOf(feedback.residual(3))), 1e-9);
}

// Commit takes what was encoded; other buckets keep what was left of them.
TEST(ErrorFeedbackTest, BucketsAreCommittedApart) {
  ErrorFeedback feedback({.kind = CodecKind::kInt8}, {{2000}, {2000}});
  EncodedBy(feedback, 0, Gaussians(2000, 1));
  EncodedBy(feedback, 1, Gaussians(2000, 2));
  feedback.Commit();
  const auto first = Copy(feedback.residual(0)), second = Copy(feedback.residual(1));
  EXPECT_NE(first, second);
  EncodedBy(feedback, 1, Gaussians(2000, 3));
  feedback.Commit();
  EXPECT_EQ(Copy(feedback.residual(0)), first);
  EXPECT_NE(Copy(feedback.residual(1)), second);
}

}  // namespace
}  // namespace crema
