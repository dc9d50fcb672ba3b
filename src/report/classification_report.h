// How well a classifier does: which classes it takes for which.
#ifndef CREMA_REPORT_CLASSIFICATION_REPORT_H_
#define CREMA_REPORT_CLASSIFICATION_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace crema {

// Of one class. Shares are from 0 to 1.
struct ClassScores {
  int64_t support = 0;              // items of this class
  int64_t predicted = 0;            // items taken for this class
  int64_t correct = 0;              // both
  std::optional<double> precision;  // correct / predicted; none where nothing was taken for it
  std::optional<double> recall;     // correct / support; none where there are no items
  std::optional<double> f1;         // their harmonic mean, 0 where nothing is correct; none where there are no items
};

// Items of `label` that were taken for `predicted`.
struct Confusion {
  int label = 0, predicted = 0;
  int64_t count = 0;
};

// Counts items by their class and the class with the highest score. Not thread-safe.
class ClassificationReport {
 public:
  // The names of the classes, at least one. top_k, at least 1, is how many classes with the highest scores
  // top_k_accuracy() looks at; with no more classes than that it says nothing and is left out of texts and files.
  explicit ClassificationReport(std::vector<std::string> classes, int top_k = 5);

  // Counts one item by its scores, one for each class, of which equal ones rank in the order of the classes. Throws
  // UserError where the label is no class or a score is not a number.
  void Add(int64_t label, std::span<const float> scores);

  int class_count() const { return static_cast<int>(classes_.size()); }
  const std::vector<std::string>& classes() const { return classes_; }
  int top_k() const { return top_k_; }
  bool has_top_k() const { return top_k_ > 1 && top_k_ < class_count(); }

  int64_t items() const { return items_; }
  int64_t correct() const;
  // The confusion matrix: items of `label` that were taken for `predicted`.
  int64_t count(int label, int predicted) const { return counts_[Cell(label, predicted)]; }
  // Shares of the items; 0 without items.
  double accuracy() const;
  double top_k_accuracy() const;

  ClassScores scores(int index) const;
  // Means over the classes that have items, each counting alike; a precision that is none counts as 0.
  ClassScores means() const;
  // The most frequent mistakes first, equally frequent ones in the order of the classes.
  std::vector<Confusion> confusions(size_t most) const;

 private:
  size_t Cell(int label, int predicted) const { return static_cast<size_t>(label) * classes_.size() + predicted; }

  std::vector<std::string> classes_;
  int top_k_;
  std::vector<int64_t> counts_;
  int64_t items_ = 0, in_top_k_ = 0;
};

// "0", "1", ...: for classes without names.
std::vector<std::string> NumberedClasses(int count);

// The `most` highest scores' indices, highest first, equal ones in their order; NaN counts as the lowest.
std::vector<int> HighestScores(std::span<const float> scores, size_t most);

}  // namespace crema

#endif  // CREMA_REPORT_CLASSIFICATION_REPORT_H_
