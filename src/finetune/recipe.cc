#include "finetune/recipe.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/number_text.h"
#include "crema/error.h"
#include "data/databases/mean_file.h"
#include "finetune/output_folder.h"
#include "schema/text_file.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

// Of the rate that the model was trained with from scratch: the best of a few that were tried on photographs.
constexpr double kFineTuningRate = 0.3;

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return quoted + "\"";
}

// As the file says it, from the working directory or from beside the model.
std::string Beside(const std::string& model, const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  return (fs::path(model).parent_path() / path).string();
}

struct Model {
  NetFile file;
  Classification classification;
  NetInputSize input;
  TransformationParameter transform;  // what is subtracted and multiplied
  int batch = 64;
  std::optional<SolverFile> solver;
};

int BatchOf(const NetParameter& net) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.data_param().has_batch_size()) {
      return static_cast<int>(layer.data_param().batch_size());
    }
    if (layer.type() == "ImageData") return static_cast<int>(layer.image_data_param().batch_size());
  }
  return 64;
}

// Only what gives values their range; sizes and chance are the recipe's.
TransformationParameter ValuesOf(const TransformationParameter& from, const std::string& model) {
  TransformationParameter values;
  if (from.has_scale()) values.set_scale(from.scale());
  *values.mutable_mean_value() = from.mean_value();
  *values.mutable_std_value() = from.std_value();
  if (from.mean_file().empty()) return values;
  // Images are resized and cropped, so the mean of each channel stands for the mean image.
  const MeanImage mean = ReadMean(Beside(model, from.mean_file()));
  const int64_t pixels = mean.shape.count() / mean.shape[0];
  for (int64_t c = 0; c < mean.shape[0]; ++c) {
    const auto begin = mean.values.begin() + c * pixels;
    values.add_mean_value(static_cast<float>(std::accumulate(begin, begin + pixels, 0.0) / pixels));
  }
  return values;
}

Model ReadModel(const std::string& path) {
  Model model;
  model.file = ReadNetFile(path);
  model.classification = FindClassification(model.file, path);
  model.batch = BatchOf(model.file.net);
  std::error_code ignored;
  const fs::path folder = fs::path(path).parent_path();
  std::optional<NetInputSize> input = model.classification.input;
  // The deploy net knows the number of channels, which a crop_size does not say.
  const std::string deploy = (folder / "deploy.prototxt").string(), solver = (folder / "solver.prototxt").string();
  if (fs::exists(deploy, ignored)) {
    const Classification other = FindData(ReadNetFile(deploy), deploy);
    if (other.input) input = other.input;
    if (!model.classification.test_transform) model.classification.test_transform = other.test_transform;
  }
  if (fs::exists(solver, ignored)) model.solver = ReadSolverFile(solver);
  if (!input) {
    throw UserError({path, 0, 0},
                    "does not say how large its images are: neither a crop_size, nor an Input layer here or in "
                    "deploy.prototxt beside it; set transform_param { crop_size: ... } in its data layers");
  }
  if (input->channels != 1 && input->channels != 3) {
    throw UserError({path, 0, 0},
                    "takes images of " + std::to_string(input->channels) + " channels; image files have 1 or 3");
  }
  model.input = *input;
  if (model.classification.test_transform) {
    model.transform = ValuesOf(*model.classification.test_transform, path);
  }
  return model;
}

// Small images show the whole object already; larger ones are seen as Caffe's ImageNet nets see them, 224 of 256.
int ShorterSide(int side) { return side < 64 ? side : static_cast<int>(std::lround(side * 8.0 / 7)); }

TransformationParameter TestTransform(const Model& model) {
  TransformationParameter transform = model.transform;
  if (model.input.height == model.input.width) {
    transform.set_resize_shorter_side(static_cast<uint32_t>(ShorterSide(model.input.height)));
    transform.set_crop_size(static_cast<uint32_t>(model.input.height));
  } else {
    transform.set_resize_height(static_cast<uint32_t>(model.input.height));
    transform.set_resize_width(static_cast<uint32_t>(model.input.width));
  }
  (model.input.channels == 1 ? transform.set_force_gray(true) : transform.set_force_color(true));
  return transform;
}

// Photographs are mirrored and cut at random; drawings and digits, in grey, only where the model was trained so.
TransformationParameter TrainTransform(const Model& model, const TransformationParameter& test, bool augment) {
  TransformationParameter transform = test;
  if (!augment) return transform;
  const bool photographs = model.input.channels == 3;
  const auto& trained = model.classification.train_transform;
  if (photographs || (trained && trained->mirror())) transform.set_mirror(true);
  if (photographs && test.crop_size() > 0) transform.mutable_random_resized_crop()->set_min_area(0.4f);
  return transform;
}

LayerParameter DataLayer(const Model& model, Phase phase, const TransformationParameter& transform,
                         const std::string& source, const std::string& root, bool database, int batch) {
  LayerParameter layer;
  layer.set_name("data");
  layer.set_type(database ? "Data" : "ImageData");
  layer.add_top(model.classification.data);
  layer.add_top(model.classification.label);
  layer.add_include()->set_phase(phase);
  *layer.mutable_transform_param() = transform;
  if (database) {
    DataParameter* param = layer.mutable_data_param();
    param->set_source(source);
    param->set_backend(DataParameter::LMDB);
    param->set_batch_size(static_cast<uint32_t>(batch));
    if (phase == TRAIN) param->set_shuffle(true);
  } else {
    ImageDataParameter* param = layer.mutable_image_data_param();
    param->set_source(source);
    param->set_root_folder(root);
    param->set_batch_size(static_cast<uint32_t>(batch));
    if (phase == TRAIN) param->set_shuffle(true);
    if (model.input.channels == 1) param->set_is_color(false);
  }
  return layer;
}

// Instead of every record of an epoch once.
void BalanceClasses(LayerParameter* data) {
  const auto balance = [](auto* param) {
    param->clear_shuffle();
    param->set_balance_classes(true);
  };
  data->has_data_param() ? balance(data->mutable_data_param()) : balance(data->mutable_image_data_param());
}

// Of validation: the largest by which the fewest images count twice.
int ValidationBatch(int64_t count, int most) {
  const auto surplus = [count](int64_t batch) { return (batch - count % batch) % batch; };
  const int64_t largest = std::min<int64_t>(count, most);
  int64_t best = largest;
  for (int64_t batch = largest; batch >= 8; --batch) {
    if (surplus(batch) < surplus(best)) best = batch;
  }
  return static_cast<int>(best);
}

double LearningRate(const RecipeRequest& request, const Model& model) {
  if (request.learning_rate) return *request.learning_rate;
  if (!model.solver || !model.solver->solver.has_base_lr()) return 0.001;  // "multifixed" has none
  return model.solver->solver.base_lr() * (request.weights.empty() ? 1 : kFineTuningRate);
}

struct Batches {
  int train = 1, validation = 1;
  int64_t train_iterations = 1;  // of an epoch
};

std::string SolverText(const RecipeRequest& request, const Model& model, const Batches& batches) {
  const SolverParameter* own = model.solver ? &model.solver->solver : nullptr;
  const int64_t epoch = batches.train_iterations;
  std::string text = (request.weights.empty() ? "# Training " : "# Fine-tuning ") + request.model + ". An epoch is " +
                     std::to_string(epoch) + " iterations of " + std::to_string(batches.train) + " images.\n";
  text += "net: " + Quoted(request.output + "/train_val.prototxt") + "\n";
  if (!request.weights.empty()) text += "weights: " + Quoted(request.weights) + "\n";
  text += "\n";
  text += "# All validation images after each epoch; the best parameters are in snapshots/model_best.caffemodel.\n";
  text += "in_epochs { test_iter: 1 }\n";
  text += "test_interval: " + std::to_string(epoch) + "\n";
  text += "best { output: \"accuracy\"" +
          (request.patience > 0 ? " patience: " + std::to_string(request.patience) : std::string()) + " }\n\n";
  text += "# The rate falls to 0 at the end. Layers with other classes than before learn faster (their lr_mult).\n";
  text += "base_lr: " + FormatNumber(LearningRate(request, model)) + "\n";
  text += "lr_policy: \"poly\"\npower: 1\n";
  text += "max_iter: " + std::to_string(epoch * request.epochs) + "\n";
  if (own && own->has_type() && own->type() != "SGD") {
    text += "type: " + Quoted(own->type()) + "\n";
    if (own->has_momentum()) text += "momentum: " + FormatNumber(own->momentum()) + "\n";
    if (own->has_momentum2()) text += "momentum2: " + FormatNumber(own->momentum2()) + "\n";
  } else {
    text += "momentum: " + FormatNumber(own && own->has_momentum() ? own->momentum() : 0.9) + "\n";
  }
  text += "weight_decay: " + FormatNumber(own && own->has_weight_decay() ? own->weight_decay() : 0.0005) + "\n";
  text += "random_seed: " + std::to_string(request.seed) + "\n\n";
  const int64_t display = std::max<int64_t>(1, epoch / 4);
  text += "display: " + std::to_string(display) + "\naverage_loss: " + std::to_string(display) + "\n";
  text += "snapshot: " + std::to_string(epoch) + "\nsnapshot_keep: 2\n";
  text += "snapshot_prefix: " + Quoted(SnapshotPrefixIn(request.output)) + "\n";
  text += "solver_mode: CPU\n";
  if (request.precision != Precision::kF32) {
    const bool halves = request.precision == Precision::kFP16;
    text += std::string("precision: ") +
            (halves                                  ? "FP16"
             : request.precision == Precision::kBF16 ? "BF16"
                                                     : "TF32") +
            "\n";
  }
  return text;
}

std::string ListText(const ImageList& list) {
  std::string text;
  for (const ImageList::Entry& entry : list.entries) text += entry.path + " " + std::to_string(entry.label) + "\n";
  return text;
}

Batches BatchesOf(const RecipeRequest& request, const Model& model, const Dataset& dataset) {
  Batches batches;
  const auto quarter = static_cast<int>(std::max<int64_t>(1, dataset.train_count / 4));
  batches.train = request.batch > 0 ? request.batch : std::min({model.batch, 64, quarter});
  batches.train_iterations = (dataset.train_count + batches.train - 1) / batches.train;
  batches.validation = ValidationBatch(dataset.validation_count, 64);
  return batches;
}

}  // namespace

std::map<std::string, std::string> MakeRecipe(const RecipeRequest& request, const Dataset& dataset,
                                              const WeightsFiles& weights, std::vector<Diagnostic>* warnings) {
  const Model model = ReadModel(request.model);
  const TransformationParameter& values = model.transform;
  if (warnings && !values.has_scale() && values.mean_value_size() == 0 && values.std_value_size() == 0) {
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::kWarning;
    warning.where = {request.model, 0, 0};
    warning.message =
        "does not say how values are made ready, so the net gets bytes from 0 to 255; if it was trained otherwise, add "
        "transform_param (mean_value, std_value, scale) to its Input or data layer";
    warnings->push_back(std::move(warning));
  }
  if (dataset.channels > 0 && dataset.channels != model.input.channels) {
    throw UserError(Location{dataset.train_path}, "holds images of " + std::to_string(dataset.channels) +
                                                      " channel(s), but the net takes " +
                                                      std::to_string(model.input.channels) + "; make the database " +
                                                      (model.input.channels == 1 ? "with" : "without") + " --gray");
  }
  const Batches batches = BatchesOf(request, model, dataset);
  const TransformationParameter test = TestTransform(model);
  const bool database = dataset.database;
  NewNet wanted;
  wanted.name = model.file.net.name().empty() ? "fine_tuned" : model.file.net.name() + "_fine_tuned";
  wanted.classes = static_cast<int>(dataset.labels.size());
  wanted.frozen_until = request.frozen_until;
  if (request.weights.empty()) wanted.classifier_rate = 1;
  const std::string train_source = database ? dataset.train_path : request.output + "/train.txt";
  const std::string validation_source = database ? dataset.validation_path : request.output + "/val.txt";
  wanted.data = {
      DataLayer(model, TRAIN, TrainTransform(model, test, request.augment), train_source, dataset.train_list.root,
                database, batches.train),
      DataLayer(model, TEST, test, validation_source, dataset.validation_list.root, database, batches.validation)};
  if (request.balance_classes) BalanceClasses(&wanted.data[0]);
  const NetParameter net = MakeTrainNet(model.file, model.classification, wanted, weights.layers());
  std::vector<std::string> names;
  for (const LayerParameter& layer : net.layer()) names.push_back(layer.name());
  // Else the solver would say so, once all files are there.
  if (const std::string unused = weights.FindUnused(names); !unused.empty()) {
    throw UserError(Location{unused, 0, 0}, DescribeUnused(request.model + " but its classifier"));
  }

  std::map<std::string, std::string> files;
  files["train_val.prototxt"] = "# " + request.model + " for " + std::to_string(dataset.labels.size()) +
                                " classes; solver.prototxt trains it.\n" + TextOf(net);
  files["deploy.prototxt"] =
      "# The same net for use: crema predict --model=deploy.prototxt --labels=labels.txt \\\n"
      "#   --weights=snapshots/model_best.caffemodel IMAGE...\n" +
      TextOf(MakeDeployNet(net, model.classification, model.input, test, 1));
  files["solver.prototxt"] = SolverText(request, model, batches);
  for (const std::string& label : dataset.labels) files["labels.txt"] += label + "\n";
  if (!database) {
    files["train.txt"] = ListText(dataset.train_list);
    files["val.txt"] = ListText(dataset.validation_list);
  }
  return files;
}

}  // namespace crema
