#include "finetune/net_surgery.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include "base/suggest.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "inference/scoring_net.h"

namespace crema {

namespace {

bool IsOneOf(const std::string& type, std::initializer_list<const char*> types) {
  return std::any_of(types.begin(), types.end(), [&](const char* other) { return type == other; });
}

bool GivesData(const LayerParameter& layer) {
  return IsOneOf(layer.type(),
                 {"Data", "AnnotatedData", "ImageData", "DenseImageData", "ImageSegData", "ImageLabelmapData",
                  "VideoData", "HDF5Data", "MemoryData", "WindowData", "DummyData", "Input"});
}

bool MakesScores(const LayerParameter& layer) {
  return IsOneOf(layer.type(), {"InnerProduct", "Convolution", "MarginInnerProduct"});
}

// Whose top 0 holds one value for each score of its bottom 0, by parameters that do not depend on the classes.
bool PassesScores(const LayerParameter& layer) {
  if (layer.type() == "Scale") return layer.bottom_size() == 1 && layer.scale_param().num_axes() == 0;
  return IsOneOf(layer.type(),
                 {"ReLU", "Dropout", "Pooling", "Flatten", "Reshape", "Softmax", "Split", "Power", "LabelSpecificAdd"});
}

bool HasTop(const LayerParameter& layer, const std::string& blob) {
  return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
}

bool IsIn(const LayerParameter& layer, Phase phase) {
  const auto names_other = [phase](const NetStateRule& rule) { return rule.has_phase() && rule.phase() != phase; };
  const auto names = [phase](const NetStateRule& rule) { return rule.has_phase() && rule.phase() == phase; };
  const bool left_out = std::any_of(layer.exclude().begin(), layer.exclude().end(), names);
  const bool other_only =
      layer.include_size() > 0 && std::all_of(layer.include().begin(), layer.include().end(), names_other);
  return !left_out && !other_only;
}

// A Softmax at the end of the net, where nobody but a measure reads it, unlike the one within attention.
bool IsEndSoftmax(const NetParameter& net, int index) {
  const LayerParameter& layer = net.layer(index);
  if (layer.type() != "Softmax" || layer.top_size() == 0) return false;
  return std::none_of(net.layer().begin() + index + 1, net.layer().end(), [&](const LayerParameter& later) {
    return later.type() != "Accuracy" &&
           std::find(later.bottom().begin(), later.bottom().end(), layer.top(0)) != later.bottom().end();
  });
}

// Whether a layer is in the net that is trained or in the one that is tested.
bool IsInEither(const NetParameter& net, const LayerParameter& layer) {
  return TakesPart(StateOf(net, {.phase = TRAIN}), layer) || TakesPart(StateOf(net, {.phase = TEST}), layer);
}

Location Where(const NetFile& file, int layer, const std::string& path) {
  return file.source ? file.source->Layer(layer) : Location{path};
}

// The layer in front of `end` that makes the scores in `blob`.
const LayerParameter& Classifier(const NetFile& file, int end, std::string blob, const std::string& path) {
  const NetParameter& net = file.net;
  std::string by_stage;  // a layer that makes the blob, but takes no part
  for (int i = end - 1; i >= 0; --i) {
    const LayerParameter& layer = net.layer(i);
    if (!HasTop(layer, blob)) continue;
    if (!IsInEither(net, layer)) {
      by_stage = layer.name();
      continue;
    }
    if (MakesScores(layer)) return layer;
    if (!PassesScores(layer) || layer.bottom_size() == 0) {
      throw UserError(Where(file, i, path),
                      "the scores of layer \"" + net.layer(end).name() + "\" come from layer \"" + layer.name() +
                          "\" (" + layer.type() +
                          "); only those of an InnerProduct, Convolution or MarginInnerProduct can be made for other "
                          "classes: put one behind it");
    }
    blob = layer.bottom(0);
    by_stage.clear();
  }
  throw UserError(Where(file, end, path),
                  "nothing makes the blob \"" + blob + "\" that layer \"" + net.layer(end).name() + "\" reads" +
                      (by_stage.empty() ? ""
                                        : "; layer \"" + by_stage +
                                              "\" does in other stages only, and fine-tuning chooses none: name "
                                              "the one that is meant in the file, state { stage: ... }"));
}

bool IsMixUp(const LayerParameter& layer) {
  return layer.type() == "MixUp" && layer.bottom_size() == 2 && layer.top_size() == 2;
}

// The labels in the blob that the loss before layer `end` learns, or those that its soft targets are made of.
std::string LabelsOf(const NetParameter& net, int end, std::string blob, const std::string& path) {
  for (int i = end - 1; i >= 0; --i) {
    const LayerParameter& layer = net.layer(i);
    if (!HasTop(layer, blob)) continue;
    if (layer.type() == "Softmax") {
      throw UserError({path, 0, 0}, "layer \"" + net.layer(end).name() + "\" learns what layer \"" + layer.name() +
                                        "\" (Softmax) says, which knows nothing of other classes; give a net whose "
                                        "loss reads labels");
    }
    if (IsMixUp(layer) && layer.top(1) == blob) blob = layer.bottom(1);
  }
  return blob;
}

void ReadData(const LayerParameter& layer, Classification* found) {
  if (layer.top_size() == 0) return;
  found->data = layer.top(0);
  if (layer.top_size() > 1) found->label = layer.top(1);
  const TransformationParameter& transform = layer.transform_param();
  if (IsIn(layer, TRAIN) && layer.type() != "Input") found->train_transform = transform;
  if (IsIn(layer, TEST)) found->test_transform = transform;
  if (layer.type() == "Input" && layer.input_param().shape_size() > 0) {
    const BlobShape& shape = layer.input_param().shape(0);
    if (shape.dim_size() == 4) {
      found->input = {static_cast<int>(shape.dim(1)), static_cast<int>(shape.dim(2)), static_cast<int>(shape.dim(3))};
    }
  } else if (transform.crop_size() > 0 && !found->input) {
    const int side = static_cast<int>(transform.crop_size());
    found->input = {transform.force_gray() || transform.mean_value_size() == 1 ? 1 : 3, side, side};
  }
}

// Learning rates of all blobs, multiplied; the usual 1 and 2 where the file gives none.
void MultiplyRates(float factor, int blobs, LayerParameter* layer) {
  while (layer->param_size() < blobs) {
    ParamSpec* param = layer->add_param();
    if (layer->param_size() == 2) {
      param->set_lr_mult(2);
      param->set_decay_mult(0);
    }
  }
  for (ParamSpec& param : *layer->mutable_param()) param.set_lr_mult(param.lr_mult() * factor);
}

void SetClasses(int classes, LayerParameter* layer) {
  const auto count = static_cast<uint32_t>(classes);
  if (layer->type() == "InnerProduct") layer->mutable_inner_product_param()->set_num_output(count);
  if (layer->type() == "Convolution") layer->mutable_convolution_param()->set_num_output(count);
  if (layer->type() == "MixUp") layer->mutable_mixup_param()->set_num_classes(count);
  if (layer->type() == "MarginInnerProduct") layer->mutable_margin_inner_product_param()->set_num_output(count);
  if (layer->type() == "CenterLoss") layer->mutable_center_loss_param()->set_num_output(count);
}

int BlobsOfClassifier(const LayerParameter& layer) {
  if (layer.type() == "MarginInnerProduct") return 1;
  const bool bias =
      layer.type() == "InnerProduct" ? layer.inner_product_param().bias_term() : layer.convolution_param().bias_term();
  return bias ? 2 : 1;
}

void Freeze(int blobs, LayerParameter* layer) {
  while (layer->param_size() < blobs) layer->add_param();
  for (ParamSpec& param : *layer->mutable_param()) param.set_lr_mult(0);
  // Its statistics belong to the parameters below, which do not change.
  if (layer->type() == "BatchNorm") layer->mutable_batch_norm_param()->set_use_global_stats(true);
  if (layer->type() == "BN" && blobs > 2) layer->mutable_bn_param()->set_frozen(true);
}

int IndexOf(const NetParameter& net, const std::string& name) {
  for (int i = 0; i < net.layer_size(); ++i) {
    if (net.layer(i).name() == name) return i;
  }
  return -1;
}

int LastFrozen(const NetParameter& net, const Classification& from, const std::string& name) {
  if (name.empty()) return -1;
  const int index = IndexOf(net, name);
  if (index < 0) {
    std::vector<std::string> names;
    for (const LayerParameter& layer : net.layer()) names.push_back(layer.name());
    throw UserError("--freeze=until:" + name + ": the net has no layer of this name" + DidYouMean(name, names));
  }
  for (const std::string& classifier : from.classifiers) {
    if (IndexOf(net, classifier) <= index) {
      throw UserError("--freeze=until:" + name + " would freeze layer \"" + classifier +
                      "\", which must learn the new classes; name a layer below it");
    }
  }
  return index;
}

// Those of the classes before.
void ClearClassWeights(LossParameter* loss) {
  loss->clear_class_weight();
  loss->clear_weight_by_label_freqs();
  loss->clear_class_weighting();
}

// Weights of items or labels are of the data before.
void RemoveWeights(LayerParameter* loss) {
  if (loss->bottom_size() <= 2) return;
  loss->mutable_bottom()->RemoveLast();
  if (loss->propagate_down_size() > 2) loss->mutable_propagate_down()->Truncate(2);
  if (loss->type() == "WeightedSoftmaxWithLoss") loss->set_type("SoftmaxWithLoss");
}

}  // namespace

Classification FindData(const NetFile& file, const std::string& path) {
  Classification found;
  found.label = "label";
  for (const LayerParameter& layer : file.net.layer()) {
    if (GivesData(layer) && IsInEither(file.net, layer)) ReadData(layer, &found);
  }
  if (found.data.empty()) {
    throw UserError({path, 0, 0}, "has no layer that gives it images (Data, ImageData, Input)");
  }
  return found;
}

void RefuseDetector(const NetFile& file, const std::string& path) {
  static const std::set<std::string> kParts = {
      "AnchorTarget", "DetectNetTransformation", "MultiBoxLoss", "Proposal", "ProposalTarget", "RegionLoss", "Yolov3"};
  const NetParameter& net = file.net;
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    if (!MakesObjects(layer) && kParts.count(layer.type()) == 0) continue;
    throw UserError(file.source ? file.source->Layer(i) : Location{path, 0, 0},
                    "layer \"" + layer.name() + "\" (" + layer.type() +
                        ") finds objects, while crema finetune makes nets that classify: train a detector with train "
                        "--solver=FILE --weights=FILE, and for other classes give the layers of its scores other names "
                        "first (docs/detection.md)");
  }
}

Classification FindClassification(const NetFile& file, const std::string& path) {
  RefuseDetector(file, path);
  Classification found = FindData(file, path);
  const NetParameter& net = file.net;
  bool has_loss = false;
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    const bool loss = IsSoftmaxLoss(layer);
    if ((!loss && (has_loss || !IsEndSoftmax(net, i))) || layer.bottom_size() == 0) continue;
    if (!IsInEither(net, layer)) continue;
    has_loss |= loss;
    const std::string classifier = Classifier(file, i, layer.bottom(0), path).name();
    if (std::find(found.classifiers.begin(), found.classifiers.end(), classifier) == found.classifiers.end()) {
      found.classifiers.push_back(classifier);
    }
    found.scores = layer.bottom(0);
    if (loss && layer.bottom_size() > 1) found.label = LabelsOf(net, i, layer.bottom(1), path);
  }
  if (found.classifiers.empty()) {
    throw UserError(
        {path, 0, 0},
        "has neither a SoftmaxWithLoss nor a Softmax at its end: it is no net that classifies; a net that gives scores "
        "is imported with --softmax");
  }
  return found;
}

NetParameter MakeTrainNet(const NetFile& file, const Classification& from, const NewNet& wanted,
                          const std::vector<LayerWeights>& weights) {
  const NetParameter& old = file.net;
  const int last_frozen = LastFrozen(old, from, wanted.frozen_until);
  NetParameter net;
  net.set_name(wanted.name);
  if (old.has_state()) {
    *net.mutable_state() = old.state();
    net.mutable_state()->clear_phase();
  }
  for (const LayerParameter& layer : wanted.data) *net.add_layer() = layer;
  bool has_loss = false;
  int frozen = 0;  // layers
  for (int i = 0; i < old.layer_size(); ++i) {
    const LayerParameter& layer = old.layer(i);
    // One measure, of the main scores, stands at the end.
    if (GivesData(layer) || layer.type() == "Accuracy" || IsEndSoftmax(old, i) || !IsInEither(old, layer)) continue;
    LayerParameter* copy = net.add_layer();
    *copy = layer;
    copy->clear_blobs();
    has_loss |= IsSoftmaxLoss(layer);
    if (IsSoftmaxLoss(layer)) {
      ClearClassWeights(copy->mutable_loss_param());
      RemoveWeights(copy);
    }
    if (IsMixUp(layer)) SetClasses(wanted.classes, copy);
    if (layer.type() == "CenterLoss") {  // its centres are those of the classes before
      copy->set_name(layer.name() + wanted.suffix);
      SetClasses(wanted.classes, copy);
      continue;
    }
    if (std::find(from.classifiers.begin(), from.classifiers.end(), layer.name()) != from.classifiers.end()) {
      copy->set_name(layer.name() + wanted.suffix);
      SetClasses(wanted.classes, copy);
      MultiplyRates(wanted.classifier_rate, BlobsOfClassifier(layer), copy);
    }
    if (i > last_frozen) continue;
    const auto blobs =
        std::find_if(weights.begin(), weights.end(), [&](const LayerWeights& one) { return one.name == layer.name(); });
    if (blobs != weights.end() && !blobs->blobs.empty()) {
      Freeze(static_cast<int>(blobs->blobs.size()), copy);
      ++frozen;
    }
    if (blobs == weights.end() && MakesScores(layer)) {
      throw UserError("--freeze=until:" + wanted.frozen_until + " freezes layer \"" + layer.name() +
                      "\", but the weights hold nothing for it: it would stay as its filler made it");
    }
  }
  if (!wanted.frozen_until.empty() && frozen == 0) {
    throw UserError("--freeze=until:" + wanted.frozen_until +
                    " freezes nothing: no layer up to it has parameters; name one that has, or leave --freeze out");
  }
  if (!has_loss) {
    LayerParameter* loss = net.add_layer();
    loss->set_name("loss");
    loss->set_type("SoftmaxWithLoss");
    loss->add_bottom(from.scores);
    loss->add_bottom(from.label);
    loss->add_top("loss");
  }
  LayerParameter* accuracy = net.add_layer();
  accuracy->set_name("accuracy");
  accuracy->set_type("Accuracy");
  accuracy->add_bottom(from.scores);
  accuracy->add_bottom(from.label);
  accuracy->add_top("accuracy");
  accuracy->add_include()->set_phase(TEST);
  return net;
}

NetParameter MakeDeployNet(const NetParameter& train_net, const Classification& from, const NetInputSize& input,
                           const TransformationParameter& transform, int batch) {
  std::set<std::string> needed = {from.scores};
  std::vector<LayerParameter> kept;  // from the end on
  for (int i = train_net.layer_size() - 1; i >= 0; --i) {
    const LayerParameter& layer = train_net.layer(i);
    const bool used = std::any_of(layer.top().begin(), layer.top().end(),
                                  [&](const std::string& top) { return needed.count(top) > 0; });
    if (!used || GivesData(layer) || !IsIn(layer, TEST)) continue;
    kept.push_back(layer);
    if (IsMixUp(layer)) LeaveOutMixing(&kept.back());
    if (ReadsLabelsInTrainingOnly(layer)) RemoveLabels(&kept.back());
    needed.insert(kept.back().bottom().begin(), kept.back().bottom().end());
  }
  NetParameter net;
  net.set_name(train_net.name());
  LayerParameter* data = net.add_layer();
  data->set_name(from.data);
  data->set_type("Input");
  data->add_top(from.data);
  *data->mutable_transform_param() = transform;
  BlobShape* shape = data->mutable_input_param()->add_shape();
  for (const int extent : {batch, input.channels, input.height, input.width}) shape->add_dim(extent);
  for (auto layer = kept.rbegin(); layer != kept.rend(); ++layer) {
    LayerParameter* copy = net.add_layer();
    *copy = *layer;
    // Learning rates, which nothing reads here; names say which parameters are one.
    const bool shared = std::any_of(copy->param().begin(), copy->param().end(),
                                    [](const ParamSpec& param) { return !param.name().empty(); });
    if (!shared) copy->clear_param();
    copy->clear_include();
    copy->clear_exclude();
  }
  LayerParameter* probabilities = net.add_layer();
  probabilities->set_name("prob");
  probabilities->set_type("Softmax");
  probabilities->add_bottom(from.scores);
  probabilities->add_top("prob");
  return net;
}

}  // namespace crema
