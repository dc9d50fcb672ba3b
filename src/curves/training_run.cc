#include "curves/training_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/paths.h"
#include "crema/error.h"
#include "schema/text_file.h"

namespace crema {

namespace {

// What training makes small, of nets with several losses.
constexpr char kTotalLoss[] = "total loss";
constexpr char kLearningRate[] = "learning rate";
constexpr char kRecordStart[] = "{\"event\":";  // of metrics
constexpr char kBlanks[] = " \t\r\n";

// "runs/lenet_metrics.jsonl" -> "lenet"
std::string RunName(const std::string& path) {
  std::string name = FileName(path);
  for (const char* ending : {".jsonl", ".log", ".txt", "_metrics"}) {
    if (name.ends_with(ending) && name.size() > std::string(ending).size()) {
      name.resize(name.size() - std::string(ending).size());
    }
  }
  return name;
}

// Whether a record of metrics follows the line that `at` is in: half a one, where the beginning of the file was cut
// off.
bool IsRecordBehindLine(const std::string& text, size_t at) {
  const size_t end = std::min(text.find('\n', at), text.size()), next = text.find_first_not_of(kBlanks, end);
  return next != std::string::npos && text.compare(next, std::strlen(kRecordStart), kRecordStart) == 0;
}

}  // namespace

const CurvePoint& BestPoint(const Curve& curve) {
  const auto lower = [](const CurvePoint& a, const CurvePoint& b) { return a.value < b.value; };
  return curve.is_loss() ? *std::min_element(curve.points.begin(), curve.points.end(), lower)
                         : *std::max_element(curve.points.begin(), curve.points.end(), lower);
}

std::string CurveLabel(const Curve& curve) {
  std::string label = curve.kind == CurveKind::kTest ? "test" : "train";
  if (curve.net > 0) label += " " + std::to_string(curve.net);
  return curve.element.empty() ? label : label + " " + curve.element;
}

void RunBuilder::Start(const std::string& net, int max_iter) {
  *this = RunBuilder();
  run_.net = net;
  run_.max_iter = max_iter;
}

void RunBuilder::ResumeAt(int iteration, int max_iter) {
  if (max_iter > 0) run_.max_iter = max_iter;
  offset_ = 0;
  for (Curve& curve : curves_) {
    const auto later = std::find_if(curve.points.begin(), curve.points.end(),
                                    [iteration](const CurvePoint& point) { return point.iteration >= iteration; });
    curve.points.erase(later, curve.points.end());
    if (!curve.points.empty()) offset_ = std::max(offset_, curve.points.back().seconds);
  }
  run_.iteration = iteration;
  run_.ended = false;
  if (run_.not_finite_from >= iteration) run_.not_finite_from = -1;
}

void RunBuilder::AddLoss(int iteration, double seconds, double loss) {
  Add({CurveKind::kTraining, 0, kTotalLoss, ""}, 1.0f, iteration, seconds, loss);
}

void RunBuilder::AddTestLoss(int iteration, double seconds, int net, double loss) {
  Add({CurveKind::kTest, net, kTotalLoss, ""}, 1.0f, iteration, seconds, loss);
}

void RunBuilder::AddRate(int iteration, double seconds, double rate) {
  Add({CurveKind::kLearningRate, 0, kLearningRate, ""}, std::nullopt, iteration, seconds, rate);
}

void RunBuilder::AddOutputs(CurveKind kind, int iteration, double seconds, int net,
                            const std::vector<OutputValue>& outputs) {
  std::map<std::string, int> elements, seen;
  for (const OutputValue& output : outputs) ++elements[output.name];
  for (const OutputValue& output : outputs) {
    const int index = seen[output.name]++;
    const std::string element = elements[output.name] > 1 ? "[" + std::to_string(index) + "]" : "";
    const std::optional<float> loss_weight = output.is_loss ? std::optional(output.loss_weight) : std::nullopt;
    Add({kind, net, output.name, element}, loss_weight, iteration, seconds, output.value);
  }
}

void RunBuilder::End(int iteration) {
  run_.iteration = std::max(run_.iteration, iteration);
  run_.ended = true;
}

void RunBuilder::Add(Key key, std::optional<float> loss_weight, int iteration, double seconds, double value) {
  if (iteration < 0) return;
  run_.iteration = std::max(run_.iteration, iteration);
  if (!std::isfinite(value)) {
    if (loss_weight && run_.not_finite_from < 0) run_.not_finite_from = iteration;
    return;
  }
  const auto [place, is_new] = places_.emplace(key, curves_.size());
  if (is_new) curves_.push_back({key.output, key.kind, key.net, key.element, loss_weight, {}});
  Curve& curve = curves_[place->second];
  // Earlier versions, which may have begun the file, named only losses that are trained.
  if (!curve.loss_weight) curve.loss_weight = loss_weight;
  // Records of another order than that of their iterations would draw lines back and forth.
  if (!curve.points.empty() && curve.points.back().iteration >= iteration) return;
  curve.points.push_back({iteration, offset_ + seconds, value});
}

TrainingRun RunBuilder::Finish() const {
  TrainingRun run = run_;
  // Where a net has one loss, and that with weight 1, its total is that loss: of the train net the better curve, since
  // it is a mean of more iterations, of a test net the same one.
  std::set<std::pair<std::string, float>> losses;  // that are trained
  bool any = false;
  for (const Curve& curve : curves_) {
    if (!curve.is_loss() || curve.output == kTotalLoss) continue;
    any = true;
    if (*curve.loss_weight != 0) losses.insert({curve.output, *curve.loss_weight});
  }
  const bool one = losses.size() == 1 && losses.begin()->second == 1;
  const std::string total = one ? losses.begin()->first : any ? kTotalLoss : "loss";
  const auto points_of = [&](const Curve& like, const std::string& output) -> size_t {
    const auto at = places_.find({like.kind, like.net, output, ""});
    return at == places_.end() ? 0 : curves_[at->second].points.size();
  };
  for (Curve curve : curves_) {
    if (curve.points.empty()) continue;
    const bool is_total = curve.output == kTotalLoss;
    const size_t of_total = points_of(curve, kTotalLoss), of_one = one ? points_of(curve, total) : 0;
    // Of curves that grow alike, one is always a point ahead for a moment.
    const bool take_one = one && of_one > of_total + 1;
    if (take_one && is_total) continue;
    if (one && !take_one && of_total > 0 && curve.output == total && curve.element.empty()) continue;
    if (is_total) curve.output = total;
    run.curves.push_back(std::move(curve));
  }
  std::stable_sort(run.curves.begin(), run.curves.end(), [](const Curve& a, const Curve& b) {
    const auto rank = [](const Curve& curve) {
      return std::pair(curve.kind == CurveKind::kLearningRate ? 2 : curve.is_loss() ? 0 : 1, curve.kind);
    };
    return rank(a) < rank(b);
  });
  return run;
}

TrainingRun ReadTrainingRun(const std::string& path, int* earlier, const std::stop_token& stop) {
  const std::string text = ReadTextFile(path, "metrics file or log of a training");
  const size_t first = text.find_first_not_of(kBlanks);
  const bool is_metrics = first != std::string::npos && (text[first] == '{' || IsRecordBehindLine(text, first));
  int before = 0;
  TrainingRun run = is_metrics ? ReadMetrics(text, path, &before, stop) : ReadLog(text, path, &before);
  run.name = RunName(path);
  if (run.curves.empty()) {
    throw UserError(Location{path, 0, 0},
                    is_metrics ? "the last run in it has no loss and no test yet"
                               : "no curves in it: neither what train --metrics writes nor a log with lines such as "
                                 "\"Iteration 100, loss = 0.5\"");
  }
  if (earlier) *earlier = before;
  return run;
}

}  // namespace crema
