// Which frames of a video make an item, where they lie, and how they are put together: video_data_param.
#ifndef CREMA_DATA_FILES_VIDEO_CLIP_H_
#define CREMA_DATA_FILES_VIDEO_CLIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "crema/state.pb.h"
#include "crema/tensor.h"
#include "data/databases/image_size.h"
#include "data/files/image_list.h"

namespace crema {

// Names of frames: `img_%05d.jpg`, `flow_%c_%05d.jpg`.
class FramePattern {
 public:
  // What is wrong with a pattern, with the remedy; empty where nothing is. `flow`: whether it needs %c.
  static std::string Problem(const std::string& pattern, bool flow);

  // A pattern without a problem.
  explicit FramePattern(std::string pattern);

  const std::string& text() const { return text_; }
  // The name of frame `number`, behind `path`; `component` stands for %c.
  void AppendTo(std::string* path, int number, char component) const;

 private:
  std::string text_;
  size_t component_ = 0, number_ = 0, end_ = 0;  // where %c and the conversion of the number stand, and where that ends
  int width_ = 0;                                // digits at least
  bool has_component_ = false;
};

struct VideoMistake {
  std::string field;    // below video_data_param or, of ClipTransforms, transform_param; empty: the whole block
  std::string message;  // with the remedy
};

class VideoClip {
 public:
  // The first field that is of SSD's layer.
  static std::optional<VideoMistake> FindMistakeOfSsd(const VideoDataParameter& param);
  // The first field that is out of range, is not supported or contradicts another one.
  static std::optional<VideoMistake> FindMistake(const VideoDataParameter& param);
  // Whether the block says modality: FLOW, or nothing where that is the default.
  static bool IsFlow(const VideoDataParameter& param);

  // A block without mistakes.
  VideoClip(const VideoDataParameter& param, Phase phase);

  // Whether an item is C x L x H x W (C3D); else (images * C) x H x W.
  bool is_volume() const { return volume_; }
  bool is_flow() const { return flow_; }
  // Of an item; one of flow has two images.
  int frames() const { return segments_ * length_; }
  int images() const { return frames() * (flow_ ? 2 : 1); }
  Shape ShapeOf(const ImageSize& image) const;

  // Of the list; the numbers of lines whose video is too short are problems.
  VideoListForm list_form() const;
  // Whether the segments of a video with that number in the list are shorter than what is taken of each.
  bool HasShortSegments(int number) const { return !volume_ && number / segments_ < length_; }
  // Replaces `chosen` by the frames of an item, in its order. Reads the numbers from kFirstNumber on of `random`.
  void Choose(int number, const RandomStream& random, std::vector<int>* chosen) const;
  // The first and the last frame that Choose may give.
  struct Range {
    int first, last;
  };
  Range RangeOf(int number) const;

  // The path of a frame of an entry; `component`: 0, or 1 of what moves downwards.
  void PathOf(const ImageList& list, size_t entry, int frame, int component, std::string* path) const;
  // How frames with these names come to be, for messages on one that is absent.
  std::string Remedy(const std::string& folder) const;

 private:
  // Behind those of a Transform.
  static constexpr uint64_t kFirstNumber = 256;

  // Frames from the first to the last of an item.
  int64_t Span(int rate) const { return int64_t{length_ - 1} * rate + 1; }

  bool volume_, flow_, train_;
  int length_, segments_, rate_, most_rate_, labels_;
  bool draws_rate_, draws_start_;
  FramePattern pattern_;
};

// Looks for the first and the last frame of evenly spread entries, so that wrong names show before training. Throws
// UserError that names list, line and path.
void ExpectFrames(const ImageList& list, const VideoClip& clip);

// Throws UserError that says that a frame does not exist.
[[noreturn]] void FrameIsAbsent(const ImageList& list, size_t entry, const VideoClip& clip, const std::string& path);

}  // namespace crema

#endif  // CREMA_DATA_FILES_VIDEO_CLIP_H_
