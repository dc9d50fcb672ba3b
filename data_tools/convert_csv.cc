// convert_csv: a table of numbers to a database for Data layers.
#include "data/convert_csv.h"

#include <gflags/gflags.h>

#include <charconv>
#include <string>
#include <system_error>

#include "crema/error.h"
#include "data_tools/dataset_flags.h"

DEFINE_string(header, "auto", "whether the first row holds names");
DEFINE_string(label_column, "", "the column of the labels");
DEFINE_string(label_columns, "", "the columns of several labels");
DEFINE_string(features_shape, "", "shape of the features");
DEFINE_bool(float, false, "float_data");

namespace crema::tools {

namespace {

ImageSize FeaturesShape(const CommandLine& line) {
  ImageSize shape;
  if (FLAGS_features_shape.empty()) return shape;
  constexpr int kMost = 1 << 20;
  const char *at = FLAGS_features_shape.data(), *const end = at + FLAGS_features_shape.size();
  bool sound = true;
  for (int* extent : {&shape.channels, &shape.height, &shape.width}) {
    if (extent != &shape.channels) sound = sound && at != end && *at++ == ',';
    const auto [behind, error] = std::from_chars(at, end, *extent);
    sound = sound && error == std::errc() && *extent > 0 && *extent <= kMost;
    at = behind;
  }
  if (!sound || at != end) {
    RejectFlag(line, "--features_shape=" + FLAGS_features_shape + ": expected channels,height,width, as in 3,32,32");
  }
  return shape;
}

int Run(const CommandLine& line) {
  CsvConversion how;
  how.file = line.arguments[0];
  how.header = static_cast<CsvConversion::Header>(ChoiceOf(line, "header", FLAGS_header, {"auto", "yes", "no"}));
  how.label_column = FLAGS_label_column;
  how.label_columns = CommaList(line, "label_columns", FLAGS_label_columns);
  if (line.has("label_columns") && how.label_columns.empty()) {
    throw UserError(Location{line.program, 0, 0}, "--label_columns needs a value: --label_columns=A,B");
  }
  if (!how.label_column.empty() && !how.label_columns.empty()) {
    RejectFlag(line,
               "--label_column is the column of a class, --label_columns are those of several labels; leave out " +
                   std::string("one"));
  }
  how.shape = FeaturesShape(line);
  how.floats = FLAGS_float;
  const DatasetTarget target = TargetOf(line, line.arguments[1], {line.arguments[0]});
  ProgressLine progress("rows");
  ConvertCsv(how, target, &progress);
  return kExitSuccess;
}

const Command& ConvertCsvCommand() {
  static const Command command = {
      .name = "convert_csv",
      .summary = "a table of numbers, separated by commas, to an LMDB that Data layers read",
      .usage = "[flags] FILE DB",
      .flags = {{.name = "header",
                 .value = "auto|yes|no",
                 .help = "whether the first row holds names; auto: where a feature in it is no number"},
                {.name = "label_column",
                 .value = "NAME|N",
                 .help = "the column of the labels, by name or counted from 0; without it the last one"},
                {.name = "label_columns",
                 .value = "NAME,...",
                 .help = "columns of numbers instead, by name or number: the several labels of a record"},
                {.name = "features_shape",
                 .value = "C,H,W",
                 .help = "shape of the features; without it as many channels of 1x1"},
                {.name = "float",
                 .value = "",
                 .help = "store floats also where all values are whole numbers from 0 to 255, which become bytes"},
                SplitFlag("each class alike, at random with --label_columns"),
                SeedFlag(),
                ForceFlag(),
                BackendFlag()},
      .examples =
          "  FILE  one record per line, plain or .gz; labels are whole numbers from 0, or names, which are numbered\n"
          "        in their order and written to DB_labels.txt\n"
          "  DB    folder to write; it appears only when the conversion is complete\n\n"
          "examples:\n"
          "  convert_csv --label_column=species --split=train:0.8,val:0.2 iris.csv iris\n"
          "  convert_csv --label_columns=price,rent --split=train:0.8,val:0.2 houses.csv houses\n",
      .arguments = "FILE DB",
      .min_arguments = 2,
      .max_arguments = 2,
      .run = Run,
  };
  return command;
}

}  // namespace

}  // namespace crema::tools

int main(int argc, char** argv) {
  return crema::tools::RunCommand(crema::tools::ConvertCsvCommand(), "convert_csv", {argv + 1, argv + argc});
}
