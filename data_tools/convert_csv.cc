// convert_csv: a table of numbers, or of texts with labels, to a database for Data layers.
#include "data/convert/convert_csv.h"

#include <gflags/gflags.h>

#include <string>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "data/files/class_names.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_string(header, "auto", "whether the first row holds names");
DEFINE_string(label_column, "", "the column of the labels");
DEFINE_string(label_columns, "", "the columns of several labels");
DEFINE_string(features_shape, "", "shape of the features");
DEFINE_bool(float, false, "float_data");
DEFINE_string(skip_columns, "", "columns to leave out");
DEFINE_string(text_column, "", "the column of the texts");
DEFINE_string(vocabulary, "", "file of the vocabulary");
DEFINE_int32(steps, 0, "words of each text");
DEFINE_int32(most_frequent, 10000, "words in the vocabulary");
DEFINE_string(labels, "", "names of the classes");
DEFINE_bool(split_in_order, false, "stretches of the table");

namespace crema::tools {

namespace {

ImageSize FeaturesShape(const CommandLine& line) {
  ImageSize shape;
  if (FLAGS_features_shape.empty()) return shape;
  constexpr int kMost = 1 << 20;
  const std::vector<std::string> parts = CommaParts(FLAGS_features_shape);
  int* const extents[] = {&shape.channels, &shape.height, &shape.width};
  bool sound = parts.size() == std::size(extents);
  for (size_t i = 0; sound && i < parts.size(); ++i) {
    sound = ParseWhole(parts[i], extents[i]) && *extents[i] > 0 && *extents[i] <= kMost;
  }
  if (!sound) {
    RejectFlag(line, "--features_shape=" + FLAGS_features_shape + ": expected channels,height,width, as in 3,32,32");
  }
  return shape;
}

std::vector<std::string> Columns(const CommandLine& line, const std::string& flag, const std::string& value) {
  std::vector<std::string> columns = CommaList(line, flag, value);
  if (line.has(flag) && columns.empty()) RejectFlag(line, "--" + flag + " needs a value: --" + flag + "=A,B");
  return columns;
}

CsvForm FormOf(const CommandLine& line) {
  CsvForm form;
  form.file = line.arguments[0];
  form.header = static_cast<CsvForm::Header>(ChoiceOf(line, "header", FLAGS_header, {"auto", "yes", "no"}));
  form.labelled = FLAGS_label_column != "none";
  if (form.labelled) form.label_column = FLAGS_label_column;
  form.label_columns = Columns(line, "label_columns", FLAGS_label_columns);
  form.skip_columns = Columns(line, "skip_columns", FLAGS_skip_columns);
  form.text_column = FLAGS_text_column;
  if (!FLAGS_label_column.empty() && !form.label_columns.empty()) {
    RejectFlag(line,
               "--label_column is the column of a class, --label_columns are those of several labels; leave out " +
                   std::string("one"));
  }
  if (!FLAGS_labels.empty()) {
    if (!form.labelled || !form.label_columns.empty()) {
      RejectFlag(line, "--labels=" + FLAGS_labels + " names classes, but rows are to have none; leave it out");
    }
    ClassList classes = ReadClassList(FLAGS_labels);
    form.classes = std::move(classes.names);
    form.classes_file = std::move(classes.file);
  }
  return form;
}

TextFeaturesForm TextOf(const CommandLine& line) {
  if (FLAGS_text_column.empty()) return {};
  if (!FLAGS_features_shape.empty()) {
    RejectFlag(line, "--features_shape is for columns of numbers; a text has as many channels as --steps says");
  }
  if (FLAGS_vocabulary.empty() || FLAGS_steps == 0) {
    RejectFlag(line, "--text_column=" + FLAGS_text_column +
                         " needs --vocabulary=FILE and --steps=N, how many words of each text are read");
  }
  return {FLAGS_vocabulary, static_cast<size_t>(FLAGS_steps), FLAGS_most_frequent};
}

int Run(const CommandLine& line) {
  CsvConversion how;
  how.form = FormOf(line);
  how.text = TextOf(line);
  how.shape = FeaturesShape(line);
  how.floats = FLAGS_float;
  how.in_order = FLAGS_split_in_order;
  std::vector<std::string> inputs = {line.arguments[0]};
  if (!FLAGS_vocabulary.empty()) inputs.push_back(FLAGS_vocabulary);
  const DatasetTarget target = TargetOf(line, line.arguments[1], inputs);
  ProgressLine progress("rows");
  ConvertCsv(how, target, &progress);
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_csv",
      .summary = "a table of numbers or texts, separated by commas, to an LMDB that Data layers read",
      .usage = "[flags] FILE DB",
      .flags = {{.name = "header",
                 .value = "auto|yes|no",
                 .help = "whether the first row holds names; auto: where a feature in it is no number"},
                {.name = "label_column",
                 .value = "NAME|N|none",
                 .help =
                     "the column of the labels, by name or counted from 0; without it the last one. none: rows have "
                     "no label, as those that a net is to be used on"},
                {.name = "label_columns",
                 .value = "NAME,...",
                 .help = "columns of numbers instead, by name or number: the several labels of a record"},
                {.name = "skip_columns", .value = "NAME,...", .help = "columns, by name or number, to leave out"},
                LabelsFlag("labels"),
                {.name = "text_column",
                 .value = "NAME|N",
                 .help = "the column of a text whose words, by their numbers, are the features; other columns but "
                         "those of labels are left out"},
                {.name = "vocabulary",
                 .value = "FILE",
                 .help = "with --text_column: words, one per line, numbered from 0, which stands before short texts; "
                         "written where it is absent, else read",
                 .needs = {"text_column"}},
                {.name = "steps",
                 .value = "N",
                 .help = "with --text_column: numbers for each text, the last words of longer ones",
                 .min = 1,
                 .max = 1 << 20,
                 .needs = {"text_column"}},
                {.name = "most_frequent",
                 .value = "N",
                 .help = "how many words a new vocabulary has; all others become <unk>",
                 .min = 3,
                 .max = 1 << 24,
                 .needs = {"text_column"}},
                {.name = "features_shape",
                 .value = "C,H,W",
                 .help = "shape of the features; without it as many channels of 1x1"},
                {.name = "float",
                 .value = "",
                 .help = "store floats also where all values are whole numbers from 0 to 255, which become bytes"},
                SplitFlag("each class alike, at random with --label_columns"),
                {.name = "split_in_order",
                 .value = "",
                 .help = "divide into stretches, the first rows to the first part: for series of measurements, whose "
                         "neighbours are alike",
                 .needs = {"split"}},
                SeedFlag(),
                ForceFlag(),
                BackendFlag()},
      .examples =
          "  FILE  one record per line, plain or .gz; labels are whole numbers from 0, or names, which are numbered\n"
          "        in their order and written to DB_labels.txt\n"
          "  DB    folder to write; it appears only when the conversion is complete\n\n"
          "examples:\n"
          "  convert_csv --label_column=species --split=train:0.8,val:0.2 iris.csv iris\n"
          "  convert_csv --label_columns=price,rent --split=train:0.8,val:0.2 houses.csv houses\n"
          "  convert_csv --labels=iris_labels.txt more.csv more_lmdb\n"
          "  convert_csv --label_column=none --skip_columns=id new_rows.csv new_rows_lmdb\n"
          "  convert_csv --text_column=text --label_column=topic --vocabulary=words.txt --steps=50 mails.csv mails\n",
      .arguments = "FILE DB",
      .min_arguments = 2,
      .max_arguments = 2,
      .run = Run,
  };
}

}  // namespace crema::tools
