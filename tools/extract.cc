// crema extract: what a net makes of each record, written to a file.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <utility>

#include "base/input_file.h"
#include "base/output_path.h"
#include "base/paths.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "data/databases/record_source.h"
#include "data/files/hdf5_files.h"
#include "data/files/image_folder.h"
#include "data/files/image_list.h"
#include "distributed/training/data_fingerprint.h"
#include "graph/boundary_types.h"
#include "image/codec.h"
#include "inference/evaluation_data.h"
#include "inference/feature_reader.h"
#include "inference/feature_writer.h"
#include "inference/own_images.h"
#include "report/assumed_inputs.h"
#include "solver/nets.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/image_flags.h"
#include "tools/image_lines.h"

DECLARE_string(blob);
DECLARE_string(output);
DECLARE_string(root);
DECLARE_bool(force);

namespace crema::tools {

namespace {

namespace fs = std::filesystem;

void Report(const FeatureTarget& target, const std::vector<FeatureBlob>& blobs, uint64_t records) {
  std::cout << target.path << ": " << records << (records == 1 ? " record" : " records");
  for (const FeatureBlob& blob : blobs) {
    std::cout << ", " << blob.name << " " << (blob.shape.axes() == 0 ? "1" : blob.shape.ToString());
    const bool scores = blob.shape.axes() == 3 && blob.shape[0] > 1;  // of which the highest is written
    if (target.path.ends_with("/") && scores) std::cout << " as label images of " << blob.shape[0] << " classes";
  }
  std::cout << "\n";
}

// Whether each image below the folder lies in a folder of it, as those of classes do.
bool HoldsClasses(const std::string& folder) {
  const std::vector<std::string> paths = ImagesBelow(folder);
  const auto lies_in_folder = [](const std::string& path) { return path.find('/') != std::string::npos; };
  return !paths.empty() && std::all_of(paths.begin(), paths.end(), lies_in_folder);
}

bool IsImageFile(const std::string& path) {
  ImageInfo info;
  return HasImageName(path) || ReadImageInfo(ReadFileBytes(path), &info).empty();
}

// Features may lie beside the images of a folder.
void KeepOutOf(std::vector<std::string> inputs) {
  std::erase_if(inputs, [](const auto& input) { return fs::is_directory(input) && !IsDatabaseFolder(input); });
  RefuseOutputInInputs(FLAGS_output, inputs);
}

// The arguments, or what the net names for its TEST phase.
std::shared_ptr<const ImageItems> ItemsOf(const CommandLine& line, const ScoringNet& scoring) {
  const std::string only = line.arguments.size() == 1 ? line.arguments[0] : "";
  const bool is_folder = fs::is_directory(only);
  const bool is_set =
      is_folder ? IsDatabaseFolder(only) || HoldsClasses(only) : fs::is_regular_file(only) && !IsImageFile(only);
  if (line.arguments.empty() && scoring.database.empty() && scoring.list.empty()) {
    throw UserError(Location{FLAGS_model},
                    "the net names no data for its TEST phase; name images, folders of them, a list, or a database");
  }
  if (scoring.list_label_count > 0 && (line.arguments.empty() || (is_set && !is_folder))) {
    const bool own = line.arguments.empty();
    const ImageList list = own ? ReadOwnList(scoring) : ReadImageList(only, FLAGS_root, scoring.list_label_count);
    return std::make_shared<const ImageFiles>(list, true, own);
  }
  if (line.arguments.empty() || is_set) return OpenEvaluationData(only, FLAGS_root, scoring).items();
  if (!FLAGS_root.empty()) throw UserError(Location{line.program}, "--root is for lists; leave it out");
  return std::make_shared<const ImageFiles>(ImagesOf(line), false);
}

void ExtractFromImages(const CommandLine& line, NetFile file, const ImageRunOptions& options, FeatureTarget target) {
  const bool skip = SkipsBroken(line);
  const ScoringNet scoring = MakeScoringNet(std::move(file), FLAGS_model, options.net);
  KeepOutOf(line.arguments);
  KeepOutOf({scoring.database, scoring.list});
  const std::shared_ptr<const ImageItems> items = ItemsOf(line, scoring);
  ImageRunner runner(scoring, *items, options);
  LoadWeights(line, runner);
  FeatureReader features(runner.net(), runner.options().net, runner.options().batch, options.views);
  target.labels = items->label_count();
  target.keys = items->of_database();
  const bool files = !target.keys && target.path.ends_with("/");
  for (uint64_t i = 0; i < items->count() && files; ++i) target.inputs.push_back(items->Name(i));
  const std::unique_ptr<FeatureWriter> writer = MakeFeatureWriter(target, features.blobs());
  ImageLines lines(line, *items, skip, "");
  uint64_t records = 0;
  runner.Run(items, [&](const ImageBatch& batch) {
    for (int64_t row = 0; row < batch.count; ++row) {
      const uint64_t image = batch.first + static_cast<uint64_t>(row);
      lines.Print(image, batch.problems[row], "");
      if (!batch.problems[row].empty()) continue;
      const ItemLabel& label = batch.labels[row];
      writer->Put(items->Name(image),
                  label.several.empty() ? FeatureLabel(label.number) : FeatureLabel(std::span(label.several)),
                  features.Row(row));
      ++records;
    }
  });
  lines.Finish();
  writer->Commit();
  Report(target, features.blobs(), records);
}

// Whether the net's own layer feeds it: it is asked to, or gives other things than images of classes.
bool FeedsItself(const CommandLine& line, const NetFile& file, const NetOptions& options) {
  if (!line.arguments.empty()) return false;
  if (line.has("iterations")) return true;
  const NetState state = StateOf(file.net, options);
  std::vector<const LayerParameter*> readers;
  for (const LayerParameter& layer : file.net.layer()) {
    if (!TakesPart(state, layer)) continue;
    if (IsInputType(layer.type())) return false;
    if (ReadsData(layer)) readers.push_back(&layer);
  }
  if (readers.size() != 1) return true;
  return readers[0]->type() != "Data" && readers[0]->type() != "ImageData";
}

void RefuseImageFlags(const CommandLine& line) {
  for (const char* flag : {"root", "broken", "batch", "mean_file", "mean_value", "std_value", "rgb", "scale",
                           "shorter_side", "resize", "views"}) {
    if (!line.has(flag)) continue;
    throw UserError(Location{line.program}, "--" + std::string(flag) +
                                                " has no effect where the net's own data layer reads the records, as "
                                                "its file says; leave it out, or name images");
  }
}

// What the net's own layers read.
std::vector<std::string> OwnInputs(const NetFile& file) {
  std::vector<std::string> inputs;
  for (const LayerParameter& layer : file.net.layer()) {
    const std::string source = DataSourceOf(layer);
    if (source.empty()) continue;
    inputs.push_back(FindFile(source, {DirectoryOf(FLAGS_model)}));
    if (layer.type() != "HDF5Data" || !fs::exists(inputs.back())) continue;
    const std::vector<std::string> named = ReadHdf5List(inputs.back());
    inputs.insert(inputs.end(), named.begin(), named.end());
  }
  return inputs;
}

void ExtractFromOwnData(const CommandLine& line, NetFile file, NetOptions options, FeatureTarget target) {
  RefuseImageFlags(line);
  ReadInOrder(&file.net);
  KeepOutOf(OwnInputs(file));
  options.needs_data = true;
  Net net(file, options);
  PrepareNet(line, net);
  const DataExtent extent = ExtentOf(net);
  if (extent.epoch == 0 && !line.has("iterations")) {
    throw UserError(Location{FLAGS_model},
                    "its data layer does not know how many records there are; say how many batches to run with "
                    "--iterations=N");
  }
  FeatureReader features(net, options, static_cast<int64_t>(extent.batch));
  const NetState state = StateOf(file.net, options);
  for (const LayerParameter& layer : file.net.layer()) {
    if (!TakesPart(state, layer)) continue;
    for (std::string& path : FilesOfList(layer, DirectoryOf(FLAGS_model))) target.inputs.push_back(std::move(path));
  }
  const std::unique_ptr<FeatureWriter> writer = MakeFeatureWriter(target, features.blobs());
  const auto batch = static_cast<uint64_t>(features.batch());
  const uint64_t records = line.has("iterations") ? static_cast<uint64_t>(FLAGS_iterations) * batch : extent.epoch;
  {
    ProgressLine progress("records");
    progress.SetTotal(static_cast<int64_t>(records));
    for (uint64_t first = 0; first < records; first += batch) {
      net.Forward();
      const uint64_t rows = std::min(batch, records - first);
      for (uint64_t row = 0; row < rows; ++row) {
        writer->Put(std::to_string(first + row), FeatureLabel(-1), features.Row(static_cast<int64_t>(row)));
      }
      progress.Add(static_cast<int64_t>(rows), 0);
    }
  }
  writer->Commit();
  Report(target, features.blobs(), records);
}

int Run(const CommandLine& line) {
  ApplyThreads();
  ImageRunOptions options = ImageRunOptionsOf(line);
  options.net.outputs = CommaList(line, "blob", FLAGS_blob);
  const FeatureTarget target{FLAGS_output, FLAGS_force};
  CheckFeatureTarget(target, options.net.outputs.size(), options.views);
  if (line.has("iterations") && !line.arguments.empty()) {
    throw UserError(Location{line.program}, "--iterations counts batches of the net's own data layer, but \"" +
                                                line.arguments[0] +
                                                "\" is to be read, to its end; leave one of them out");
  }
  KeepOutOf({FLAGS_model});
  KeepOutOf(CommaList(line, "weights", FLAGS_weights));
  NetFile file = ReadModel(line);
  PrintWarnings(file.warnings);
  file.warnings.clear();
  if (FeedsItself(line, file, options.net)) {
    ExtractFromOwnData(line, std::move(file), options.net, target);
  } else {
    ExtractFromImages(line, std::move(file), options, target);
  }
  return kExitSuccess;
}

Command Make() {
  Command command = {
      .name = "extract",
      .summary = "write what a net makes of each record: features, embeddings",
      .usage = "--model=FILE --weights=FILE --output=FILE [flags] [IMAGE...|DIR|LMDB|LIST]",
      .flags = ImageFlags(),
      .examples =
          "IMAGE is an image file, DIR a folder of them, with labels where each image lies in a folder of its\n"
          "class, LMDB the folder of a database, LIST a file with one \"path label\" a line; - reads paths from\n"
          "stdin. Without any, a net for training reads the data of its TEST phase.\n\n"
          "The ending of --output says the form: .csv; .h5 or .hdf5, which holds several blobs; _lmdb or .lmdb,\n"
          "a database that a Data layer reads; / a folder of label images (PNG), of nets that tell the class of\n"
          "each pixel.\n\n"
          "examples, from the repository's root:\n"
          "  crema extract --model=model_zoo/lenet/train_val.prototxt --blob=ip1 \\\n"
          "    --weights=model_zoo/lenet/lenet.caffemodel --output=features.h5\n"
          "  crema extract --model=deploy.prototxt --weights=cats.caffemodel --blob=pool5 \\\n"
          "    --output=pool5.csv photos/\n",
      .arguments = "IMAGE...|DIR|LMDB|LIST",
      .max_arguments = std::numeric_limits<size_t>::max(),
      .run = Run,
  };
  std::erase_if(command.flags, [](const Flag& flag) { return flag.name == "labels" || flag.name == "top"; });
  for (Flag& flag : command.flags) {
    if (flag.name != "blob") continue;
    flag.value = "NAME[,NAME]";
    flag.help = "the blobs to write; what they do not need is not computed [the net's only output]";
  }
  Flag iterations = IterationsFlag("batches of the net's own data layer to run [its data once]");
  iterations.has_default = false;
  command.flags.insert(
      command.flags.begin(),
      {{.name = "output", .value = "FILE", .help = "where to write, and in which form", .required = true},
       {.name = "force", .value = "", .help = "replace --output where it exists already"},
       {.name = "root", .value = "DIR", .help = "put before the paths of a LIST"},
       iterations});
  return command;
}

}  // namespace

const Command& ExtractCommand() {
  static const Command command = Make();
  return command;
}

}  // namespace crema::tools
