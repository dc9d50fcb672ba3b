// Problems of more pieces than a GPU's operations have blocks, or places for parts of sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "crema/error.h"
#include "device/gpu.h"
#include "ops/comparison.h"
#include "ops/detection/multibox_formulas.h"
#include "ops/operations.h"

namespace crema {
namespace {

template <typename Number>
class OnDevice {
 public:
  OnDevice(Device& device, const std::vector<Number>& values)
      : device_(device), count_(values.size()), memory_(device, count_ * sizeof(Number)) {
    device.CopyIn(values.data(), memory_.data(), memory_.bytes());
  }
  Number* data() const { return reinterpret_cast<Number*>(memory_.data()); }
  std::vector<Number> Read() const {
    std::vector<Number> values(count_);
    device_.CopyOut(memory_.data(), values.data(), memory_.bytes());
    return values;
  }

 private:
  Device& device_;
  size_t count_;
  Buffer memory_;
};

class GpuLargeProblems : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      gpu_ = &OpenGpu(0);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  // Which takes minutes for what a GPU does at once.
  bool emulated() const { return gpu_->name().find("Emulated") != std::string::npos; }

  Gpu* gpu_ = nullptr;
};

TEST_F(GpuLargeProblems, ScalesOfNormalize) {
  NormalizeProblem p;
  p.images = 2;
  p.channels = (int64_t{1} << 19) + 5;
  p.shared = false;
  const std::vector<float> x = RandomValues(p.count(), 1), dy = RandomValues(p.count(), 2), inverse = {0.5f, 2};
  const auto run = [&](Device& device) {
    const OnDevice<float> of_x(device, x), of_inverse(device, inverse), of_dy(device, dy);
    const OnDevice<float> gradient(device, Poison(p.channels));
    OperationsOf(device).NormalizeBackward(p, of_x.data(), nullptr, of_inverse.data(), of_dy.data(), nullptr,
                                           gradient.data());
    return gradient.Read();
  };
  ExpectClose(run(CpuDevice()), run(*gpu_), 1e-6f, "gradient of scales");
}

TEST_F(GpuLargeProblems, ImagesOfMultiBoxLoss) {
  MultiBoxProblem p;
  p.images = emulated() ? 100 : 600000;
  p.priors = 3;
  p.objects = 1;
  p.negatives_per_match = 1;
  const std::vector<float> objects = {0, 1, 0, 0, 0, 1, 1, 0}, random = RandomValues(p.places(), 1);
  std::vector<int32_t> match;
  std::vector<uint64_t> rank;
  for (int64_t i = 0; i < p.places(); ++i) {
    match.push_back(random[i] > 0.5f ? 0 : kNoMatch);
    rank.push_back(match[i] < 0 && random[i] < 0.2f ? suppression::RankOf(0.5f, i % p.priors) : 0);
  }
  struct Targets {
    std::vector<float> label, share;
  };
  const auto run = [&](Device& device) {
    const OnDevice<float> rows(device, objects), label(device, Poison(p.places())), share(device, Poison(1));
    const OnDevice<int32_t> matches(device, match);
    const OnDevice<uint64_t> ranks(device, rank);
    OperationsOf(device).MakeMultiBoxTargets(p, {nullptr, rows.data(), nullptr, matches.data(), ranks.data()},
                                             {label.data(), nullptr, nullptr, nullptr, share.data()});
    return Targets{label.Read(), share.Read()};
  };
  const Targets expected = run(CpuDevice()), found = run(*gpu_);
  EXPECT_EQ(found.label, expected.label);
  EXPECT_EQ(found.share, expected.share);
  EXPECT_LT(expected.share[0], 0.05f);
}

TEST_F(GpuLargeProblems, FirstOfManyBadLabels) {
  constexpr int64_t kLabels = 100001;
  Operations& ops = OperationsOf(*gpu_);
  const auto tell = [&](const std::vector<int64_t>& bad, int unit) {
    std::vector<float> labels(kLabels, 2);
    for (const int64_t position : bad) labels[position] = 3 + static_cast<float>(position % 97);
    const OnDevice<float> label(*gpu_, labels);
    gpu_->BeginUnit(unit);
    ops.FindBadLabel({}, 3, kLabels, label.data());
    GpuPassResult result;
    gpu_->CopyOut(gpu_->result(), &result, sizeof result);
    return result;
  };
  gpu_->BeginPass(0);
  EXPECT_EQ(tell({}, 1).faulty_unit, -1);
  const std::vector<std::vector<int64_t>> cases = {{0}, {kLabels - 1}, {99000, 40000, 70001}, {1023, 1024, 8192}};
  for (const auto& bad : cases) {
    gpu_->BeginPass(0);
    const int64_t first = *std::min_element(bad.begin(), bad.end());
    const GpuPassResult result = tell(bad, 2);
    EXPECT_EQ(result.faulty_unit, 2);
    EXPECT_EQ(result.position, first);
    EXPECT_EQ(result.value, 3 + static_cast<float>(first % 97));
    // What came first is what is told.
    EXPECT_EQ(tell({first + 1 < kLabels ? first + 1 : 0}, 3).position, first);
  }
  gpu_->BeginPass(0);
}

// More than the GPU compares at a time, of which few, or nearly all, are kept.
TEST_F(GpuLargeProblems, CandidatesOfProposal) {
  ProposalProblem p;
  p.images = 2;
  p.anchors.height = 38;
  p.anchors.width = 50;
  p.anchors.shapes = 3;
  for (int shape = 0; shape < 3; ++shape) {
    const float side = 16.0f * static_cast<float>(shape + 1);
    p.anchors.boxes[shape] = {8 - side / 2, 8 - side, 8 + side / 2, 8 + side};
  }
  const int64_t anchors = p.anchors.count();
  const std::vector<float> random = RandomValues(p.images * anchors * 6, 5), info = {600, 800, 1, 500, 700, 1};
  std::vector<float> offsets(random.begin(), random.begin() + p.images * anchors * 4);
  for (float& offset : offsets) offset *= 0.3f;
  offsets[17] = std::nanf("");
  const std::vector<float> scores(random.begin() + p.images * anchors * 4, random.end());
  struct Found {
    std::vector<float> regions, scores;
  };
  const auto run = [&](Device& device) {
    const OnDevice<float> of_scores(device, scores), of_offsets(device, offsets), of_info(device, info);
    const OnDevice<float> regions(device, Poison(p.rows() * kRegionNumbers)), best(device, Poison(p.rows()));
    const Buffer workspace(device, OperationsOf(device).ProposalWorkspace(p));
    OperationsOf(device).ProposeRegions(p, {of_scores.data(), of_offsets.data(), of_info.data()}, regions.data(),
                                        best.data(), workspace.data());
    return Found{regions.Read(), best.Read()};
  };
  struct Case {
    int64_t top_k, keep;
    float most_overlap;
  };
  for (const Case& c : {Case{5000, 5000, 0.7f}, Case{anchors, 300, 0.7f}, Case{4097, 4097, 0.99f},
                        Case{2048, 100, 0.01f}, Case{65, 64, 0.5f}, Case{1, 1, 0.5f}}) {
    SCOPED_TRACE(c.top_k);
    p.top_k = c.top_k;
    p.keep = c.keep;
    p.most_overlap = c.most_overlap;
    const Found expected = run(CpuDevice()), found = run(*gpu_);
    EXPECT_EQ(found.scores, expected.scores);
    ExpectClose(expected.regions, found.regions, 1e-5f, "regions");
  }
}

// More look-ups than are sorted at a time.
TEST_F(GpuLargeProblems, GradientsOfEmbed) {
  for (const int64_t indices : {1, 2, 3, 4096, 4097, 20000}) {
    for (const int64_t width : {5, 8}) {
      SCOPED_TRACE(indices);
      const EmbedProblem p{indices, 700, width};
      std::vector<float> index = RandomValues(indices, 1);
      // Row 0 is that of every third.
      for (size_t i = 0; i < index.size(); ++i) {
        index[i] = i % 3 == 0 ? 0 : std::fmod(std::floor(std::fabs(index[i]) * 10000), 700.0f);
        ASSERT_TRUE(IsRow(p, index[i])) << index[i];
      }
      const std::vector<float> dy = RandomValues(indices * width, 2);
      const auto run = [&](Device& device) {
        const OnDevice<float> of_index(device, index), of_dy(device, dy);
        const OnDevice<float> gradient(device, Poison(p.rows * width));
        const Buffer workspace(device, OperationsOf(device).EmbedWorkspace(p));
        OperationsOf(device).EmbedBackward(p, of_index.data(), of_dy.data(), gradient.data(), workspace.data());
        return gradient.Read();
      };
      EXPECT_EQ(run(*gpu_), run(CpuDevice()));
    }
  }
}

// As many candidates as SSD512 without top_k: fewer blocks than lists, each with many threads.
TEST_F(GpuLargeProblems, CandidatesOfDetectionOutput) {
  DetectionProblem p;
  p.images = 32;
  p.priors = p.top_k = 24564;
  p.classes = 81;
  p.keep = 200;
  EXPECT_LT(OperationsOf(*gpu_).DetectionWorkspace(p), size_t{emulated() ? 64u : 512u} << 20);
  p.images = emulated() ? 2 : 16;
  p.classes = 40;
  p.score_above = 0.99f;
  const auto run = [&p](Device& device) {
    std::vector<float> boxes = RandomValues(4 * p.priors, 3);
    for (size_t i = 0; i < boxes.size(); i += 4) {
      boxes[i + 2] = boxes[i] + 0.7f;
      boxes[i + 3] = boxes[i + 1] + 0.9f;
    }
    boxes.resize(2 * boxes.size(), 0.1f);
    const OnDevice<float> offsets(device, RandomValues(p.images * p.priors * 4, 1)), priors(device, boxes);
    const OnDevice<float> scores(device, RandomValues(p.images * p.priors * p.classes, 2));
    const OnDevice<float> objects(device, Poison(p.rows() * kObjectNumbers));
    const Buffer workspace(device, OperationsOf(device).DetectionWorkspace(p));
    OperationsOf(device).DetectObjects(p, {offsets.data(), scores.data(), priors.data()}, objects.data(),
                                       workspace.data());
    return objects.Read();
  };
  const auto expect_same = [&] {
    const std::vector<float> expected = run(CpuDevice());
    EXPECT_GT(expected[expected.size() - 5], 0) << "too few are found";
    ExpectClose(expected, run(*gpu_), 1e-6f, "objects");
  };
  expect_same();
  p.keep = 5;
  p.classes = 2;
  p.priors = p.top_k = 1100;
  p.score_above = -1;
  expect_same();
}

}  // namespace
}  // namespace crema
