#include "darknet/training.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/printable.h"
#include "darknet/rates.h"
#include "import/layers.h"

namespace crema::darknet {

namespace {

// What Darknet's running statistics keep of what they were.
constexpr float kKept = 0.99F;

constexpr const char* kNetKeys =
    "B1 B2 adam batch burn_in decay eps exposure flip gamma hue learning_rate learning_rate_min max_batches momentum "
    "policy power saturation scale scales sgdr_cycle step steps subdivisions";
// Of programs, and of nets that do not look for objects.
constexpr const char* kOtherNetKeys =
    "angle aspect augment_speed center contrastive contrastive_color contrastive_jit_flip inputs label_smooth_eps "
    "loss_scale max_chart_loss max_crop max_ratio min_crop min_ratio notruth optimized_memory random resize_step "
    "seq_scales sequential_subdivisions sgdr_mult show_receptive_field time_steps track train try_fix_nan unsupervised "
    "use_cuda_graph workspace_size_limit_MB";
constexpr const char* kYoloKeys =
    "cls_normalizer ignore_thresh iou_loss iou_normalizer iou_thresh jitter label_smooth_eps max_delta obj_normalizer "
    "truth_thresh";
constexpr const char* kOtherYoloKeys =
    "beta_nms delta_normalizer dets_for_show dets_for_track embedding_layer map max show_details sim_thresh "
    "track_ciou_norm track_history_size";
constexpr const char* kRegionKeys =
    "bias_match class_scale coord_scale jitter map noobject_scale object_scale rescore thresh";
// Of every section: how it learns; and what only nets that classify look at.
constexpr const char* kSectionKeys = "dont_update learning_rate stopbackward train_only_bn";
constexpr const char* kOtherSectionKeys = "noloss smooth truth";
// Of programs, and without effect in every version of Darknet where a box has four numbers.
constexpr const char* kOtherRegionKeys = "absolute log mask_scale max sqrt";

// What Darknet does while training, and crema does not, where a key is not `neutral`.
struct Addition {
  const char* key;
  const char* neutral = "0";
};
constexpr Addition kNetAdditions[] = {{"adversarial_lr"},
                                      {"attention"},
                                      {"badlabels_rejection_percentage"},
                                      {"blur"},
                                      {"clip"},
                                      {"cutmix"},
                                      {"dynamic_minibatch"},
                                      {"ema_alpha"},
                                      {"equidistant_point"},
                                      {"gaussian_noise"},
                                      {"mixup"},
                                      {"mosaic"},
                                      {"mosaic_bound"},
                                      {"num_sigmas_reject_badlabels"},
                                      {"weights_reject_freq"}};
constexpr Addition kSectionAdditions[] = {{"burnin_update"}, {"clip"}, {"onlyforward"}};
constexpr Addition kYoloAdditions[] = {{"counters_per_class", ""}, {"focal_loss"}, {"iou_thresh_kind", "iou"},
                                       {"objectness_smooth"},      {"random"},     {"resize", "1"}};
constexpr Addition kRegionAdditions[] = {{"classfix"}, {"focal_loss"}, {"random"}, {"resize", "1"}};

void NoteAdditions(std::span<const Addition> additions, Settings* settings, std::vector<Diagnostic>* notes) {
  for (const auto& [key, neutral] : additions) {
    const std::string value = settings->Word(key, neutral);
    if (value == neutral || value == std::string(neutral) + ".0") continue;
    notes->push_back({Diagnostic::Severity::kWarning, settings->where(key),
                      std::string(key) + "=" + Printable(value) + " has no effect here: Darknet alone trains so"});
  }
}

void IgnoreAdditions(std::span<const Addition> additions, Settings* settings) {
  for (const Addition& addition : additions) settings->Ignore(addition.key);
}

void ReadUpdate(Settings* settings, SolverParameter* solver) {
  solver->set_momentum(settings->Number("momentum", 0.9F));
  solver->set_weight_decay(settings->Number("decay", 0.0001F));
  if (settings->Int("adam", 0, 0, 1) == 0) return;
  solver->set_type("Adam");
  solver->set_momentum(settings->Number("B1", 0.9F));
  solver->set_momentum2(settings->Number("B2", 0.999F));
  solver->set_delta(settings->Number("eps", 0.0000001F));
}

// Factors of saturation and brightness are drawn between these and their inverses. Grey images have no other colours.
void ReadColours(Settings* settings, TransformationParameter* transform) {
  const bool gray = settings->Int("channels", 3, 0, std::numeric_limits<int64_t>::max()) == 1;
  float saturation = settings->Number("saturation", 1), hue = settings->Number("hue", 0);
  const float exposure = settings->Number("exposure", 1);
  for (const char* key : {"saturation", "exposure"}) {
    if (settings->Number(key, 1) < 1) settings->Refuse(key, std::string(key) + " must be 1 or more");
  }
  if (hue < 0 || hue > 1) settings->Refuse("hue", "hue must be from 0 to 1, a whole circle of colours");
  if (gray) {
    transform->set_force_gray(true);
    saturation = 1;
    hue = 0;
  }
  if (saturation <= 1 && exposure <= 1 && hue <= 0) return;
  DistortionParameter* const distort = transform->mutable_distort_param();
  if (saturation > 1) {
    distort->set_saturation_prob(1);
    distort->set_saturation_lower(1 / saturation);
    distort->set_saturation_upper(saturation);
  }
  if (exposure > 1) {
    distort->set_contrast_prob(1);
    distort->set_contrast_lower(1 / exposure);
    distort->set_contrast_upper(exposure);
  }
  if (hue > 0) {
    constexpr float kCircle = 180;
    distort->set_hue_prob(1);
    distort->set_hue_delta(hue * kCircle);
  }
}

float ReadJitter(Settings* settings) {
  const float jitter = settings->Number("jitter", 0.2F);
  if (!(jitter >= 0 && jitter < 1)) settings->Refuse("jitter", "jitter must be in [0, 1)");
  return jitter;
}

void AddParam(float rate, float decay, LayerParameter* layer) {
  ParamSpec* const param = layer->add_param();
  param->set_lr_mult(rate);
  param->set_decay_mult(rate > 0 ? decay : 0);
}

// What a layer of a net that is used lacks for training. Darknet lets weights decay, and nothing else. The statistics
// of normalisation go on where its section is frozen, as Darknet's do.
void PrepareToTrain(float rate, LayerParameter* layer) {
  if (layer->param_size() > 0) return;  // it is frozen
  const auto prepare = [&](auto* param) {
    param->mutable_weight_filler()->set_type("msra");
    AddParam(rate, 1, layer);
    if (param->bias_term()) AddParam(rate, 0, layer);
  };
  if (layer->type() == "Convolution") {
    prepare(layer->mutable_convolution_param());
  } else if (layer->type() == "InnerProduct") {
    prepare(layer->mutable_inner_product_param());
  } else if (layer->type() == "BatchNorm") {
    layer->mutable_batch_norm_param()->set_moving_average_fraction(kKept);
  } else if (layer->type() == "Scale" && layer->bottom_size() == 1) {
    AddParam(rate, 0, layer);
    AddParam(rate, 0, layer);
  }
}

LayerParameter* AddLayer(const std::string& type, const std::string& name, NetParameter* net) {
  LayerParameter* const layer = net->add_layer();
  layer->set_name(name);
  layer->set_type(type);
  layer->add_top(name);
  return layer;
}

void AddData(Phase phase, const TrainingSettings& settings, const std::string& source, NetParameter* net) {
  LayerParameter* const layer = AddLayer("AnnotatedData", "data", net);
  layer->add_top("label");
  layer->add_include()->set_phase(phase);
  TransformationParameter* const transform = layer->mutable_transform_param();
  *transform = settings.transform;
  DataParameter* const data = layer->mutable_data_param();
  data->set_source(source);
  data->set_backend(DataParameter::LMDB);
  data->set_batch_size(static_cast<uint32_t>(settings.images));
  if (phase == TEST) {
    transform->clear_mirror();
    transform->clear_distort_param();
    return;
  }
  data->set_shuffle(true);
  // No emit_constraint: what is seen of an object is learnt wherever its middle lies, as Darknet does it.
  layer->mutable_annotated_data_param()->set_yolo_data_type(1);
  layer->mutable_annotated_data_param()->set_yolo_data_jitter(settings.jitter);
}

}  // namespace

void IgnoreTraining(Settings* settings) {
  settings->Ignore(kNetKeys);
  settings->Ignore(kOtherNetKeys);
  IgnoreAdditions(kNetAdditions, settings);
}

void IgnoreYoloLearning(Settings* settings) {
  settings->Ignore(kYoloKeys);
  settings->Ignore(kOtherYoloKeys);
  IgnoreAdditions(kYoloAdditions, settings);
}

void IgnoreRegionLearning(Settings* settings) {
  settings->Ignore(kRegionKeys);
  settings->Ignore(kOtherRegionKeys);
  IgnoreAdditions(kRegionAdditions, settings);
}

void IgnoreSectionLearning(Settings* settings) {
  settings->Ignore(kSectionKeys);
  settings->Ignore(kOtherSectionKeys);
  IgnoreAdditions(kSectionAdditions, settings);
}

TrainingSettings ReadTraining(Settings* settings, std::vector<Diagnostic>* notes) {
  constexpr int64_t kMostImages = 1 << 20;
  TrainingSettings training;
  const int64_t batch = settings->Int("batch", 1, 1, kMostImages),
                parts = settings->Int("subdivisions", 1, 1, kMostImages);
  if (batch == 1) {
    notes->push_back({Diagnostic::Severity::kWarning, settings->where("batch"),
                      "batch=1 changes the weights after each image: files are published so for testing; a training "
                      "takes batch=64 and subdivisions=16, say"});
  }
  if (batch % parts != 0) {
    settings->Refuse("subdivisions", "subdivisions=" + std::to_string(parts) + " does not divide batch=" +
                                         std::to_string(batch) + ", the images between two updates");
  } else {
    training.images = batch / parts;
  }
  SolverParameter& solver = training.solver;
  solver.set_iter_size(static_cast<int32_t>(parts));
  solver.set_max_iter(static_cast<int32_t>(settings->Int("max_batches", 0, 1, kMostIterations)));
  if (!settings->has("max_batches")) settings->Refuse("", "[net] says no max_batches, how many updates to train for");
  ReadRates(settings, &solver);
  ReadUpdate(settings, &solver);
  constexpr int32_t kOften = 1000;
  const int32_t interval = std::clamp(solver.max_iter() / 10, 1, kOften);
  solver.set_display(20);
  solver.set_average_loss(20);
  solver.set_test_interval(interval);
  solver.set_test_initialization(false);
  solver.mutable_in_epochs()->add_test_iter(1);
  solver.set_eval_type("detection");
  solver.set_ap_version("MaxIntegral");
  solver.mutable_best()->set_output("detection_eval");
  solver.set_snapshot(interval);

  if (settings->Int("flip", 1, 0, 1) != 0) training.transform.set_mirror(true);
  ReadColours(settings, &training.transform);
  NoteAdditions(kNetAdditions, settings, notes);
  IgnoreTraining(settings);
  return training;
}

SectionLearning ReadSectionLearning(Settings* settings, int64_t max_iter, std::vector<Diagnostic>* notes) {
  SectionLearning learning;
  learning.rate = settings->Number("learning_rate", 1);
  if (!(learning.rate >= 0)) {
    settings->Refuse("learning_rate",
                     "learning_rate of a section is what the one of [net] is multiplied by, 0 or more");
  }
  if (settings->Int("train_only_bn", 0, 0, 1) != 0) learning.rate = 0;
  // Updates; but stopbackward=1 is for good.
  const int64_t stopped = settings->Int("stopbackward", 0, 0, kMostIterations),
                kept = settings->Int("dont_update", 0, 0, kMostIterations);
  learning.stops_before = stopped == 1 || (stopped > 1 && stopped >= max_iter);
  if (kept > 0 && kept >= max_iter) learning.rate = 0;
  const auto note = [&](const char* key, int64_t value, const char* frozen, int64_t for_good) {
    notes->push_back({Diagnostic::Severity::kWarning, settings->where(key),
                      std::string(key) + "=" + std::to_string(value) + " has no effect here: Darknet freezes " +
                          frozen + " for the first " + std::to_string(value) + " updates alone; write " + key + "=" +
                          std::to_string(for_good) + " to freeze for good"});
  };
  if (stopped > 0 && !learning.stops_before) note("stopbackward", stopped, "this section and those before it", 1);
  if (kept > 0 && kept < max_iter) note("dont_update", kept, "this section", max_iter);
  NoteAdditions(kSectionAdditions, settings, notes);
  IgnoreSectionLearning(settings);
  return learning;
}

void ReadLearning(Settings* settings, Yolov3Parameter* learnt, float* jitter, std::vector<Diagnostic>* notes) {
  Yolov3Parameter& param = *learnt;
  const std::vector<std::string> losses = {"mse", "iou", "giou", "diou", "ciou"};
  constexpr Yolov3Parameter::IOU_LOSS kLosses[] = {Yolov3Parameter::MSE, Yolov3Parameter::IOU, Yolov3Parameter::GIOU,
                                                   Yolov3Parameter::DIOU, Yolov3Parameter::CIOU};
  const std::string loss = settings->Choice("iou_loss", "mse", losses);
  param.set_iou_loss(kLosses[std::find(losses.begin(), losses.end(), loss) - losses.begin()]);
  if (param.iou_loss() == Yolov3Parameter::MSE) {
    param.set_coord_scale(settings->Number("iou_normalizer", 1));
  } else {
    param.set_iou_normalizer(settings->Number("iou_normalizer", 0.75F));
    if (settings->has("max_delta")) param.set_max_delta(settings->Number("max_delta", 0));
  }
  param.set_thresh(settings->Number("ignore_thresh", 0.5F));
  param.set_iou_thresh(settings->Number("iou_thresh", 1));
  param.set_label_smooth_eps(settings->Number("label_smooth_eps", 0));
  param.set_object_scale(settings->Number("obj_normalizer", 1));
  param.set_noobject_scale(settings->Number("obj_normalizer", 1));
  param.set_class_scale(settings->Number("cls_normalizer", 1));
  *jitter = ReadJitter(settings);
  NoteAdditions(kYoloAdditions, settings, notes);
  settings->Only("truth_thresh", 1, "objects that are not learnt where they are found well");
  IgnoreYoloLearning(settings);
}

void ReadLearning(Settings* settings, RegionLossParameter* learnt, float* jitter, std::vector<Diagnostic>* notes) {
  RegionLossParameter& param = *learnt;
  const auto flag = [&](const char* key) { return static_cast<uint32_t>(settings->Int(key, 0, 0, 1)); };
  param.set_thresh(settings->Number("thresh", 0.5F));
  param.set_object_scale(settings->Number("object_scale", 1));
  param.set_noobject_scale(settings->Number("noobject_scale", 1));
  param.set_class_scale(settings->Number("class_scale", 1));
  param.set_coord_scale(settings->Number("coord_scale", 1));
  param.set_bias_match(flag("bias_match"));
  param.set_rescore(flag("rescore"));
  *jitter = ReadJitter(settings);
  NoteAdditions(kRegionAdditions, settings, notes);
  settings->Never("map", "other numbers of classes");
  IgnoreRegionLearning(settings);
}

NetParameter TrainNetOf(const NetParameter& deploy, const std::vector<LayerParameter>& losses,
                        const TrainingSettings& settings, const std::string& data) {
  NetParameter net;
  net.set_name(deploy.name());
  TrainingSettings prepared = settings;
  const LayerParameter& input = deploy.layer(0);
  const BlobShape& shape = input.input_param().shape(0);
  ResizeParameter* const resize = prepared.transform.mutable_resize_param();
  resize->set_prob(1);
  resize->set_resize_mode(ResizeParameter::WARP);
  resize->set_height(static_cast<uint32_t>(shape.dim(2)));
  resize->set_width(static_cast<uint32_t>(shape.dim(3)));
  resize->add_interp_mode(ResizeParameter::LINEAR);
  resize->MergeFrom(input.transform_param().resize_param());
  prepared.transform.set_scale(input.transform_param().scale());
  AddData(TRAIN, prepared, data + "_train_lmdb", &net);
  AddData(TEST, prepared, data + "_val_lmdb", &net);

  const int last = deploy.layer_size() - 1;
  for (int i = 1; i < last; ++i) {
    LayerParameter* const layer = net.add_layer();
    *layer = deploy.layer(i);
    const auto rate = settings.rates.find(layer->name());
    PrepareToTrain(rate == settings.rates.end() ? 1 : rate->second, layer);
  }
  for (const LayerParameter& loss : losses) {
    LayerParameter* const layer = net.add_layer();
    *layer = loss;
    layer->add_bottom("label");
    layer->add_include()->set_phase(TRAIN);
  }
  LayerParameter* const detection = net.add_layer();
  *detection = deploy.layer(last);
  detection->add_include()->set_phase(TEST);
  LayerParameter* const evaluation = AddLayer("DetectionEvaluate", "detection_eval", &net);
  evaluation->add_bottom(detection->top(0));
  evaluation->add_bottom("label");
  evaluation->add_include()->set_phase(TEST);
  DetectionEvaluateParameter* const param = evaluation->mutable_detection_evaluate_param();
  param->set_num_classes(1 + (detection->has_yolo_detection_output_param()
                                  ? detection->yolo_detection_output_param().num_classes()
                                  : detection->yolov3_detection_output_param().num_classes()));
  param->set_background_label_id(0);
  param->set_overlap_threshold(0.5F);
  param->set_evaluate_difficult_gt(false);
  return net;
}

}  // namespace crema::darknet
