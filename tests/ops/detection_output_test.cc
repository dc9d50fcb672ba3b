#include "ops/detection/detection_output.h"

#include <omp.h>

#include <algorithm>
#include <tuple>

#include "comparison.h"
#include "ops/detection/detection_output_formulas.h"

namespace crema {
namespace {

struct Inputs {
  std::vector<float> offsets, scores, priors;
  DetectionInputs view() const { return {offsets.data(), scores.data(), priors.data()}; }
};

// Scores are multiples of a hundredth, so that many are equal; a few are NaN.
Inputs RandomInputs(const DetectionProblem& p, uint64_t stream) {
  Inputs inputs;
  inputs.offsets = RandomValues(p.images * p.priors * p.boxes * 4, stream);
  for (float& offset : inputs.offsets) offset *= 0.1f;
  inputs.scores = RandomValues(p.images * p.priors * p.classes, stream + 1);
  for (float& score : inputs.scores) {
    score = score < -0.99f ? std::numeric_limits<float>::quiet_NaN() : std::round((score + 1) * 50) / 100;
  }
  const std::vector<float> random = RandomValues(p.priors * 4, stream + 2);
  for (int64_t i = 0; i < p.priors; ++i) {
    const float x = random[4 * i], y = random[4 * i + 1];
    inputs.priors.insert(inputs.priors.end(),
                         {x, y, x + 0.3f + 0.2f * random[4 * i + 2], y + 0.3f + 0.2f * random[4 * i + 3]});
  }
  inputs.priors.resize(static_cast<size_t>(p.priors * 8), 0.5f);
  return inputs;
}

// With whole lists, however few of them can be among the best.
std::vector<float> PlainObjects(const DetectionProblem& p, const Inputs& in) {
  std::vector<float> objects;
  for (int64_t image = 0; image < p.images; ++image) {
    struct Found {
      float score;
      int64_t category, prior;
      BoundingBox box;
    };
    std::vector<Found> of_image;
    for (int64_t c = 0; c < p.classes; ++c) {
      if (c == p.background) continue;
      std::vector<std::pair<float, int64_t>> candidates;
      for (int64_t prior = 0; prior < p.priors; ++prior) {
        const float score = in.scores[(image * p.priors + prior) * p.classes + c];
        if (score > p.score_above) candidates.emplace_back(-score, prior);
      }
      std::sort(candidates.begin(), candidates.end());
      candidates.resize(std::min(candidates.size(), static_cast<size_t>(p.top_k)));
      std::vector<Found> kept;
      float limit = p.most_overlap;
      for (const auto& [score, prior] : candidates) {
        const BoundingBox box = detection::BoxOf(p, in.view(), image, c, prior);
        if (std::any_of(kept.begin(), kept.end(), [&](const Found& k) { return boxes::Overlap(box, k.box) > limit; })) {
          continue;
        }
        kept.push_back({-score, c, prior, box});
        if (limit > 0.5f) limit *= p.eta;
      }
      of_image.insert(of_image.end(), kept.begin(), kept.end());
    }
    const auto order = [](const Found& f) { return std::tuple(-f.score, f.category, f.prior); };
    std::sort(of_image.begin(), of_image.end(), [&](const Found& a, const Found& b) { return order(a) < order(b); });
    of_image.resize(std::min(of_image.size(), static_cast<size_t>(p.keep)));
    std::stable_sort(of_image.begin(), of_image.end(),
                     [](const Found& a, const Found& b) { return a.category < b.category; });
    for (const Found& f : of_image) {
      objects.insert(objects.end(), {static_cast<float>(image), static_cast<float>(f.category), f.score, f.box.xmin,
                                     f.box.ymin, f.box.xmax, f.box.ymax});
    }
  }
  objects.resize(static_cast<size_t>(p.rows() * kObjectNumbers), -1);
  return objects;
}

std::vector<float> Compute(const DetectionProblem& p, const Inputs& in) {
  const PoisonedWorkspace workspace(DetectionWorkspace(p));
  std::vector<float> objects = Poison(p.rows() * kObjectNumbers);
  DetectObjects(p, in.view(), objects.data(), workspace.data());
  return objects;
}

TEST(DetectionOutput, FindsWhatPlainLoopsDo) {
  DetectionProblem usual;
  usual.images = 3;
  usual.priors = 500;
  usual.classes = 4;
  usual.score_above = 0.3f;
  usual.most_overlap = 0.45f;
  usual.top_k = 50;
  usual.keep = 20;
  DetectionProblem all = usual;  // no class has room for what it keeps
  all.top_k = all.priors;
  all.keep = 7;
  DetectionProblem one = all;
  one.keep = 1;
  DetectionProblem many = usual;  // more than there are
  many.keep = 700;
  many.boxes = many.classes;
  many.background = -1;
  DetectionProblem narrowing = all;
  narrowing.most_overlap = 0.9f;
  narrowing.eta = 0.95f;
  narrowing.code = BoxCode::kCenterSize;
  narrowing.keep = 60;
  uint64_t stream = 10;
  for (const DetectionProblem& p : {usual, all, one, many, narrowing}) {
    const Inputs in = RandomInputs(p, stream += 10);
    const std::vector<float> found = Compute(p, in), expected = PlainObjects(p, in);
    ASSERT_EQ(found.size(), expected.size());
    // Where compilers contract products and sums, corners differ by a rounding.
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << "stream " << stream;
  }
}

TEST(DetectionOutput, DoesNotDependOnThreads) {
  DetectionProblem p;
  p.images = 5;
  p.priors = 400;
  p.classes = 21;
  p.top_k = p.priors;
  p.keep = 30;
  const Inputs in = RandomInputs(p, 3);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<float> one = Compute(p, in);
  omp_set_num_threads(7);
  const std::vector<float> seven = Compute(p, in);
  omp_set_num_threads(before);
  EXPECT_EQ(one, seven);
}

// SSD512 on COCO without top_k: candidates are in a few places, not in one for each class of each image.
TEST(DetectionOutput, ManyCandidatesNeedLittleMemory) {
  DetectionProblem p;
  p.images = 32;
  p.priors = p.top_k = 24564;
  p.classes = 81;
  p.keep = 200;
  EXPECT_LT(DetectionWorkspace(p), size_t{64} << 20);
}

}  // namespace
}  // namespace crema
