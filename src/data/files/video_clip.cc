#include "data/files/video_clip.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/evenly_spread.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr uint32_t kMostFrames = 4096;  // of an item
constexpr uint32_t kMostRate = 1 << 16;
constexpr int kMostNumber = 100'000'000;  // of a line
constexpr int kMostDigits = 20;
constexpr size_t kLookedAt = 64;  // entries

const char* const kExtract = "extract the frames of each video, e.g. with `ffmpeg -i VIDEO -q:v 2 FOLDER/%06d.jpg`";

// The first field that only the fork has.
std::string FieldOfC3d(const VideoDataParameter& param) {
  for (const auto& [field, set] : {std::pair("use_image", param.has_use_image()),
                                   {"sampling_rate", param.has_sampling_rate()},
                                   {"use_temporal_jitter", param.has_use_temporal_jitter()},
                                   {"use_sampling_rate_jitter", param.has_use_sampling_rate_jitter()},
                                   {"max_sampling_rate", param.has_max_sampling_rate()},
                                   {"use_multiple_label", param.has_use_multiple_label()},
                                   {"num_of_labels", param.has_num_of_labels()},
                                   {"show_data", param.has_show_data()}}) {
    if (set) return field;
  }
  return {};
}

std::string FieldOfTsn(const VideoDataParameter& param) {
  if (param.has_num_segments()) return "num_segments";
  return param.has_modality() ? "modality" : "";
}

bool IsVolume(const VideoDataParameter& param) { return !FieldOfC3d(param).empty(); }

std::string PatternOf(const VideoDataParameter& param) {
  if (!param.name_pattern().empty()) return param.name_pattern();
  if (IsVolume(param)) return "%06d.jpg";
  return VideoClip::IsFlow(param) ? "flow_%c_%04d.jpg" : "image_%04d.jpg";
}

std::optional<VideoMistake> CheckForm(const VideoDataParameter& param) {
  const std::string c3d = FieldOfC3d(param), tsn = FieldOfTsn(param);
  if (!c3d.empty() && !tsn.empty()) {
    return VideoMistake{tsn, c3d + " is of C3D's VideoData and " + tsn +
                                 " of Temporal Segment Networks'; keep the fields of one (docs/video.md)"};
  }
  if (!c3d.empty() && !param.use_image()) {
    return VideoMistake{c3d,
                        "C3D's VideoData opens video files unless use_image: true is set, and crema reads "
                        "frames as files of images; " +
                            std::string(kExtract) + ", list the folders and set use_image: true"};
  }
  if (c3d.empty() && tsn.empty() && param.name_pattern().empty()) {
    return VideoMistake{"",
                        "does not say what an item is; add use_image: true for N x 3 x new_length x H x W "
                        "(C3D), or num_segments and modality for N x channels x H x W (Temporal Segment "
                        "Networks; docs/video.md)"};
  }
  return {};
}

std::optional<VideoMistake> CheckCount(const std::string& field, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return {};
  return VideoMistake{field, field + " is " + std::to_string(value) + "; it must be from 1 to " + std::to_string(most)};
}

std::optional<VideoMistake> CheckFrames(const VideoDataParameter& param) {
  if (auto mistake = CheckCount("new_length", param.new_length(), kMostFrames)) return mistake;
  if (auto mistake = CheckCount("num_segments", param.num_segments(), kMostFrames / param.new_length())) {
    return mistake;
  }
  if (auto mistake = CheckCount("sampling_rate", param.sampling_rate(), kMostRate)) return mistake;
  if (auto mistake = CheckCount("max_sampling_rate", param.max_sampling_rate(), kMostRate)) return mistake;
  if (!param.use_multiple_label()) return {};
  if (!param.has_num_of_labels()) {
    return VideoMistake{"use_multiple_label",
                        "use_multiple_label is set without num_of_labels, how many classes there are; add it"};
  }
  return CheckCount("num_of_labels", param.num_of_labels(), kMaxLabelCount);
}

}  // namespace

std::string FramePattern::Problem(const std::string& pattern, bool flow) {
  int numbers = 0, components = 0;
  for (size_t at = pattern.find('%'); at != std::string::npos; at = pattern.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[end]))) ++end;
    const std::string digits = pattern.substr(at + 1, end - at - 1);
    const char type = end < pattern.size() ? pattern[end] : '\0';
    int width = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), width);
    const bool padded = digits.empty() || (digits[0] == '0' && width > 0 && width <= kMostDigits);
    if (type == 'd' && padded && digits.size() <= 3) {
      ++numbers;
    } else if (type == 'c' && digits.empty() && numbers == 0) {
      ++components;
    } else {
      return "\"" + pattern.substr(at) + "\" of name_pattern is not understood; write %d or %05d where the number of " +
             "the frame stands" + (flow ? ", and %c before it for x or y" : "");
    }
  }
  if (numbers != 1) {
    return "name_pattern \"" + pattern + "\" has " + (numbers == 0 ? "no place" : "several places") +
           " for the number of the frame; write one, as in " + (flow ? "flow_%c_%05d.jpg" : "img_%05d.jpg");
  }
  if (components == (flow ? 1 : 0)) return {};
  return "name_pattern \"" + pattern + "\" has " +
         (flow ? "not one %c, which stands for x and y; write for instance flow_%c_%05d.jpg"
               : "%c, which stands for x and y of optical flow; remove it, or set modality: FLOW");
}

FramePattern::FramePattern(std::string pattern) : text_(std::move(pattern)) {
  component_ = text_.find("%c");
  has_component_ = component_ != std::string::npos;
  number_ = text_.find('%', has_component_ ? component_ + 2 : 0);
  end_ = text_.find('d', number_) + 1;
  std::from_chars(text_.data() + number_ + 1, text_.data() + end_, width_);
  CREMA_CHECK(Problem(text_, has_component_).empty());
}

void FramePattern::AppendTo(std::string* path, int number, char component) const {
  size_t from = 0;
  if (has_component_) {
    path->append(text_, 0, component_);
    path->push_back(component);
    from = component_ + 2;
  }
  path->append(text_, from, number_ - from);
  char digits[16];
  const auto count = static_cast<int>(std::to_chars(digits, digits + sizeof(digits), number).ptr - digits);
  path->append(static_cast<size_t>(std::max(0, width_ - count)), '0');
  path->append(digits, static_cast<size_t>(count));
  path->append(text_, end_);
}

std::optional<VideoMistake> VideoClip::FindMistakeOfSsd(const VideoDataParameter& param) {
  for (const auto& [field, set] : {std::pair("video_file", param.has_video_file()),
                                   {"video_type", param.has_video_type()},
                                   {"device_id", param.has_device_id()},
                                   {"skip_frames", param.has_skip_frames()}}) {
    if (!set) continue;
    return VideoMistake{field,
                        std::string(field) + " is of SSD's VideoData, which opens a camera or a video file; crema " +
                            "reads frames as files of images: " + kExtract + ", and give them to `crema detect`, or " +
                            "list the folders in the source of video_data_param (docs/video.md)"};
  }
  return {};
}

std::optional<VideoMistake> VideoClip::FindMistake(const VideoDataParameter& param) {
  if (auto mistake = FindMistakeOfSsd(param)) return mistake;
  if (auto mistake = CheckForm(param)) return mistake;
  if (auto mistake = CheckFrames(param)) return mistake;
  const std::string problem = FramePattern::Problem(PatternOf(param), IsFlow(param));
  if (!problem.empty()) return VideoMistake{"name_pattern", problem};
  return {};
}

bool VideoClip::IsFlow(const VideoDataParameter& param) {
  return !IsVolume(param) && param.modality() == VideoDataParameter::FLOW;
}

VideoClip::VideoClip(const VideoDataParameter& param, Phase phase)
    : volume_(IsVolume(param)),
      flow_(IsFlow(param)),
      train_(phase == TRAIN),
      length_(static_cast<int>(param.new_length())),
      segments_(static_cast<int>(param.num_segments())),
      rate_(static_cast<int>(param.sampling_rate())),
      most_rate_(
          static_cast<int>(param.use_sampling_rate_jitter() ? param.max_sampling_rate() : param.sampling_rate())),
      labels_(static_cast<int>(param.use_multiple_label() ? param.num_of_labels() : 0)),
      draws_rate_(param.use_sampling_rate_jitter()),
      draws_start_(param.use_temporal_jitter()),
      pattern_(PatternOf(param)) {}

Shape VideoClip::ShapeOf(const ImageSize& image) const {
  if (volume_) return Shape{image.channels, frames(), image.height, image.width};
  return Shape{int64_t{images()} * image.channels, image.height, image.width};
}

VideoListForm VideoClip::list_form() const {
  const bool counts = !volume_ || draws_start_;
  VideoListForm form;
  form.number = counts ? "number_of_frames" : "first_frame";
  form.label_count = static_cast<size_t>(labels_);
  form.problem = [least = !counts   ? 0
                          : volume_ ? int64_t{length_} * most_rate_
                                    : int64_t{length_},
                  volume = volume_](int number) -> std::string {
    if (number > kMostNumber) return "the number " + std::to_string(number) + " is too large";
    if (number >= least) return {};
    return "the video has " + std::to_string(number) + " frame(s), but new_length " +
           (volume ? "and the sampling rate take " : "takes ") + std::to_string(least) +
           "; leave it out of the list, or lower new_length" + (volume ? " or the rate" : "");
  };
  return form;
}

void VideoClip::Choose(int number, const RandomStream& random, std::vector<int>* chosen) const {
  chosen->clear();
  if (volume_) {
    const int rate =
        draws_rate_ ? 1 + static_cast<int>(random.Below(kFirstNumber, static_cast<uint64_t>(most_rate_))) : rate_;
    int first = number;
    if (draws_start_) {
      const auto starts = static_cast<uint64_t>(number - length_ * rate + 1);
      first = 1 + (train_ ? static_cast<int>(random.Below(kFirstNumber + 1, starts)) : 0);
    }
    for (int i = 0; i < length_; ++i) chosen->push_back(first + i * rate);
    return;
  }
  const int part = number / segments_;
  for (int segment = 0; segment < segments_; ++segment) {
    int before = std::min(1, number - length_);
    if (part >= length_) {
      const auto places = static_cast<uint64_t>(part - length_ + 1);
      const auto draw = kFirstNumber + static_cast<uint64_t>(segment);
      before = segment * part + static_cast<int>(train_ ? random.Below(draw, places) : places / 2);
    }
    for (int i = 1; i <= length_; ++i) chosen->push_back(before + i);
  }
}

VideoClip::Range VideoClip::RangeOf(int number) const {
  if (HasShortSegments(number)) {
    const int before = std::min(1, number - length_);
    return {before + 1, before + length_};
  }
  if (!volume_) return {1, number / segments_ * segments_};
  const int last = static_cast<int>(Span(most_rate_)) - 1;
  if (!draws_start_) return {number, number + last};
  return {1, train_ ? number - rate_ + 1 : 1 + last};
}

void VideoClip::PathOf(const ImageList& list, size_t entry, int frame, int component, std::string* path) const {
  *path = list.root;
  *path += list.entries[entry].path;
  *path += '/';
  pattern_.AppendTo(path, frame, component == 0 ? 'x' : 'y');
}

std::string VideoClip::Remedy(const std::string& folder) const {
  if (flow_) return "make the images of optical flow with these names beforehand (docs/video.md)";
  return "extract the frames with `ffmpeg -i VIDEO -q:v 2 \"" + folder + "/" + pattern_.text() + "\"`";
}

void FrameIsAbsent(const ImageList& list, size_t entry, const VideoClip& clip, const std::string& path) {
  std::error_code ignored;
  const std::string folder = list.PathOf(entry);
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw UserError("folder " + list.Named(entry) + " does not exist; correct the list, or root_folder, which is put " +
                    "before it, or " + clip.Remedy(folder));
  }
  throw UserError("frame \"" + path + "\"" + list.PlaceOf(entry) + " does not exist; " + clip.Remedy(folder) +
                  ", or correct name_pattern or the " + clip.list_form().number + " of the line, which is " +
                  std::to_string(list.entries[entry].number));
}

void ExpectFrames(const ImageList& list, const VideoClip& clip) {
  std::string path;
  ForEachSpread(list.entries.size(), kLookedAt, [&](size_t entry) {
    const VideoClip::Range range = clip.RangeOf(list.entries[entry].number);
    for (const int frame : {range.first, range.last}) {
      for (int component = 0; component < (clip.is_flow() ? 2 : 1); ++component) {
        clip.PathOf(list, entry, frame, component, &path);
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored)) FrameIsAbsent(list, entry, clip, path);
      }
    }
  });
}

}  // namespace crema
