#include "report/classification_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "crema/error.h"

namespace crema {

ClassificationReport::ClassificationReport(std::vector<std::string> classes, int top_k)
    : classes_(std::move(classes)), top_k_(top_k), counts_(classes_.size() * classes_.size()) {
  CREMA_CHECK(!classes_.empty() && top_k_ >= 1);
}

void ClassificationReport::Add(int64_t label, std::span<const float> scores) {
  CREMA_CHECK(scores.size() == classes_.size());
  if (label < 0 || label >= class_count()) {
    throw UserError("the label is " + std::to_string(label) + ", but the net tells " + std::to_string(class_count()) +
                    (class_count() == 1 ? " class" : " classes") +
                    " apart, counted from 0; the data is another net's, or its labels are wrong");
  }
  if (std::any_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); })) {
    throw UserError("the net's scores are not numbers (NaN); are its weights those of this net, and whole?");
  }
  const float own = scores[label];
  int64_t before = 0;
  int predicted = 0;
  for (int i = 0; i < class_count(); ++i) {
    before += scores[i] > own || (scores[i] == own && i < label);
    if (scores[i] > scores[predicted]) predicted = i;
  }
  ++counts_[Cell(static_cast<int>(label), predicted)];
  ++items_;
  in_top_k_ += before < top_k_;
}

int64_t ClassificationReport::correct() const {
  int64_t sum = 0;
  for (int i = 0; i < class_count(); ++i) sum += count(i, i);
  return sum;
}

double ClassificationReport::accuracy() const { return items_ > 0 ? static_cast<double>(correct()) / items_ : 0; }

double ClassificationReport::top_k_accuracy() const { return items_ > 0 ? static_cast<double>(in_top_k_) / items_ : 0; }

ClassScores ClassificationReport::scores(int index) const {
  ClassScores scores;
  for (int other = 0; other < class_count(); ++other) {
    scores.support += count(index, other);
    scores.predicted += count(other, index);
  }
  scores.correct = count(index, index);
  const auto correct = static_cast<double>(scores.correct);
  if (scores.predicted > 0) scores.precision = correct / scores.predicted;
  if (scores.support > 0) {
    scores.recall = correct / scores.support;
    scores.f1 = 2 * correct / (scores.predicted + scores.support);
  }
  return scores;
}

ClassScores ClassificationReport::means() const {
  ClassScores means;
  double precision = 0, recall = 0, f1 = 0;
  int present = 0;
  for (int i = 0; i < class_count(); ++i) {
    const ClassScores one = scores(i);
    means.support += one.support;
    means.predicted += one.predicted;
    means.correct += one.correct;
    if (one.support == 0) continue;
    ++present;
    precision += one.precision.value_or(0);
    recall += *one.recall;
    f1 += *one.f1;
  }
  if (present > 0) {
    means.precision = precision / present;
    means.recall = recall / present;
    means.f1 = f1 / present;
  }
  return means;
}

std::vector<Confusion> ClassificationReport::confusions(size_t most) const {
  std::vector<Confusion> all;
  for (int label = 0; label < class_count(); ++label) {
    for (int predicted = 0; predicted < class_count(); ++predicted) {
      if (label != predicted && count(label, predicted) > 0) all.push_back({label, predicted, count(label, predicted)});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  if (all.size() > most) all.resize(most);
  return all;
}

std::vector<std::string> NumberedClasses(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<int> HighestScores(std::span<const float> scores, size_t most) {
  std::vector<int> indices(scores.size());
  std::iota(indices.begin(), indices.end(), 0);
  most = std::min(most, indices.size());
  std::partial_sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(most), indices.end(),
                    [&](int a, int b) {
                      const bool none_a = std::isnan(scores[a]), none_b = std::isnan(scores[b]);
                      if (none_a || none_b) return none_a != none_b ? none_b : a < b;
                      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                    });
  indices.resize(most);
  return indices;
}

}  // namespace crema
