#include "inference/image_evaluation.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "base/number_text.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "crema/error.h"
#include "report/classification_writers.h"
#include "report/csv.h"
#include "report/json_writer.h"

namespace crema {

namespace {

constexpr size_t kLongestName = 24;

JudgedImage Judge(const Classifier& classifier, const std::string& name, const ScoredImage& scored) {
  JudgedImage image;
  image.name = name;
  image.label = static_cast<int>(scored.label);
  image.predicted = HighestScores(scored.scores, 1)[0];
  image.probability = scored.scores[image.predicted];
  image.label_probability = scored.scores[image.label];
  if (!classifier.probabilities()) {
    const double highest = image.probability;
    double sum = 0;
    for (const float score : scored.scores) sum += std::exp(score - highest);
    image.probability = 1 / sum;
    image.label_probability = std::exp(image.label_probability - highest) / sum;
  }
  image.loss = 0.0 - std::log(std::max(image.label_probability, static_cast<double>(FLT_MIN)));  // no -0
  return image;
}

// Keeps the `most` highest losses, highest first, equal ones in their order.
void KeepWorst(JudgedImage image, size_t most, std::vector<JudgedImage>* worst) {
  const auto at = std::upper_bound(worst->begin(), worst->end(), image,
                                   [](const auto& a, const auto& b) { return a.loss > b.loss; });
  if (static_cast<size_t>(at - worst->begin()) >= most) return;
  worst->insert(at, std::move(image));
  if (worst->size() > most) worst->pop_back();
}

}  // namespace

ImageEvaluation EvaluateImages(Classifier& classifier, const std::shared_ptr<const ImageItems>& items,
                               const ImageEvaluationOptions& options) {
  ImageEvaluation evaluation{ClassificationReport(options.classes, options.top_k), 0, {}, {}};
  classifier.Run(items, [&](const ScoredImage& scored) {
    if (!scored.problem.empty()) {
      const std::string name = items->Name(scored.index);
      if (!options.skip_broken) throw UserError(Location{name}, scored.problem);
      evaluation.broken.emplace_back(name, scored.problem);
    } else {
      try {
        evaluation.report.Add(scored.label, scored.scores);
      } catch (const UserError& error) {
        throw UserError(Location{items->Name(scored.index)}, error.diagnostics().front().message);
      }
      JudgedImage image = Judge(classifier, items->Name(scored.index), scored);
      evaluation.loss += image.loss;
      if (options.judged) options.judged(image);
      KeepWorst(std::move(image), options.worst, &evaluation.worst);
    }
    if (options.progress) options.progress(scored.index + 1);
  });
  if (evaluation.report.items() == 0) {
    throw UserError(Location{evaluation.broken.front().first}, evaluation.broken.front().second + "; none of the " +
                                                                   FormatCount(items->count()) + " images can be read");
  }
  evaluation.loss /= static_cast<double>(evaluation.report.items());
  return evaluation;
}

std::string EvaluationText(const ImageEvaluation& evaluation, int width) {
  const std::vector<std::string>& classes = evaluation.report.classes();
  std::string text =
      "loss " + FormatNumber(evaluation.loss, "%.4f") + "\n" + ClassificationText(evaluation.report, width);
  if (evaluation.worst.empty()) return text;
  TextTable table({">loss", "is", "taken for", ">probability", "image"});
  for (const JudgedImage& image : evaluation.worst) {
    table.AddRow({FormatNumber(image.loss, "%.3f"), Utf8Shortened(classes[image.label], kLongestName),
                  Utf8Shortened(classes[image.predicted], kLongestName), FormatNumber(image.probability, "%.4f"),
                  image.name});
  }
  return text + "\nimages with the highest loss\n" + table.ToString();
}

std::string EvaluationJson(const ImageEvaluation& evaluation, const EvaluationSubject& subject) {
  const std::vector<std::string>& classes = evaluation.report.classes();
  JsonWriter json;
  json.BeginObject();
  json.Field("model", subject.model);
  json.Field("weights", subject.weights);
  json.Field("data", subject.data);
  json.Field("views", subject.views);
  json.NewLine(1);
  json.Field("loss", evaluation.loss);
  json.NewLine(1);
  json.Key("result");
  WriteClassificationJson(evaluation.report, &json);
  json.NewLine(1);
  json.Key("worst");
  json.BeginArray();
  for (const JudgedImage& image : evaluation.worst) {
    json.NewLine(2);
    json.BeginObject();
    json.Field("image", image.name);
    json.Field("class", classes[image.label]);
    json.Field("predicted", classes[image.predicted]);
    json.Field("probability", image.probability);
    json.Field("loss", image.loss);
    json.EndObject();
  }
  json.EndArray();
  json.NewLine(1);
  json.Key("broken");
  json.BeginArray();
  for (const auto& [name, problem] : evaluation.broken) {
    json.NewLine(2);
    json.BeginObject();
    json.Field("image", name);
    json.Field("error", problem);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.text() + "\n";
}

std::string JudgedHeading() { return "image,label,class,predicted,predicted_class,probability,loss\n"; }

std::string JudgedLine(const std::vector<std::string>& classes, const JudgedImage& image) {
  return CsvLine({image.name, std::to_string(image.label), classes[image.label], std::to_string(image.predicted),
                  classes[image.predicted], FormatNumber(image.probability, "%.9g"), FormatNumber(image.loss, "%.9g")});
}

}  // namespace crema
