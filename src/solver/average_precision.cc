#include "solver/average_precision.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace crema {

namespace {

// As of one more found object.
struct Point {
  float precision, recall;
};

std::vector<Point> Curve(ClassDetections detections) {
  std::stable_sort(detections.scores.begin(), detections.scores.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Point> curve;
  int64_t found = 0, right = 0;
  for (const auto& score : detections.scores) {
    ++found;
    right += score.second ? 1 : 0;
    curve.push_back({static_cast<float>(right) / static_cast<float>(found),
                     static_cast<float>(right) / static_cast<float>(detections.objects)});
  }
  return curve;
}

// Recalls are floats and the eleven steps doubles, as in the fork, whose numbers depend on it: 7 of 10 objects are less
// than a recall of 0.7.
double ElevenPoint(const std::vector<Point>& curve) {
  constexpr int kSteps = 10;
  double sum = 0;
  for (int step = 0; step <= kSteps; ++step) {
    float highest = 0;
    for (const Point& point : curve) {
      if (static_cast<double>(point.recall) >= step / static_cast<double>(kSteps)) {
        highest = std::max(highest, point.precision);
      }
    }
    sum += static_cast<double>(highest);
  }
  return sum / (kSteps + 1);
}

double Integral(const std::vector<Point>& curve) {
  double area = 0, recall = 0;
  for (const Point& point : curve) {
    area += static_cast<double>(point.precision) * (static_cast<double>(point.recall) - recall);
    recall = static_cast<double>(point.recall);
  }
  return area;
}

}  // namespace

const std::vector<std::string>& ApVersionNames() {
  static const std::vector<std::string> names = {"11point", "MaxIntegral", "Integral"};
  return names;
}

std::optional<ApVersion> ApVersionOf(const std::string& name) {
  const auto found = std::find(ApVersionNames().begin(), ApVersionNames().end(), name);
  if (found == ApVersionNames().end()) return std::nullopt;
  return static_cast<ApVersion>(std::distance(ApVersionNames().begin(), found));
}

double AveragePrecision(const ClassDetections& detections, ApVersion version) {
  if (detections.objects == 0) return 0;
  std::vector<Point> curve = Curve(detections);
  if (version == ApVersion::kElevenPoint) return ElevenPoint(curve);
  if (version == ApVersion::kMaxIntegral) {
    for (size_t i = curve.size(); i-- > 1;) {
      curve[i - 1].precision = std::max(curve[i - 1].precision, curve[i].precision);
    }
  }
  return Integral(curve);
}

void MeanAveragePrecision::Add(const Tensor& evaluated) {
  constexpr int64_t kRow = 5;
  CREMA_CHECK(evaluated.count() % kRow == 0) << evaluated.shape().ToString();
  for (const float* row = evaluated.f32(); row != evaluated.f32() + evaluated.count(); row += kRow) {
    const bool is_class = row[0] < 0 && row[1] >= 0, is_found = row[0] >= 0;
    if (is_class) classes_[static_cast<int>(row[1])].objects += static_cast<int64_t>(row[2]);
    // One that is neither right nor wrong is a difficult object.
    if (!is_found || row[3] == row[4] || !(row[1] >= 0 && row[1] < 1 << 24)) continue;
    const float score = std::isnan(row[2]) ? -std::numeric_limits<float>::infinity() : row[2];
    classes_[static_cast<int>(row[1])].scores.emplace_back(score, row[3] > 0);
  }
}

std::vector<ClassPrecision> MeanAveragePrecision::OfClasses(ApVersion version) const {
  std::vector<ClassPrecision> precisions;
  for (const auto& [label, detections] : classes_) {
    if (detections.objects > 0) {
      precisions.push_back({label, static_cast<float>(AveragePrecision(detections, version))});
    }
  }
  return precisions;
}

double MeanAveragePrecision::Mean(ApVersion version) const {
  double sum = 0;
  int64_t count = 0;
  for (const auto& [label, detections] : classes_) {
    if (detections.objects == 0) continue;
    sum += AveragePrecision(detections, version);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

}  // namespace crema
