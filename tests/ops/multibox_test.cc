#include "ops/detection/multibox.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "comparison.h"

namespace crema {
namespace {

constexpr int64_t kNumbers = ObjectRows::kNumbers;

// Boxes of 0.05 to 0.6 around random centres, some way over the border.
BoundingBox RandomBox(const std::vector<float>& random, int64_t i) {
  const float x = 0.5f + 0.55f * random[4 * i], y = 0.5f + 0.55f * random[4 * i + 1];
  const float width = 0.325f + 0.275f * random[4 * i + 2], height = 0.325f + 0.275f * random[4 * i + 3];
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

struct Inputs {
  std::vector<float> priors, objects, location, scores;
};

Inputs RandomInputs(const MultiBoxProblem& p, uint64_t stream) {
  Inputs inputs;
  const std::vector<float> of_priors = RandomValues(4 * p.priors, stream),
                           of_objects = RandomValues(4 * p.objects, stream + 1);
  for (int64_t i = 0; i < p.priors; ++i) {
    const BoundingBox b = RandomBox(of_priors, i);
    inputs.priors.insert(inputs.priors.end(), {b.xmin, b.ymin, b.xmax, b.ymax});
  }
  for (int64_t i = 0; i < 4 * p.priors; ++i) inputs.priors.push_back(0.1f + 0.1f * static_cast<float>(i % 3));
  const std::vector<float> other = RandomValues(3 * p.objects, stream + 2);
  for (int64_t i = 0; i < p.objects; ++i) {
    const auto image = std::floor((other[3 * i] + 1) / 2 * static_cast<float>(p.images + 1)) - 1;  // some are none
    const float label = 1 + std::floor((other[3 * i + 1] + 1) / 2 * static_cast<float>(p.classes - 1));
    // Every fourth is where the one before is.
    const BoundingBox b = RandomBox(of_objects, i % 4 == 3 ? i - 1 : i);
    inputs.objects.insert(inputs.objects.end(),
                          {image, label, 0, b.xmin, b.ymin, b.xmax, b.ymax, other[3 * i + 2] > 0.5f ? 1.0f : 0.0f});
  }
  inputs.location = RandomValues(4 * p.places(), stream + 3);
  inputs.scores = RandomValues(p.places() * p.classes, stream + 4);
  if (!p.logistic) {
    for (float& score : inputs.scores) score = std::round((score + 1) * 50) / 100;  // probabilities, many of them equal
  }
  return inputs;
}

// One image, by looking at all pairs over and over.
void PlainMatch(const MultiBoxProblem& p, const Inputs& in, int64_t image, int32_t* match, float* overlap) {
  std::vector<int64_t> left;
  for (int64_t row = 0; row < p.objects; ++row) {
    const float* o = &in.objects[row * kNumbers];
    if (o[0] == static_cast<float>(image) && (p.use_difficult || o[7] == 0)) left.push_back(row);
  }
  const auto pair = [&](int64_t prior, int64_t row) {
    const float* a = &in.priors[4 * prior];
    const float* o = &in.objects[row * kNumbers];
    return boxes::Overlap({a[0], a[1], a[2], a[3]}, {o[3], o[4], o[5], o[6]});
  };
  const auto best_of = [&](int64_t prior, float least) {
    int64_t best = kNoMatch;
    for (const int64_t row : left) {
      if (pair(prior, row) > std::max(least, best < 0 ? 0 : pair(prior, best))) best = row;
    }
    return best;
  };
  for (int64_t i = 0; i < p.priors; ++i) {
    const float* a = &in.priors[4 * i];
    const bool over = std::any_of(a, a + 4, [](float x) { return x < 0 || x > 1; });
    match[i] = p.whole_only && over ? kLeftOut : kNoMatch;
    const int64_t best = best_of(i, 1e-6f);
    overlap[i] = match[i] == kLeftOut || best < 0 ? 0 : pair(i, best);
  }
  const std::vector<int64_t> all = left;
  while (!left.empty()) {
    float largest = 1e-6f;
    int64_t prior = -1, row = -1;
    for (int64_t i = 0; i < p.priors; ++i) {
      for (const int64_t r : left) {
        if (match[i] != kNoMatch || pair(i, r) <= largest) continue;
        largest = pair(i, r);
        prior = i;
        row = r;
      }
    }
    if (prior < 0) break;
    match[prior] = static_cast<int32_t>(row);
    left.erase(std::find(left.begin(), left.end(), row));
  }
  left = all;
  for (int64_t i = 0; i < p.priors && p.per_prediction; ++i) {
    if (match[i] == kNoMatch && overlap[i] > 0 && overlap[i] >= p.overlap_threshold) {
      match[i] = static_cast<int32_t>(best_of(i, 1e-6f));
    }
  }
}

// Losses of priors as background, as the formulas say them.
float PlainLoss(const MultiBoxProblem& p, const float* scores) {
  if (!p.logistic) return -std::log(std::max(scores[p.background], 1.17549435e-38f));
  double loss = 0;
  for (int64_t c = 0; c < p.classes; ++c) {
    loss += std::log(1 + std::exp(static_cast<double>(c == p.background ? -scores[c] : scores[c])));
  }
  return static_cast<float>(loss);
}

std::vector<float> PlainLabels(const MultiBoxProblem& p, const Inputs& in, const std::vector<int32_t>& match,
                               const std::vector<float>& overlap) {
  std::vector<float> label(match.size(), p.mines ? -1 : static_cast<float>(p.logistic ? p.classes : p.background));
  for (int64_t image = 0; image < p.images; ++image) {
    std::vector<std::pair<float, int64_t>> candidates;
    int64_t matches = 0;
    for (int64_t i = image * p.priors; i < (image + 1) * p.priors; ++i) {
      if (match[i] >= 0) {
        ++matches;
        label[i] = in.objects[match[i] * kNumbers + 1];
      } else if (match[i] == kNoMatch && overlap[i] < p.negative_overlap) {
        candidates.emplace_back(-PlainLoss(p, &in.scores[i * p.classes]), i);
      }
    }
    if (!p.mines) continue;
    std::sort(candidates.begin(), candidates.end());
    const auto wanted = static_cast<size_t>(static_cast<float>(matches) * p.negatives_per_match);
    for (size_t k = 0; k < std::min(wanted, candidates.size()); ++k) {
      label[candidates[k].second] = static_cast<float>(p.background);
    }
  }
  return label;
}

struct Results {
  std::vector<int32_t> match;
  std::vector<float> overlap, label, class_target, location, weight;
  float share = NAN;
};

Results Compute(const MultiBoxProblem& p, const Inputs& in) {
  Results r;
  const auto places = static_cast<size_t>(p.places());
  r.match.assign(places, -9);
  r.overlap = r.label = Poison(p.places());
  r.class_target = Poison(p.places() * p.classes);
  r.location = r.weight = Poison(4 * p.places());
  std::vector<uint64_t> best(static_cast<size_t>(p.objects), ~uint64_t{0}), rank(places, ~uint64_t{0});
  MatchPriors(p, in.priors.data(), in.objects.data(), best.data(), r.match.data(), r.overlap.data());
  if (p.mines) RankNegatives(p, in.scores.data(), r.match.data(), r.overlap.data(), rank.data());
  MakeMultiBoxTargets(p, {in.priors.data(), in.objects.data(), in.location.data(), r.match.data(), rank.data()},
                      {r.label.data(), r.class_target.data(), r.location.data(), r.weight.data(), &r.share});
  return r;
}

std::vector<MultiBoxProblem> Problems() {
  MultiBoxProblem usual;
  usual.images = 3;
  usual.priors = 1700;
  usual.objects = 60;
  usual.classes = 5;
  usual.code = BoxCode::kCenterSize;
  MultiBoxProblem bipartite = usual;
  bipartite.per_prediction = false;
  bipartite.use_difficult = false;
  bipartite.negatives_per_match = 0.4f;
  MultiBoxProblem whole = usual;
  whole.whole_only = true;
  whole.overlap_threshold = 0;
  whole.negative_overlap = 0.1f;
  MultiBoxProblem logistic = usual;
  logistic.logistic = true;
  logistic.divides_by_variance = true;
  logistic.divisor = 12;
  MultiBoxProblem all = usual;
  all.mines = false;
  all.priors = 7;
  return {usual, bipartite, whole, logistic, all};
}

TEST(MultiBox, MatchesAndMinesAsPlainLoopsDo) {
  uint64_t stream = 10;
  for (const MultiBoxProblem& p : Problems()) {
    const Inputs in = RandomInputs(p, stream += 10);
    ASSERT_EQ(FindBadObject(p.rows(), in.objects.data()), -1);
    const Results result = Compute(p, in);
    std::vector<int32_t> match(static_cast<size_t>(p.places()));
    std::vector<float> overlap(match.size());
    for (int64_t image = 0; image < p.images; ++image) {
      PlainMatch(p, in, image, &match[image * p.priors], &overlap[image * p.priors]);
    }
    EXPECT_EQ(result.match, match) << "stream " << stream;
    ExpectClose(overlap, result.overlap, 1e-6f, "overlap");
    const std::vector<float> label = PlainLabels(p, in, match, overlap);
    ASSERT_EQ(result.label, label) << "stream " << stream;
    const int64_t matches = std::count_if(match.begin(), match.end(), [](int32_t m) { return m >= 0; });
    EXPECT_FLOAT_EQ(result.share, 1 / static_cast<float>(p.divisor > 0 ? p.divisor : matches));
    EXPECT_GT(matches, 10);
    for (int64_t i = 0; i < p.places() * p.classes; ++i) {
      const float own = label[i / p.classes];
      ASSERT_EQ(result.class_target[i], own < 0 ? -1 : own == static_cast<float>(i % p.classes));
    }
    for (int64_t i = 0; i < 4 * p.places(); ++i) {
      const bool matched = match[i / 4] >= 0;
      const float variance = in.priors[4 * p.priors + i % (4 * p.priors)];
      ASSERT_EQ(result.weight[i], matched ? 1 / variance : 0);
      if (!matched) {
        ASSERT_EQ(result.location[i], in.location[i]);
      }
    }
  }
}

TEST(MultiBox, DoesNotDependOnThreads) {
  const MultiBoxProblem p = Problems()[0];
  const Inputs in = RandomInputs(p, 5);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Results one = Compute(p, in);
  omp_set_num_threads(4);
  const Results four = Compute(p, in);
  omp_set_num_threads(before);
  EXPECT_EQ(one.match, four.match);
  EXPECT_EQ(one.overlap, four.overlap);
  EXPECT_EQ(one.label, four.label);
  EXPECT_EQ(one.location, four.location);
  EXPECT_EQ(one.share, four.share);
}

}  // namespace
}  // namespace crema
