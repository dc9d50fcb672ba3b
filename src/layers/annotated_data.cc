// AnnotatedData: batches of images and the objects on them from a database (SSD's AnnotatedDataLayer; Liu et al., "SSD:
// Single Shot MultiBox Detector", 2016). With three tops they are those of py-faster-rcnn's RoIDataLayer: its im_info
// and gt_boxes; a fourth one has the objects for DetectionEvaluate.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/number_text.h"
#include "base/stopwatch.h"
#include "data/loaders/annotated_loader.h"
#include "data/transforms/transform_check.h"
#include "layers/database_source.h"
#include "ops/detection/region_targets.h"

namespace crema {

namespace {

class AnnotatedDataLayer : public DatabaseSource {
 private:
  static constexpr int64_t kValues = AnnotatedLoader::kValues;

  int most_tops() const override { return 4; }
  bool does_as_ssd() const override { return true; }

  void CheckImageFields(LayerSetup& setup) override {
    DatabaseSource::CheckImageFields(setup);
    if (fields().balance_classes) {
      setup.Fail("data_param.balance_classes",
                 "balance_classes needs images of one class each, and these have objects of several; remove it");
    }
    boxes_ = setup.param().annotated_data_param();
    if (const auto mistake = PartSampler::FindMistake(boxes_)) {
      setup.Fail("annotated_data_param." + mistake->field, mistake->message);
    }
    const std::string random_size = RandomSizeField(transform());
    const std::pair<const char*, bool> others[] = {{"crop_size", transform().crop_size() > 0},
                                                   {"pad", transform().pad() > 0},
                                                   {"resize_shorter_side", transform().resize_shorter_side() > 0},
                                                   {random_size.c_str(), !random_size.empty()},
                                                   {"random_resized_crop", transform().has_random_resized_crop()},
                                                   {"fix_crop", transform().fix_crop()},
                                                   {"multi_scale", transform().multi_scale()},
                                                   {"mirror_vertical", transform().mirror_vertical()},
                                                   {"max_rotation_angle", transform().max_rotation_angle() > 0},
                                                   {"random_erasing", transform().has_random_erasing()},
                                                   {"color_jitter", transform().has_color_jitter()},
                                                   {"gaussian_blur", transform().has_gaussian_blur()},
                                                   {"rand_augment", transform().has_rand_augment()},
                                                   {"trivial_augment", transform().has_trivial_augment()}};
    for (const auto& [field, set] : others) {
      if (!set) continue;
      setup.Fail(
          "transform_param." + std::string(field),
          std::string(field) +
              " is not done to images with boxes; resize_param, distort_param, expand_param and batch_sampler of "
              "annotated_data_param are, remove it");
    }
    const bool jitters = boxes_.yolo_data_type() != 0, takes_parts = jitters || boxes_.batch_sampler_size() > 0;
    if (phase() != TRAIN || FixedExtentOf(transform()) || (!takes_parts && !transform().has_expand_param())) return;
    setup.Fail("transform_param",
               std::string(jitters       ? "yolo_data_type: 1"
                           : takes_parts ? "batch_sampler"
                                         : "expand_param") +
                   " makes images of many sizes, but all of a batch must be of one; add resize_param { height: 300 "
                   "width: 300 }");
  }

  FirstRecord LookAt(const RecordSource& database, const Transform& transform) const override {
    AnnotatedRecord record;
    ReadAnnotated(database, 0, &record);
    ReadImageDatum(database, 0, record.datum);
    const FirstRecord first = LookAtFirst(database, record.datum, transform);
    const std::string problem = Whole(transform).Check(first.image);
    if (!problem.empty()) throw UserError(DescribeRecord(database, 0) + ": " + problem);
    return first;
  }

  AnnotatedTransform Whole(Transform pixels) const {
    return AnnotatedTransform(std::move(pixels), transform(), boxes_, phase());
  }

  std::vector<Shape> TopShapes(LayerSetup& setup) override {
    const std::vector<Shape> shapes = DatabaseSource::TopShapes(setup);
    if (setup.tops() < 3) return shapes;
    const int64_t items = shapes[0][0];
    const Shape info{items, ScaledImage::kNumbers};
    if (const Shape* given = setup.shape_override(1); given && *given != info) {
      setup.Fail("top", "\"" + setup.param().top(1) + "\" cannot be " + given->ToString() +
                            ": height, width and scale of each image are " + info.ToString());
    }
    std::vector<Shape> all = {shapes[0], info, Shape{items, room_, kRegionObjectNumbers}};
    if (setup.tops() == 4) all.push_back({1, 1, items * room_, kValues});
    return all;
  }

  // Room that the shape given for the objects has for those of an image.
  static int64_t GivenRoom(const LayerSetup& setup, int64_t items, const Shape& given) {
    const bool of_images = setup.tops() > 2;
    const std::string top = "\"" + setup.param().top(of_images ? 2 : 1) + "\" cannot be " + given.ToString();
    if (of_images) {
      if (given.axes() == 3 && given[0] == items && given[1] > 0 && given[2] == kRegionObjectNumbers) return given[1];
      setup.Fail("top", top + "; expected " + std::to_string(items) + ",R,5, R being the most objects of an image");
    }
    const bool fits = given.axes() == 4 && given[0] == 1 && given[1] == 1 && given[3] == kValues;
    if (fits && given[2] >= items && given[2] % items == 0) return given[2] / items;
    setup.Fail("top", top + "; expected 1,1,R,8, R being " + std::to_string(items) +
                          " (images of a batch) times the most objects of an image");
  }

  Shape LabelShape(LayerSetup& setup, int64_t items) override {
    if (const Shape* given = setup.shape_override(setup.tops() > 2 ? 2 : 1)) {
      room_ = GivenRoom(setup, items, *given);
    } else if (boxes_.max_boxes() > 0) {
      room_ = boxes_.max_boxes();
    } else {
      room_ = std::max<int64_t>(1, MostObjectsOf(setup));
    }
    constexpr int64_t kMostRows = int64_t{1} << 31;
    if (room_ > kMostRows / items) {
      setup.Fail("annotated_data_param.max_boxes", "room for " + std::to_string(room_) + " objects of each of " +
                                                       std::to_string(items) + " images is too much; lower max_boxes");
    }
    return Shape{1, 1, items * room_, kValues};
  }

  int64_t MostObjectsOf(LayerSetup& setup) const {
    if (!SourceExists()) {
      setup.Fail("data_param.source", "cannot tell how many objects an image of \"" + fields().source +
                                          "\" has: the database does not exist here; make it, correct the path, or set "
                                          "max_boxes in annotated_data_param");
    }
    constexpr double kLong = 10;
    const Stopwatch watch;
    ObjectCounts counts;
    std::string first;
    try {
      const std::shared_ptr<const RecordSource> database = OpenRecordSource(source());
      counts = CountObjects(*database);
      if (counts.not_learnt > 0) first = DescribeRecord(*database, counts.first_with);
    } catch (const UserError& error) {
      setup.Fail("data_param.source", error.diagnostics().front().message);
    }
    const double seconds = watch.Seconds();
    if (seconds > kLong) {
      setup.Warn("annotated_data_param", "the search for the image with the most objects took " +
                                             FormatSeconds(seconds) + "; max_boxes: " + std::to_string(counts.most) +
                                             " saves it");
    }
    if (counts.not_learnt > 0) {
      setup.Warn("data_param.source",
                 std::to_string(counts.not_learnt) + " of " + std::to_string(counts.objects) +
                     " objects have boxes that have no area, lie beside the image or are not finite, first in " +
                     first +
                     ": the former are learnt as background, the last end the training; `db_tool verify` names them, "
                     "and convert_annoset makes none");
    }
    return counts.most;
  }

  std::shared_ptr<const ItemLoader> MakeImageLoader(Transform pixels, const SampleOrder& order) const override {
    return std::make_shared<AnnotatedLoader>(OpenRecordSource(source()), Whole(std::move(pixels)), order, room_,
                                             boxes_.has_anno_type());
  }

  void Deliver(const Batch& batch, std::span<const Tensor> tops) const override {
    DatabaseSource::Deliver(batch, tops.first(1));
    if (tops.size() == 2) DeliverObjects(batch, tops[1]);
    if (tops.size() >= 3) DeliverRegions(batch, tops[1], tops[2]);
    if (tops.size() == 4) DeliverObjects(batch, tops[3]);
  }

  // Calls body(object) for each object of item i.
  template <typename Body>
  void ForEachObject(const Batch& batch, int64_t i, const Body& body) const {
    const int64_t values = room_ * kValues;
    const float* const end = batch.labels + (i + 1) * values;
    for (const float* object = end - values; object < end && object[0] >= 0; object += kValues) body(object);
  }

  // Objects of all images stand behind each other, and what is left over behind them.
  void DeliverObjects(const Batch& batch, const Tensor& top) const {
    float* to = top.f32();
    for (int64_t i = 0; i < top.count() / (room_ * kValues); ++i) {
      ForEachObject(batch, i, [&](const float* object) {
        to = std::copy(object, object + kValues, to);
        to[-kValues] = static_cast<float>(i);
      });
    }
    std::fill(to, top.f32() + top.count(), -1.0f);
  }

  // Objects of each image stand behind each other, in pixels, of which a box has at least one. Difficult ones are left
  // out, as py-faster-rcnn leaves them out of what it trains with.
  void DeliverRegions(const Batch& batch, const Tensor& infos, const Tensor& top) const {
    const auto height = static_cast<float>(item_shape()[1]), width = static_cast<float>(item_shape()[2]);
    std::fill(top.f32(), top.f32() + top.count(), -1.0f);
    for (int64_t i = 0; i < infos.shape()[0]; ++i) {
      const float info[] = {height, width, 1};
      std::copy(std::begin(info), std::end(info), infos.f32() + i * ScaledImage::kNumbers);
      float* to = top.f32() + i * room_ * kRegionObjectNumbers;
      ForEachObject(batch, i, [&](const float* object) {
        if (object[7] != 0) return;
        const float x1 = object[3] * width, y1 = object[4] * height, x2 = object[5] * width, y2 = object[6] * height;
        const float region[] = {x1, y1, std::max(x1, x2 - 1), std::max(y1, y2 - 1), object[1]};
        to = std::copy(std::begin(region), std::end(region), to);
      });
    }
  }

  std::string Remedy(int cores) const override {
    return "decoding and changing images takes " +
           (cores == 1 ? std::string("the only core") : "all " + std::to_string(cores) + " cores") +
           ": store smaller ones (convert_annoset --max_dim=500)";
  }

  AnnotatedDataParameter boxes_;
  int64_t room_ = 0;  // for objects of an image; 0: they are no top
};

}  // namespace

REGISTER_LAYER(AnnotatedData, AnnotatedDataLayer, "annotated_data_param", "data_param", "transform_param");

}  // namespace crema
