// VideoData: batches of frames of videos, which lie as files of images in a folder for each, as C3D's layer of this
// name and that of Temporal Segment Networks make them (facebookarchive/C3D, C3D-v1.1; yjxiong/caffe).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "data/files/video_clip.h"
#include "data/loaders/video_loader.h"
#include "layers/image_file_source.h"

namespace crema {

namespace {

class VideoDataLayer : public ImageFileSource {
 public:
  void Setup(LayerSetup& setup) override {
    // Before the source is asked for, which SSD's layer has not.
    if (const auto mistake = VideoClip::FindMistakeOfSsd(setup.param().video_data_param())) {
      setup.Fail("video_data_param." + mistake->field, mistake->message);
    }
    ImageFileSource::Setup(setup);
  }

 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    param_ = layer.video_data_param();
    return {{"video_data_param", param_.source(), param_.batch_size(), param_.prefetch(), param_.threads(),
             param_.rand_skip(), param_.shuffle()},
            param_.root_folder(),
            param_.new_height(),
            param_.new_width(),
            !VideoClip::IsFlow(param_)};
  }
  const char* example_of_source() const override { return "file with a folder, a number and a label per line"; }
  bool reads_flow() const override { return clip_ && clip_->is_flow(); }

  void CheckImageFields(LayerSetup& setup) override {
    if (const auto mistake = VideoClip::FindMistake(param_)) {
      setup.Fail(mistake->field.empty() ? "video_data_param" : Field(mistake->field), mistake->message);
    }
    clip_.emplace(param_, phase());
    CheckTransform(setup);
    FindMean(setup);
    ImageFileSource::CheckImageFields(setup);
    if (!list()) return;
    WarnOfShortVideos(setup);
    if (!setup.needs_data()) return;
    try {
      ExpectFrames(list()->images, *clip_);
    } catch (const UserError& error) {
      setup.Fail(Field("source"), error.diagnostics().front().message);
    }
  }

  void CheckTransform(LayerSetup& setup) {
    const TransformationParameter& given = transform();
    const auto fail = [&](const std::string& field, const std::string& why) {
      setup.Fail("transform_param." + field, field + " " + why);
    };
    if (const auto mistake = ClipTransforms::FindMistake(given, *clip_)) {
      setup.Fail("transform_param." + mistake->field, mistake->message);
    }
    if (!clip_->is_flow()) {
      if (given.force_gray()) fail("force_gray", "is set, but frames have three channels; remove it");
      if (given.is_flow()) fail("is_flow", "is set, but frames are images in colour; remove it, or set modality: FLOW");
      return;
    }
    const std::pair<const char*, bool> others[] = {{"force_color", given.force_color()},
                                                   {"mirror_vertical", given.mirror_vertical()},
                                                   {"max_rotation_angle", given.max_rotation_angle() > 0},
                                                   {"color_jitter", given.has_color_jitter()},
                                                   {"gaussian_blur", given.has_gaussian_blur()},
                                                   {"rand_augment", given.has_rand_augment()},
                                                   {"trivial_augment", given.has_trivial_augment()}};
    for (const auto& [field, set] : others) {
      if (set) fail(field, "is not done to optical flow; remove it");
    }
    if (given.mirror() && !given.is_flow()) {
      setup.Warn("transform_param.mirror",
                 "mirrored flow keeps the direction of what moves to the right; add is_flow: true, which turns it");
    }
  }

  // The mean of a whole item, of which each Transform gets its part.
  void FindMean(LayerSetup& setup) {
    if (!transform().has_mean_file()) return;
    mean_path_ = setup.ResolvePath(transform().mean_file());
    transform().clear_mean_file();
    if (!SourceExists()) return;
    try {
      mean_ = std::make_shared<const ClipMean>(ReadClipMean(mean_path_, *clip_));
    } catch (const UserError& error) {
      setup.Fail("transform_param.mean_file", error.diagnostics().front().message);
    }
  }

  void WarnOfShortVideos(LayerSetup& setup) const {
    const auto& entries = list()->images.entries;
    const auto is_short = [&](const ImageList::Entry& entry) { return clip_->HasShortSegments(entry.number); };
    const auto count = std::ranges::count_if(entries, is_short);
    if (count == 0) return;
    const auto first = static_cast<size_t>(std::ranges::find_if(entries, is_short) - entries.begin());
    setup.Warn(Field("num_segments"), std::to_string(count) + " of " + std::to_string(entries.size()) +
                                          " videos have segments shorter than new_length, which are all the same "
                                          "frames then; the first is " +
                                          list()->images.Named(first));
  }

  int64_t LabelCount(LayerSetup&, int64_t) override {
    return param_.use_multiple_label() ? static_cast<int64_t>(param_.num_of_labels()) : 0;
  }

  Shape ShapeOfItem(const ImageSize& image) const override { return clip_->ShapeOf(image); }
  const char* axes_of_items() const override {
    return clip_->is_volume() ? "channels x length x height x width" : ImageFileSource::axes_of_items();
  }
  const char* letters_of_items() const override { return clip_->is_volume() ? "C,L,H,W" : "C,H,W"; }

  std::string Remedy(int cores) const override {
    return "decoding takes " + (cores == 1 ? std::string("the only core") : "all " + std::to_string(cores) + " cores") +
           ": extract smaller frames (ffmpeg -vf scale=340:256)";
  }

  ImageSize ItemSizeOf(LayerSetup&, const Transform&) override { return Loader(ImagesOf(list()), {})->image_size(); }

  DenseImageList ReadList(const std::string& root) const override {
    return {ReadVideoList(source(), root, clip_->list_form()), {}};
  }

  std::shared_ptr<const ItemLoader> MakeFileLoader(std::shared_ptr<const DenseImageList> list, Transform,
                                                   const SampleOrder& order) const override {
    return Loader(ImagesOf(list), order);
  }
  std::shared_ptr<const VideoLoader> Loader(std::shared_ptr<const ImageList> videos, const SampleOrder& order) const {
    const auto mean =
        mean_ || mean_path_.empty() ? mean_ : std::make_shared<const ClipMean>(ReadClipMean(mean_path_, *clip_));
    return std::make_shared<VideoLoader>(std::move(videos), *clip_,
                                         ClipTransforms(transform(), phase(), *clip_, mean.get()), order);
  }

  VideoDataParameter param_;
  std::optional<VideoClip> clip_;
  std::string mean_path_;                 // where it was found; empty without one
  std::shared_ptr<const ClipMean> mean_;  // null where the source did not exist, too
};

}  // namespace

REGISTER_LAYER(VideoData, VideoDataLayer, "video_data_param", "transform_param");

}  // namespace crema
