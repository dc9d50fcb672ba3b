// Frames of videos for tests.
#ifndef CREMA_TESTS_DATA_VIDEO_TESTING_H_
#define CREMA_TESTS_DATA_VIDEO_TESTING_H_

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema::testing {

inline std::string FrameName(const char* pattern, int frame) {
  char name[64];
  std::snprintf(name, sizeof(name), pattern, frame);
  return name;
}

// Writes frames 1 to `frames` of a video into a folder, as `make` makes them. Decoders go by the bytes, so that PNG
// under the names of JPEG keeps every value.
inline void WriteVideo(const std::string& folder, const char* pattern, int frames,
                       const std::function<Image(int frame)>& make) {
  std::filesystem::create_directories(folder);
  for (int frame = 1; frame <= frames; ++frame) {
    WriteFile(folder + "/" + FrameName(pattern, frame), Png(make(frame)));
  }
}

inline constexpr int kHeight = 8, kWidth = 9, kPlane = kHeight * kWidth;

// Blue tells the frame, green the row, red the column.
inline Image ColorFrame(int frame) {
  Image image;
  image.Resize(kHeight, kWidth, 3);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      uint8_t* pixel = image.row(y) + 3 * x;
      pixel[0] = static_cast<uint8_t>(frame);
      pixel[1] = static_cast<uint8_t>(10 * y);
      pixel[2] = static_cast<uint8_t>(20 * x);
    }
  }
  return image;
}

// Tells the frame and the column; the two components differ by 100.
inline int FlowAt(int frame, bool downwards, int x) { return frame + 5 * x + (downwards ? 100 : 0); }

inline Image FlowFrame(int frame, bool downwards) {
  Image image;
  image.Resize(kHeight, kWidth, 1);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) image.row(y)[x] = static_cast<uint8_t>(FlowAt(frame, downwards, x));
  }
  return image;
}

class VideoDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteVideo(folder_ / "videos/a b", "%06d.jpg", 20, ColorFrame);
    WriteVideo(folder_ / "videos/a b", "image_%04d.jpg", 20, ColorFrame);
    WriteVideo(folder_ / "videos/short", "image_%04d.jpg", 4, ColorFrame);
    for (const bool down : {false, true}) {
      WriteVideo(folder_ / "videos/a b", down ? "flow_y_%04d.jpg" : "flow_x_%04d.jpg", 20,
                 [down](int frame) { return FlowFrame(frame, down); });
    }
    WriteList("a b 3 7\na b 10 1\n");
  }

  void WriteList(const std::string& list) const { WriteFile(folder_ / "list.txt", list); }

  std::string Layer(const std::string& fields, const std::string& transform = "") const {
    return "top: \"data\" top: \"label\" video_data_param { source: \"" + folder_ / "list.txt" + "\" root_folder: \"" +
           folder_ / "videos" + "\" batch_size: 2 " + fields + " } transform_param { " + transform + " }";
  }
  SourceDriver Driver(const std::string& fields, const std::string& transform = "", Phase phase = TEST) const {
    return SourceDriver("VideoData", Layer(fields, transform), phase);
  }

  // The frames of item `item` of a batch of `images` images each, without crop.
  static std::vector<int> FramesOf(SourceDriver& driver, int item, int images, bool volume) {
    std::vector<int> frames;
    for (int i = 0; i < images; ++i) {
      const int plane = item * images * 3 + (volume ? i : 3 * i);
      frames.push_back(static_cast<int>(driver.value(0)[static_cast<size_t>(plane * kPlane)]));
    }
    return frames;
  }

  void ExpectRefused(const std::string& fields, const std::string& transform,
                     const std::vector<std::string>& parts) const {
    SCOPED_TRACE(fields + " " + transform);
    ExpectThrows<UserError>([&] { Driver(fields, transform).Forward(); }, parts);
  }

  TemporaryFolder folder_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_VIDEO_TESTING_H_
