#include "ops/sequences/ctc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace crema {
namespace {

struct Result {
  float loss = 0;
  std::vector<float> gradient;
};

Result Compute(const CtcProblem& p, const std::vector<float>& scores, const std::vector<float>& labels,
               float value_gradient = 1) {
  std::vector<CtcRow> rows(p.rows());
  std::vector<float> alphas(p.rows() * p.states());
  std::vector<int32_t> classes(p.batch * p.states()), counts(p.batch);
  const CtcTape tape = {rows.data(), alphas.data(), classes.data(), counts.data()};
  std::vector<std::byte> workspace(std::max(CtcForwardWorkspace(p), CtcBackwardWorkspace(p)));
  Result result;
  result.gradient.assign(scores.size(), std::numeric_limits<float>::quiet_NaN());
  CtcLossForward(p, scores.data(), labels.data(), tape, &result.loss, workspace.data());
  CtcLossBackward(p, &value_gradient, scores.data(), tape, result.gradient.data(), workspace.data());
  return result;
}

std::vector<float> RandomScores(const CtcProblem& p, float range) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-range, range);
  std::vector<float> scores(p.rows() * p.classes);
  std::generate(scores.begin(), scores.end(), [&] { return number(random); });
  return scores;
}

// By the definition: probabilities, and their sums in double.
double LossOf(const CtcProblem& p, const std::vector<float>& scores, const std::vector<float>& sequence, int64_t item) {
  std::vector<int64_t> path = {p.blank};
  for (const float label : sequence) {
    if (label < 0 || label == static_cast<float>(p.blank)) continue;
    path.push_back(static_cast<int64_t>(label));
    path.push_back(p.blank);
  }
  std::vector<double> before(path.size()), now(path.size());
  double logarithm = 0;
  for (int64_t step = 0; step < p.steps; ++step) {
    const float* row = scores.data() + (step * p.batch + item) * p.classes;
    double sum = 0;
    for (int64_t c = 0; c < p.classes; ++c) sum += std::exp(double{row[c]});
    double total = 0;
    for (size_t i = 0; i < path.size(); ++i) {
      double reached = step == 0 ? (i < 2 ? 1.0 : 0.0) : before[i];
      if (step > 0 && i >= 1) reached += before[i - 1];
      if (step > 0 && i >= 2 && path[i] != p.blank && path[i] != path[i - 2]) reached += before[i - 2];
      now[i] = reached * std::exp(double{row[path[i]]}) / sum;
      total += now[i];
    }
    for (double& value : now) value /= total;
    logarithm += std::log(total);
    before = now;
  }
  return -(logarithm + std::log(before.back() + (path.size() > 1 ? before[path.size() - 2] : 0.0)));
}

TEST(CtcLoss, IsTheDefinitionOverManySteps) {
  const CtcProblem p = {.steps = 700, .batch = 3, .classes = 31, .longest = 120, .blank = 4};
  const std::vector<float> scores = RandomScores(p, 3);
  std::vector<float> labels(p.batch * p.longest);
  double expected = 0;
  for (int64_t item = 0; item < p.batch; ++item) {
    for (int64_t i = 0; i < p.longest; ++i) {
      labels[item * p.longest + i] = i % 7 == item ? -1.0f : static_cast<float>((i * i + item) % p.classes);
    }
    const auto first = labels.begin() + item * p.longest;
    expected += LossOf(p, scores, {first, first + p.longest}, item) / static_cast<double>(p.batch);
  }
  ASSERT_EQ(FindBadSequence(p, labels.data()), -1);
  EXPECT_NEAR(Compute(p, scores, labels).loss, expected, 1e-6 * expected);
}

// Moving all scores of a step changes nothing, so that their gradients sum to 0.
TEST(CtcLoss, GradientsOfAStepCancelEachOther) {
  const CtcProblem p = {.steps = 200, .batch = 2, .classes = 12, .longest = 40};
  const std::vector<float> labels(p.batch * p.longest, 5);
  const Result result = Compute(p, RandomScores(p, 8), labels, 3);
  for (int64_t row = 0; row < p.rows(); ++row) {
    double sum = 0, size = 0;
    for (int64_t c = 0; c < p.classes; ++c) {
      sum += result.gradient[row * p.classes + c];
      size += std::fabs(result.gradient[row * p.classes + c]);
    }
    EXPECT_NEAR(sum, 0, 5e-6) << row;
    EXPECT_LE(size, 3.0 / p.batch * 2 + 1e-5) << row;
  }
}

TEST(CtcLoss, OfANanIsNone) {
  const CtcProblem p = {.steps = 6, .batch = 1, .classes = 3, .longest = 2};
  std::vector<float> scores = RandomScores(p, 1);
  scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Compute(p, scores, {1, 2}).loss));
}

// The softmax of a step's scores does not change with a number that is added to all of them.
TEST(CtcLoss, ScoresFarFromZeroAreAsExact) {
  const CtcProblem p = {.steps = 5, .batch = 2, .classes = 4, .longest = 2};
  std::vector<float> scores(p.rows() * p.classes);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i * i % 13) / 4;
  const std::vector<float> labels = {1, 2, 3, 3};
  const int64_t row = 6 * p.classes;
  for (const float added : {-100000.0f, 100000.0f}) {
    const Result near = Compute(p, scores, labels);
    std::vector<float> moved = scores;
    for (float& score : moved) score += added;
    const Result far = Compute(p, moved, labels);
    EXPECT_EQ(far.loss, near.loss) << added;
    EXPECT_EQ(far.gradient, near.gradient) << added;
  }
  std::fill_n(scores.begin() + row, p.classes, 0.0f);
  const Result of_zeros = Compute(p, scores, labels);
  std::fill_n(scores.begin() + row, p.classes, -1e30f);
  const Result of_masks = Compute(p, scores, labels);
  EXPECT_EQ(of_masks.loss, of_zeros.loss);
  EXPECT_EQ(of_masks.gradient, of_zeros.gradient);
}

// Classes are masked out by such scores.
TEST(CtcLoss, ClassesOfProbabilityZeroAreLeftOut) {
  const CtcProblem p = {.steps = 4, .batch = 1, .classes = 3, .longest = 2};
  const std::vector<float> scores = RandomScores(p, 2), labels = {1, 2};
  const auto with = [&](const std::vector<size_t>& masked, float score) {
    std::vector<float> changed = scores;
    for (const size_t i : masked) changed[i] = score;
    return Compute(p, changed, labels);
  };
  for (const float score : {-1e30f, -1e38f, -std::numeric_limits<float>::infinity()}) {
    for (const std::vector<size_t>& masked : {std::vector<size_t>{5}, {0}, {1}, {0, 3, 6, 9}, {2, 5, 6, 7}}) {
      const Result low = with(masked, -200), lowest = with(masked, score);
      EXPECT_EQ(lowest.loss, low.loss) << score << " at " << masked[0];
      for (size_t i = 0; i < scores.size(); ++i) {
        EXPECT_NEAR(lowest.gradient[i], low.gradient[i], 1e-6) << score << " at " << masked[0] << ": " << i;
      }
    }
    // All that a path can begin with.
    const Result none = with({0, 1}, score);
    EXPECT_GE(none.loss, 1e29f);
    EXPECT_EQ(none.gradient[2], 1.0f) << "a state that no path begins in has a share of the paths";
    EXPECT_TRUE(std::all_of(none.gradient.begin(), none.gradient.end(), [](float g) { return std::isfinite(g); }));
  }
}

TEST(CtcLoss, SequencesWithTooFewStepsAreFound) {
  CtcProblem p = {.steps = 4, .batch = 2, .classes = 3, .longest = 4};
  EXPECT_EQ(FindBadSequence(p, std::vector<float>{1, 2, 1, 2, 1, 1, -1, 2}.data()), -1);
  EXPECT_EQ(FindBadSequence(p, std::vector<float>{1, 2, 1, 2, 1, 0, 1, 2}.data()), -1);  // blanks are no labels
  EXPECT_EQ(FindBadSequence(p, std::vector<float>{1, 2, 1, 2, 1, 1, 2, 2}.data()), 7);
  EXPECT_EQ(FindBadSequence(p, std::vector<float>{1, 2, 1, 2, 1, 0.5f, 2, 2}.data()), 5);
  p.takes_impossible = true;
  EXPECT_EQ(FindBadSequence(p, std::vector<float>{1, 2, 1, 2, 1, 1, 2, 2}.data()), -1);
  EXPECT_EQ(FindBadSequence(p, std::vector<float>{1, 2, 1, 2, 1, 1, 2, 3}.data()), 7);
}

}  // namespace
}  // namespace crema
