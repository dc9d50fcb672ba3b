#include "darknet/net_reader.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "darknet/section_table.h"

namespace crema::darknet {

namespace {

constexpr float kPixelScale = 1.0F / 255;
constexpr float kGrey = 128;  // Darknet's is half of its range
// As Darknet's programs have them where nothing is said.
constexpr float kOverlap = 0.45F, kLeastScore = 0.01F;

bool IsNet(const std::string& kind) { return kind == "net" || kind == "network"; }

// Of every section, what the file has of its weights.
void ReadLoading(Settings* settings) {
  settings->Only("dontload", 0, "a section whose weights are not in the file");
  settings->Only("dontloadscales", 0, "normalisation that is not in the file");
  settings->Only("numload", 0, "filters that are not in the file");
}

// Kinds that Darknet has and crema does not: their names are not misspelt.
std::string SuggestionFor(const std::string& kind) {
  static const std::set<std::string> known = {
      "activation", "batchnorm", "contrastive",   "conv_lstm",      "crnn",     "crop",     "deconv",
      "detection",  "empty",     "gru",           "Gaussian_yolo",  "history",  "implicit", "iseg",
      "l2norm",     "local",     "local_avg",     "local_avgpool",  "logistic", "lrn",      "lstm",
      "rnn",        "silence",   "normalization", "deconvolutional"};
  return known.count(kind) > 0 ? "" : DidYouMean(kind, SectionNames());
}

// What both of YOLO's messages have.
template <typename Param>
void SetObjects(const Grid& grid, Param* param) {
  param->set_num_classes(static_cast<uint32_t>(grid.classes));
  param->set_num_box(static_cast<uint32_t>(grid.mask.size()));
  param->set_confidence_threshold(kLeastScore);
  param->set_nms_threshold(kOverlap);
  param->set_each_class(true);
  param->mutable_biases()->Add(grid.anchors.begin(), grid.anchors.end());
}

LayerParameter LayerOfRegion(const Grid& grid) {
  LayerParameter layer = LayerOf("YoloDetectionOutput");
  SetObjects(grid, layer.mutable_yolo_detection_output_param());
  return layer;
}

// Whether one layer can be told of both.
bool FitTogether(const Grid& grid, const Grid& first) {
  return grid.classes == first.classes && grid.anchors == first.anchors && grid.mask.size() == first.mask.size() &&
         grid.new_coords == first.new_coords;
}

LayerParameter LayerOfYolo(const std::vector<Grid>& grids) {
  LayerParameter layer = LayerOf("Yolov3DetectionOutput");
  Yolov3DetectionOutputParameter* param = layer.mutable_yolov3_detection_output_param();
  SetObjects(grids[0], param);
  param->set_mask_group_num(static_cast<uint32_t>(grids.size()));
  if (grids[0].new_coords) param->set_new_coords(true);
  const bool stretched = std::any_of(grids.begin(), grids.end(), [](const Grid& grid) { return grid.scale_x_y != 1; });
  for (const Grid& grid : grids) {
    for (const int64_t anchor : grid.mask) param->add_mask(static_cast<uint32_t>(anchor));
    param->add_anchors_scale(static_cast<uint32_t>(grid.pixels));
    if (stretched) param->add_scale_x_y(grid.scale_x_y);
  }
  return layer;
}

// What both losses have; learnt: how.
template <typename Param>
void SetLoss(const Grid& grid, const Param& learnt, Param* param, LayerParameter* layer) {
  layer->set_name(grid.name);
  layer->add_bottom(grid.blob);
  layer->add_top(grid.name);
  *param = learnt;
  param->set_num_class(static_cast<uint32_t>(grid.classes));
  param->set_num(static_cast<uint32_t>(grid.mask.size()));
  param->mutable_biases()->Add(grid.anchors.begin(), grid.anchors.end());
}

LayerParameter LossOfRegion(const Grid& grid) {
  LayerParameter layer = LayerOf("RegionLoss");
  SetLoss(grid, grid.region_learnt, layer.mutable_region_loss_param(), &layer);
  return layer;
}

LayerParameter LossOfYolo(const Grid& grid) {
  LayerParameter layer = LayerOf("Yolov3");
  Yolov3Parameter* param = layer.mutable_yolov3_param();
  SetLoss(grid, grid.learnt, param, &layer);
  for (const int64_t anchor : grid.mask) param->add_mask(static_cast<uint32_t>(anchor));
  param->set_anchors_scale(static_cast<uint32_t>(grid.pixels));
  if (grid.scale_x_y != 1) param->set_scale_x_y(grid.scale_x_y);
  if (grid.new_coords) param->set_new_coords(true);
  return layer;
}

}  // namespace

NetReader::NetReader(const std::vector<CfgSection>& sections, std::string path, const DarknetImportOptions& options)
    : sections_(sections), path_(std::move(path)), options_(options) {}

LayerShapes NetReader::Append(LayerParameter layer, const std::vector<Shape>& bottoms, const Location& where) {
  LayerShapes shapes = SetUpLayer(layer, bottoms, where);
  for (int i = 0; i < layer.top_size(); ++i) shapes_[layer.top(i)] = shapes.tops[static_cast<size_t>(i)];
  *result_.net.add_layer() = std::move(layer);
  return shapes;
}

void NetReader::ReadNet() {
  if (!IsNet(sections_[0].kind)) {
    throw UserError({path_, sections_[0].line, 0},
                    "begins with [" + Printable(sections_[0].kind) + "]; a .cfg of Darknet begins with [net]");
  }
  Settings settings(sections_[0], path_, &problems_);
  const int64_t height = settings.Int("height", 0, 1, kMostExtent), width = settings.Int("width", 0, 1, kMostExtent),
                channels = settings.Int("channels", 0, 1, kMostExtent);
  if (options_.data.empty()) {
    IgnoreTraining(&settings);
  } else {
    training_ = ReadTraining(&settings, &result_.notes);
  }
  const bool keeps_proportions = settings.Int("letter_box", 0, 0, 1) != 0;
  for (Diagnostic& warning : settings.Unknown(&warned_)) result_.notes.push_back(std::move(warning));
  if (problems_.has_errors()) return;
  if (height == 0 || width == 0 || channels == 0) {
    problems_.Error(settings.where(), "[net] says no image; give it height, width and channels");
    return;
  }
  LayerParameter layer = LayerOf("Input");
  layer.set_name("data");
  layer.add_top("data");
  input_ = {"data", {options_.batch, channels, height, width}};
  BlobShape* shape = layer.mutable_input_param()->add_shape();
  for (const int64_t extent : input_.shape.dims()) shape->add_dim(extent);
  layer.mutable_transform_param()->set_scale(kPixelScale);
  if (keeps_proportions) {
    ResizeParameter* const resize = layer.mutable_transform_param()->mutable_resize_param();
    resize->set_resize_mode(ResizeParameter::FIT_LARGE_SIZE_AND_PAD);
    resize->set_height(static_cast<uint32_t>(height));
    resize->set_width(static_cast<uint32_t>(width));
    resize->add_pad_value(kGrey);
  }
  result_.inputs.push_back({input_.blob, input_.shape});
  Append(std::move(layer), {}, settings.where());
}

void NetReader::ReadSection(int index) {
  const CfgSection& section = sections_[static_cast<size_t>(index) + 1];
  const SectionKind* kind = FindSectionKind(section.kind);
  if (kind == nullptr) {
    problems_.Error(
        {path_, section.line, 0},
        "[" + Printable(section.kind) + "] " +
            (IsNet(section.kind) ? "stands in the middle of the file, but must be its first section"
                                 : "is no kind of section that crema can read" + SuggestionFor(section.kind)));
    return;
  }
  Settings settings(section, path_, &problems_);
  ReadLoading(&settings);
  SectionLearning learning;
  if (options_.data.empty()) {
    IgnoreSectionLearning(&settings);
  } else {
    learning = ReadSectionLearning(&settings, training_.solver.max_iter(), &result_.notes);
  }
  const int first_layer = result_.net.layer_size();
  SectionReader reader(*this, index, &settings);
  reader.set_kind(kind->layer);
  try {
    kind->read(reader);
    SetRates(learning, first_layer);
    for (Diagnostic& warning : settings.Unknown(&warned_)) result_.notes.push_back(std::move(warning));
  } catch (const FailedBefore&) {
    CREMA_CHECK(problems_.has_errors()) << reader.Describe();
  } catch (const UserError& error) {
    for (const Diagnostic& problem : error.diagnostics()) {
      problems_.Error(settings.where(), "[" + section.kind + "]: " + problem.message);
    }
  }
}

void NetReader::SetRates(const SectionLearning& learning, int first_layer) {
  const auto& layers = result_.net.layer();
  for (int i = learning.stops_before ? 0 : first_layer; i < layers.size(); ++i) {
    if (learning.stops_before || learning.rate != 1) {
      training_.rates[layers[i].name()] = learning.stops_before ? 0 : learning.rate;
    }
  }
}

void NetReader::AddDetection() {
  if (yolo_.empty() && region_.empty()) return;
  if (region_.size() + (yolo_.empty() ? 0 : 1) > 1) {
    problems_.Error(region_.back().where, "[region] must be the only section that finds objects");
    return;
  }
  const std::vector<Grid>& grids = region_.empty() ? yolo_ : region_;
  for (const Grid& grid : grids) {
    if (FitTogether(grid, grids[0])) continue;
    problems_.Error(
        grid.where,
        "[yolo]: its classes, anchors, number of masks and new_coords must be those of the first [yolo], in line " +
            std::to_string(grids[0].where.line));
    return;
  }
  LayerParameter layer = region_.empty() ? LayerOfYolo(grids) : LayerOfRegion(grids[0]);
  layer.set_name("detection_out");
  layer.add_top("detection_out");
  std::vector<Shape> bottoms;
  for (const Grid& grid : grids) {
    layer.add_bottom(grid.blob);
    bottoms.push_back(shapes_.at(grid.blob));
  }
  try {
    Append(std::move(layer), bottoms, grids[0].where);
  } catch (const UserError& error) {
    for (const Diagnostic& problem : error.diagnostics()) problems_.Error(grids[0].where, problem.message);
  }
}

void NetReader::NoteFrozenAtRandom(ImportedNet* imported) const {
  std::set<std::string> filled;
  for (const LayerParameter& layer : imported->weights.layer()) filled.insert(layer.name());
  for (const LayerParameter& layer : imported->net.layer()) {
    const auto rate = training_.rates.find(layer.name());
    const bool learns = layer.type() == "Convolution" || layer.type() == "InnerProduct";
    if (!learns || rate == training_.rates.end() || rate->second > 0 || filled.count(layer.name()) > 0) continue;
    imported->notes.push_back({Diagnostic::Severity::kWarning,
                               {path_, 0, 0},
                               "layer \"" + layer.name() +
                                   "\" is frozen, but has no weights, so that it stays as it begins, at random: give "
                                   "weights that go as far, or remove what freezes it"});
    return;
  }
}

DarknetTraining NetReader::Training(const NetParameter& deploy) const {
  std::vector<LayerParameter> losses;
  for (const Grid& grid : yolo_) losses.push_back(LossOfYolo(grid));
  for (const Grid& grid : region_) losses.push_back(LossOfRegion(grid));
  return {TrainNetOf(deploy, losses, training_, options_.data), training_.solver};
}

void NetReader::ListOutputs() {
  std::vector<std::string> unread;  // in the order of the file
  for (const LayerParameter& layer : result_.net.layer()) {
    const auto& bottoms = layer.bottom();
    std::erase_if(unread, [&](const std::string& blob) {
      return std::find(bottoms.begin(), bottoms.end(), blob) != bottoms.end();
    });
    unread.insert(unread.end(), layer.top().begin(), layer.top().end());
  }
  for (const std::string& blob : unread) result_.outputs.push_back({blob, shapes_.at(blob)});
}

ImportedNet NetReader::Read() {
  ReadNet();
  const int count = static_cast<int>(sections_.size()) - 1;
  if (count == 0) problems_.Error({path_, sections_[0].line, 0}, "has no section behind [net]");
  for (int i = 0; i < count && !problems_.enough(); ++i) {
    results_.emplace_back();
    ReadSection(i);
  }
  if (!problems_.has_errors()) AddDetection();
  if (!problems_.has_errors() && !options_.data.empty() && yolo_.empty() && region_.empty()) {
    problems_.Error({path_, sections_.back().line, 0},
                    std::string("has no [yolo] or [region] that learns objects") +
                        (classifies_ ? "; leave out --data, and train the net with crema finetune" : ""));
  }
  problems_.ThrowIfErrors();
  ListOutputs();
  LayerParameter* input = result_.net.mutable_layer(0);
  // As Darknet classifies: the middle of an image whose shorter side is as long as the net's input.
  const Shape& shape = input_.shape;
  if (classifies_ && yolo_.empty() && region_.empty() && shape[2] == shape[3]) {
    input->mutable_transform_param()->set_crop_size(static_cast<uint32_t>(shape[2]));
    input->mutable_transform_param()->clear_resize_param();
  }
  result_.net.set_name(std::filesystem::path(path_).stem().string());
  result_.nodes = count + 1;
  return std::move(result_);
}

}  // namespace crema::darknet
