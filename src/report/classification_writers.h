// A classification report for people and for programs.
#ifndef CREMA_REPORT_CLASSIFICATION_WRITERS_H_
#define CREMA_REPORT_CLASSIFICATION_WRITERS_H_

#include <string>

#include "report/classification_report.h"
#include "report/json_writer.h"

namespace crema {

// Accuracy, a line for each class with precision, recall, F1 and support, their means, and the confusion matrix where
// it is no wider than `width` columns (rows: what the items are; columns: what they were taken for); else, and below
// it, the most frequent mistakes. Ends with a line end.
std::string ClassificationText(const ClassificationReport& report, int width = 100);

// The confusion matrix as CSV: a heading with the classes, then a line for each class.
std::string ConfusionCsv(const ClassificationReport& report);

// An object: items, accuracy, top_k, top_k_accuracy, means, classes, confusion (rows as above). What there is no number
// for is null.
void WriteClassificationJson(const ClassificationReport& report, JsonWriter* json);

// The confusion matrix as a picture that needs no other file (SVG 1.1), coloured by the share of its row; with counts
// in the cells where there are at most 30 classes.
std::string ConfusionSvg(const ClassificationReport& report, const std::string& title);

}  // namespace crema

#endif  // CREMA_REPORT_CLASSIFICATION_WRITERS_H_
