// DetectNetTransformation: images that are changed at random while training, and what DetectNet's grid should predict
// of them. As in NVIDIA's fork of Caffe 0.15 to 0.17 on the CPU.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "crema/layer.h"
#include "data/databases/mean_file.h"
#include "device/device.h"
#include "layers/field_range.h"
#include "ops/detection/detectnet_transform_formulas.h"
#include "ops/operations.h"

namespace crema {

namespace {

std::string TruthField(const std::string& name) { return "detectnet_groundtruth_param." + name; }
std::string AugmentationField(const std::string& name) { return "detectnet_augmentation_param." + name; }

class DetectNetTransformationLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(2);
    setup.MakeNonDifferentiable();
    problem_ = {};
    labels_ = {};
    objects_name_ = setup.param().bottom(1);
    ReadImages(setup);
    ReadGrid(setup);
    ReadClasses(setup);
    ReadObjects(setup);
    problem_.changes = setup.phase() == TRAIN;
    if (problem_.changes) ReadAugmentation(setup);
    ReadMeanOf(setup);
    setup.SetTop(0, {problem_.images, DetectNetTransform::kChannels, problem_.out_height, problem_.out_width});
    setup.SetTop(1, {problem_.images, labels_.channels(), labels_.height, labels_.width});
  }

  void Plan(LayerPlan& plan) override {
    Device& device = *plan.context().device;
    place_of_on_device_.Upload(device, place_of_);
    mean_on_device_.Upload(device, mean_);
    plan.Workspace(ChangeBytes() + plan.bottom(0).bytes(), 0);
  }

  void Forward(const LayerRun& run) override {
    const float* const objects = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadDetectNetObject(problem_, labels_, objects);
    if (bad >= 0) Refuse(bad, objects[bad]);
    auto* const changes = reinterpret_cast<DetectNetChange*>(run.workspace);
    auto* const colored = reinterpret_cast<float*>(run.workspace + ChangeBytes());
    const RandomStream random(run.context->draw_seed(), StreamId(static_cast<uint32_t>(run.layer_index), run.pass));
    run.ops->DrawDetectNetChanges(problem_, random, changes);
    run.ops->ChangeDetectNetColors(problem_, changes, mean_on_device_.data(), run.bottoms[0].f32(), colored);
    run.ops->PlaceDetectNetImages(problem_, changes, colored, run.tops[0].f32());
    run.ops->MakeDetectNetLabels(problem_, labels_, changes, place_of_on_device_.data(), objects, run.tops[1].f32());
  }

  void OnBadValue(int64_t position, float value) const override { Refuse(position, value); }

 private:
  static constexpr int64_t kMostPixels = 1 << 15;  // of a side

  size_t ChangeBytes() const { return static_cast<size_t>((problem_.images + 3) / 4 * 4) * sizeof(DetectNetChange); }

  [[noreturn]] void Refuse(int64_t position, float value) const {
    static constexpr const char* kNames[] = {"left", "top", "width", "height"};
    constexpr int64_t kNumbers = DetectNetLabels::kNumbers;
    const int64_t number = position % kNumbers, row = position / kNumbers % labels_.rows;
    const int64_t image = position / kNumbers / labels_.rows;
    std::string message = "\"" + objects_name_ + "\" (image " + std::to_string(image) + ") ";
    const std::string text = FormatNumber(value, "%.9g");
    if (row == 0) {
      message += number == 0 ? "begins with " + text + ", but its first number is how many objects follow, 0 to " +
                                   std::to_string(labels_.rows - 1)
                             : "has " + text + " as its second number, but that is 16, the numbers of an object";
      throw BadItem(1, image, message + "; give DIGITS' databases of objects, which convert_kitti makes, too");
    }
    message += "has object " + std::to_string(row - 1) + " with " + (number < 4 ? kNames[number] : "class") + " = " +
               text + ", ";
    throw BadItem(1, image,
                  message + (number < 4 ? "but boxes are told in pixels of the image; correct it"
                                        : "but classes are whole numbers, 0 or more; correct it"));
  }

  void ReadImages(const LayerSetup& setup) {
    const Shape& images = setup.bottom_shape(0);
    if (images.axes() != 4 || images[1] != DetectNetTransform::kChannels || images.count() == 0) {
      setup.Fail("bottom", setup.DescribeBottom(0) +
                               " must be images in colour, N x 3 x height x width; convert grey ones with "
                               "transform_param { force_color: true } of their Data layer");
    }
    problem_.images = images[0];
    problem_.height = images[2];
    problem_.width = images[3];
    if (std::max(images[2], images[3]) > kMostPixels) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " has images with a side of more than " +
                               std::to_string(kMostPixels) + " pixels; make them smaller");
    }
  }

  int64_t ReadSide(LayerSetup& setup, const std::string& field, uint32_t value, uint32_t stride, int64_t* cells) const {
    ReadInRange(setup, TruthField(field), value, {1, kMostPixels}, "it is a side of the net's input in pixels");
    // Halves to even, as the fork's rectangles are rounded.
    *cells = static_cast<int64_t>(std::nearbyint(static_cast<double>(value) / stride));
    if (*cells < 1) {
      setup.Fail(TruthField(field), field + " " + std::to_string(value) + " has no room for a cell of " +
                                        std::to_string(stride) + " pixels; lower stride, or give larger images");
    }
    if (value % stride != 0) {
      setup.Warn(TruthField(field), field + " " + std::to_string(value) + " is no multiple of stride " +
                                        std::to_string(stride) + ": the grid's " + std::to_string(*cells) +
                                        " cells cover " + std::to_string(*cells * stride) + " pixels");
    }
    return value;
  }

  void ReadGrid(LayerSetup& setup) {
    const DetectNetGroundTruthParameter& param = setup.param().detectnet_groundtruth_param();
    ReadInRange(setup, TruthField("stride"), param.stride(), {1, kMostPixels}, "it is the side of a cell in pixels");
    ReadInRange(setup, TruthField("scale_cvg"), param.scale_cvg(), kPositiveFraction,
                "it is the covered region's share of an object's sides");
    const bool grows = param.gridbox_type() == DetectNetGroundTruthParameter::GRIDBOX_MIN;
    if (!grows && param.max_cvg_len() == 0) {
      setup.Fail(TruthField("max_cvg_len"), "max_cvg_len is 0, so that no object covers a cell; give pixels");
    }
    if (grows ? param.has_max_cvg_len() : param.has_min_cvg_len()) {
      const std::string field = grows ? "max_cvg_len" : "min_cvg_len";
      setup.Warn(TruthField(field), field + " has no effect with gridbox_type: GRIDBOX_" + (grows ? "MIN" : "MAX"));
    }
    problem_.out_width = ReadSide(setup, "image_size_x", param.image_size_x(), param.stride(), &labels_.width);
    problem_.out_height = ReadSide(setup, "image_size_y", param.image_size_y(), param.stride(), &labels_.height);
    labels_.stride = static_cast<float>(param.stride());
    labels_.scale = param.scale_cvg();
    labels_.grows = grows;
    labels_.least = static_cast<float>(param.min_cvg_len());
    labels_.most = static_cast<float>(param.max_cvg_len());
    labels_.least_norm = param.obj_norm() ? 0.0f : 1.0f;
    labels_.clips = param.crop_bboxes();
  }

  void ReadClasses(const LayerSetup& setup) {
    constexpr uint32_t kMostClasses = 1 << 16;
    const DetectNetGroundTruthParameter& param = setup.param().detectnet_groundtruth_param();
    place_of_.clear();
    int64_t classes = 0;
    for (int i = 0; i < param.object_class_size(); ++i) {
      const auto& mapping = param.object_class(i);
      const std::string field = TruthField("object_class[" + std::to_string(i) + "]");
      for (const auto& [name, number] : {std::pair("src", mapping.src()), std::pair("dst", mapping.dst())}) {
        ReadInRange(setup, field + "." + name, number, {.high = kMostClasses, .below_high = true},
                    "classes are numbered from 0");
      }
      place_of_.resize(std::max<size_t>(place_of_.size(), mapping.src() + 1), -1);
      if (place_of_[mapping.src()] >= 0) {
        setup.Fail(field + ".src", "class " + std::to_string(mapping.src()) +
                                       " of the database has a place already; give each one object_class");
      }
      place_of_[mapping.src()] = static_cast<int32_t>(mapping.dst());
      classes = std::max<int64_t>(classes, mapping.dst() + 1);
    }
    if (place_of_.empty()) {
      place_of_ = {-1, 0};
      classes = 1;
    }
    labels_.known = static_cast<int64_t>(place_of_.size());
    labels_.classes = classes;
  }

  void ReadObjects(const LayerSetup& setup) {
    const Shape& shape = setup.bottom_shape(1);
    if (shape.axes() != 4 || shape[1] != 1 || shape[3] != DetectNetLabels::kNumbers || shape[2] < 1) {
      setup.Fail("bottom", setup.DescribeBottom(1) +
                               " must be the images' objects, N x 1 x rows x 16, as DIGITS' databases of labels have "
                               "them; convert_kitti makes such a database of KITTI's text files");
    }
    if (shape[0] != problem_.images) {
      setup.Fail("bottom", setup.DescribeBottom(1) + " has objects of " + std::to_string(shape[0]) +
                               " image(s), but there are " + std::to_string(problem_.images) + " in " +
                               setup.DescribeBottom(0) + "; give both Data layers one batch_size");
    }
    labels_.rows = shape[2];
  }

  void ReadAugmentation(const LayerSetup& setup) {
    const DetectNetAugmentationParameter& param = setup.param().detectnet_augmentation_param();
    const auto probability = [&](const std::string& field, float value) {
      return ReadInRange(setup, AugmentationField(field), value, kFraction, "it is a probability");
    };
    const auto degrees = [&](const std::string& field, float value) {
      return ReadInRange(setup, AugmentationField(field), value, {0, 180}, "it is an angle in degrees");
    };
    const auto pixels = [&](const std::string& field, uint32_t value) {
      return ReadInRange(setup, AugmentationField(field), value, {.high = kMostPixels}, "it is in pixels");
    };
    problem_.hue_probability = probability("hue_rotation_prob", param.hue_rotation_prob());
    problem_.desaturation_probability = probability("desaturation_prob", param.desaturation_prob());
    problem_.flip_probability = probability("flip_prob", param.flip_prob());
    problem_.scale_probability = probability("scale_prob", param.scale_prob());
    problem_.rotation_probability = probability("rotation_prob", param.rotation_prob());
    problem_.crop_probability = probability("crop_prob", param.crop_prob());
    problem_.most_hue = degrees("hue_rotation", param.hue_rotation());
    problem_.most_rotation = degrees("max_rotate_degree", param.max_rotate_degree());
    problem_.most_desaturation = ReadInRange(setup, AugmentationField("desaturation_max"), param.desaturation_max(),
                                             kFraction, "it is a share of the saturation");
    constexpr float kMostScale = 16;
    problem_.least_scale =
        ReadInRange(setup, AugmentationField("scale_min"), param.scale_min(), kPositive, "sides are multiplied by it");
    problem_.most_scale = param.scale_max();
    if (!(param.scale_max() >= param.scale_min() && param.scale_max() <= kMostScale)) {
      setup.Fail(AugmentationField(param.has_scale_max() ? "scale_max" : "scale_min"),
                 "scale_max is " + FormatNumber(param.scale_max()) + " but must be in [" +
                     FormatNumber(param.scale_min()) + ", 16], from scale_min on");
    }
    problem_.shift_x = pixels("shift_x", param.shift_x());
    problem_.shift_y = pixels("shift_y", param.shift_y());
  }

  void ReadMeanOf(LayerSetup& setup) {
    const TransformationParameter& param = setup.param().transform_param();
    mean_.clear();
    WarnOfOthers(setup, param);
    if (param.has_mean_file() && param.mean_value_size() > 0) {
      setup.Fail("transform_param.mean_file", "mean_file and mean_value are both set; keep the one to subtract");
    }
    const int values = param.mean_value_size();
    if (values != 0 && values != 1 && values != DetectNetTransform::kChannels) {
      setup.Fail("transform_param.mean_value",
                 "there are " + std::to_string(values) + " mean_values; give one, or one for each of the 3 channels");
    }
    for (int c = 0; c < DetectNetTransform::kChannels && values > 0; ++c) {
      problem_.mean[c] =
          ReadInRange(setup, "transform_param.mean_value", param.mean_value(values > 1 ? c : 0), kFinite);
    }
    if (param.has_mean_file()) ReadMeanImage(setup, setup.ResolvePath(param.mean_file()));
  }

  static void WarnOfOthers(LayerSetup& setup, const TransformationParameter& param) {
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    param.GetReflection()->ListFields(param, &fields);
    for (const auto* field : fields) {
      const std::string name(field->name());
      if (name == "mean_file" || name == "mean_value") continue;
      setup.Warn("transform_param." + name, name +
                                                " has no effect here: of transform_param, mean_value and mean_file "
                                                "are read");
    }
  }

  // It is stretched to the size of the images that come.
  void ReadMeanImage(const LayerSetup& setup, const std::string& path) {
    std::error_code error;
    if (!setup.needs_data() && !std::filesystem::exists(path, error)) return;  // as the data, which is not there either
    MeanImage mean;
    try {
      mean = ReadMean(path);
    } catch (const UserError& failure) {
      setup.Fail("transform_param.mean_file", failure.diagnostics().front().message);
    }
    if (mean.shape[0] != DetectNetTransform::kChannels) {
      setup.Fail("transform_param.mean_file", "the mean image in \"" + path + "\" is " + mean.shape.ToString() +
                                                  ", but it must have 3 channels, as the images");
    }
    DetectNetTransform stretch;
    stretch.height = mean.shape[1];
    stretch.width = mean.shape[2];
    DetectNetChange change = {};
    change.height = static_cast<int32_t>(problem_.height);
    change.width = static_cast<int32_t>(problem_.width);
    change.scales = change.height != stretch.height || change.width != stretch.width;
    mean_.resize(static_cast<size_t>(DetectNetTransform::kChannels * problem_.plane()));
    for (int64_t y = 0; y < problem_.height; ++y) {
      for (int64_t x = 0; x < problem_.width; ++x) {
        const detectnet::Pixel pixel = detectnet::ScaledPixel(stretch, change, mean.values.data(), y, x);
        for (int c = 0; c < 3; ++c) mean_[c * problem_.plane() + y * problem_.width + x] = pixel.values[c];
      }
    }
  }

  DetectNetTransform problem_;
  DetectNetLabels labels_;
  std::vector<int32_t> place_of_;  // of each class of the database
  std::vector<float> mean_;        // of each pixel; empty: none
  DeviceTable<int32_t> place_of_on_device_;
  DeviceTable<float> mean_on_device_;
  std::string objects_name_;  // of the bottom, for messages
};

}  // namespace

REGISTER_LAYER(DetectNetTransformation, DetectNetTransformationLayer, "detectnet_groundtruth_param",
               "detectnet_augmentation_param", "transform_param");

}  // namespace crema
