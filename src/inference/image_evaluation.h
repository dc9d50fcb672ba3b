// How well a net tells labelled images apart.
#ifndef CREMA_INFERENCE_IMAGE_EVALUATION_H_
#define CREMA_INFERENCE_IMAGE_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "inference/classifier.h"
#include "report/classification_report.h"

namespace crema {

// One image of known class.
struct JudgedImage {
  std::string name;  // path or key
  int label = 0, predicted = 0;
  double probability = 0;        // of `predicted`; of scores that are none, by their softmax
  double label_probability = 0;  // of `label`
  double loss = 0;               // -log(label_probability), at most -log(FLT_MIN), as SoftmaxWithLoss
};

struct ImageEvaluation {
  ClassificationReport report;
  double loss = 0;                 // mean
  std::vector<JudgedImage> worst;  // the highest loss first
  // Images that could not be read: name and what is wrong.
  std::vector<std::pair<std::string, std::string>> broken;
};

struct ImageEvaluationOptions {
  std::vector<std::string> classes;  // names, as many as the classifier has classes
  int top_k = 5;
  size_t worst = 20;
  bool skip_broken = true;  // false: the first broken image is a UserError
  // Told each image after it was judged; and how many were done, with all.
  std::function<void(const JudgedImage&)> judged = {};
  std::function<void(uint64_t done)> progress = {};
};

// Throws UserError where a label is no class, naming the image, or where none of the images can be read.
ImageEvaluation EvaluateImages(Classifier& classifier, const std::shared_ptr<const ImageItems>& items,
                               const ImageEvaluationOptions& options);

// What is known about a run beside its result.
struct EvaluationSubject {
  std::string model, weights, data;
  int views = 1;  // averaged of each image
};

// Loss, accuracy, tables and the worst images, for people.
std::string EvaluationText(const ImageEvaluation& evaluation, int width = 100);
std::string EvaluationJson(const ImageEvaluation& evaluation, const EvaluationSubject& subject);
// predictions.csv: the heading and a line for each image.
std::string JudgedHeading();
std::string JudgedLine(const std::vector<std::string>& classes, const JudgedImage& image);

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_EVALUATION_H_
