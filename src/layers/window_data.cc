// WindowData: batches of windows of images, some of objects and some of the background (BVLC Caffe's WindowDataLayer).
#include <memory>
#include <utility>

#include "base/number_text.h"
#include "data/loaders/window_loader.h"
#include "data/transforms/transform_check.h"
#include "layers/field_range.h"
#include "layers/image_source.h"

namespace crema {

namespace {

class WindowDataLayer : public ImageSource {
 private:
  Fields ReadFields(const LayerParameter& layer) override {
    param_ = layer.window_data_param();
    Fields fields;
    fields.block = "window_data_param";
    fields.source = param_.source();
    fields.batch_size = param_.batch_size();
    return fields;
  }

  void CheckImageFields(LayerSetup& setup) override {
    CheckTransform(setup);
    CheckWindows(setup);
    mean_path_ = setup.ResolvePath(transform().mean_file());
    root_ = setup.ResolvePath(param_.root_folder());
    // Images are decoded so.
    transform().set_force_color(true);
    const Shape* given = setup.shape_override(0);
    batch_size_ = given && given->axes() > 0 ? (*given)[0] : param_.batch_size();
    if (SourceExists()) ReadFile(setup);
  }

  void CheckTransform(LayerSetup& setup) {
    TransformationParameter& given = transform();
    if (given.crop_size() == 0) {
      setup.Fail("transform_param",
                 "windows are resized to crop_size, which is missing; add transform_param { crop_size: 227 }");
    }
    const std::string random_size = RandomSizeField(given);
    const std::pair<const char*, bool> others[] = {{"resize_shorter_side", given.resize_shorter_side() > 0},
                                                   {"resize_height", given.resize_height() > 0},
                                                   {"resize_param", given.has_resize_param()},
                                                   {random_size.c_str(), !random_size.empty()},
                                                   {"random_resized_crop", given.has_random_resized_crop()},
                                                   {"fix_crop", given.fix_crop()},
                                                   {"multi_scale", given.multi_scale()},
                                                   {"pad", given.pad() > 0},
                                                   {"mirror_vertical", given.mirror_vertical()},
                                                   {"max_rotation_angle", given.max_rotation_angle() > 0},
                                                   {"random_erasing", given.has_random_erasing()},
                                                   {"force_gray", given.force_gray()},
                                                   {"color_jitter", given.has_color_jitter()},
                                                   {"gaussian_blur", given.has_gaussian_blur()},
                                                   {"rand_augment", given.has_rand_augment()},
                                                   {"trivial_augment", given.has_trivial_augment()}};
    for (const auto& [field, set] : others) {
      if (!set) continue;
      setup.Fail("transform_param." + std::string(field),
                 std::string(field) +
                     " is not done to windows, only crop_size, mirror, mean_file, mean_value, std_value and scale are; "
                     "remove it");
    }
    CheckChannels(setup, "mean_value", given.mean_value_size());
    CheckChannels(setup, "std_value", given.std_value_size());
  }

  static void CheckChannels(const LayerSetup& setup, const std::string& field, int count) {
    if (count <= 1 || count == 3) return;
    setup.Fail("transform_param." + field, "there are " + std::to_string(count) + " " + field +
                                               " fields, but images have 3 channels; give one value, or three");
  }

  void CheckWindows(const LayerSetup& setup) const {
    const uint32_t crop = transform().crop_size();
    if (param_.context_pad() >= (crop + 1) / 2) {
      setup.Fail("window_data_param.context_pad", "context_pad " + std::to_string(param_.context_pad()) +
                                                      " leaves nothing of crop_size " + std::to_string(crop) +
                                                      " for the window; it must be below half of it");
    }
    if (param_.crop_mode() != "warp" && param_.crop_mode() != "square") {
      setup.Fail("window_data_param.crop_mode",
                 "crop_mode is \"" + param_.crop_mode() + "\"; it may be \"warp\" or \"square\"");
    }
    ReadInRange(setup, "window_data_param.fg_fraction", param_.fg_fraction(), kFraction, "it is a share of the batch");
  }

  void ReadFile(LayerSetup& setup) {
    try {
      WindowFile file = Read();
      if (root_.empty()) file.images.root = RootOf(setup, file.images.entries[0].path);
      CheckKinds(file);
      file_ = std::make_shared<const WindowFile>(std::move(file));
    } catch (const UserError& error) {
      const Diagnostic& first = error.diagnostics().front();
      // Mistakes within the file have their lines there.
      if (first.where.line > 0) throw;
      setup.Fail("window_data_param.source",
                 (first.where.file.empty() ? "" : first.where.ToString() + " ") + first.message);
    }
  }

  WindowFile Read() const { return ReadWindowFile(source(), root_, param_.fg_threshold(), param_.bg_threshold()); }

  void CheckKinds(const WindowFile& file) const {
    if (objects() > 0 && file.objects.empty()) {
      throw UserError({file.path}, "has no window that overlaps an object by fg_threshold " +
                                       FormatNumber(param_.fg_threshold()) + " or more, but " +
                                       std::to_string(objects()) + " of each batch are to be such; set fg_fraction: 0");
    }
    if (objects() < batch_size_ && file.backgrounds.empty()) {
      throw UserError({file.path}, "has no window that overlaps objects by less than bg_threshold " +
                                       FormatNumber(param_.bg_threshold()) + ", but " +
                                       std::to_string(batch_size_ - objects()) +
                                       " of each batch are to be background; set fg_fraction: 1");
    }
  }

  // Of each batch.
  int64_t objects() const { return static_cast<int64_t>(static_cast<float>(batch_size_) * param_.fg_fraction()); }

  const char* what_source_is() const override { return "window file"; }
  const char* example_of_source() const override { return "window file, with images and their windows"; }

  ImageSize ItemSizeOf(LayerSetup& setup, const Transform&) override {
    const int side = static_cast<int>(transform().crop_size());
    if (!mean_path_.empty()) {
      const std::string problem = MeanProblem(ReadMean(mean_path_), side);
      if (!problem.empty()) setup.Fail("transform_param.mean_file", problem);
    }
    return {3, side, side};
  }

  // Its centre is subtracted, counted by its width.
  std::string MeanProblem(const MeanImage& mean, int64_t side) const {
    const int64_t border = (mean.shape[2] - side) / 2;
    if (mean.shape[0] == 3 && mean.shape[2] >= side && mean.shape[1] >= border + side) return {};
    return "the mean image in \"" + mean_path_ + "\" is " + mean.shape.ToString() +
           " (channels x height x width), but it must have 3 channels and reach over crop_size " +
           std::to_string(side) + " from its centre; give one mean_value per channel instead";
  }

  std::shared_ptr<const ItemLoader> MakeImageLoader(Transform, const SampleOrder& order) const override {
    auto file = file_;
    if (!file) {
      WindowFile read = Read();
      CheckKinds(read);
      file = std::make_shared<const WindowFile>(std::move(read));
    }
    WindowForm form;
    form.crop = static_cast<int>(transform().crop_size());
    form.context_pad = static_cast<int>(param_.context_pad());
    form.square = param_.crop_mode() == "square";
    form.mirror = transform().mirror();
    for (int c = 0; c < 3; ++c) {
      const auto of = [c](const auto& values, float none) {
        return values.empty() ? none : values[values.size() > 1 ? c : 0];
      };
      form.values.mean[static_cast<size_t>(c)] = of(transform().mean_value(), 0);
      form.values.factor[static_cast<size_t>(c)] = transform().scale() / of(transform().std_value(), 1);
    }
    if (!mean_path_.empty()) {
      form.mean = ReadMean(mean_path_);
      const std::string problem = MeanProblem(*form.mean, form.crop);
      if (!problem.empty()) throw UserError(problem);
    }
    return std::make_shared<WindowLoader>(std::move(file), std::move(form), order, static_cast<uint64_t>(batch_size_),
                                          static_cast<uint64_t>(objects()), param_.cache_images());
  }

  std::string Remedy(int cores) const override {
    return "decoding the image of every window takes " +
           (cores == 1 ? std::string("the only core") : "all " + std::to_string(cores) + " cores") +
           ": store smaller images, with windows to match";
  }

  WindowDataParameter param_;
  std::string root_, mean_path_;
  int64_t batch_size_ = 1;
  std::shared_ptr<const WindowFile> file_;
};

}  // namespace

REGISTER_LAYER(WindowData, WindowDataLayer, "window_data_param", "transform_param");

}  // namespace crema
