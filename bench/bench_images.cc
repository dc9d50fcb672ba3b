// Images a second that one thread reads, decodes and transforms, as data layers do in training; bench/images_python.py
// does the same with Pillow and NumPy.
//
//   bench_images LIST ROOT [SECONDS]    LIST as ImageData reads it
//
// Rates are of the thread's CPU time, so that other work on the machine disturbs them little.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "crema/error.h"
#include "data/loaders/image_list_loader.h"

namespace crema::bench {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs `item` for 0, 1, ... until `seconds` have passed; returns items a second.
template <typename Item>
double Rate(double seconds, const Item& item) {
  for (uint64_t i = 0; i < 20; ++i) item(i);
  const double begin = CpuSeconds();
  uint64_t done = 0;
  double passed = 0;
  while (passed < seconds) {
    for (int i = 0; i < 10; ++i) item(done++);
    passed = CpuSeconds() - begin;
  }
  return static_cast<double>(done) / passed;
}

void Print(const std::string& name, double rate) {
  std::printf("%-44s %8.0f images/s  %6.2f ms\n", name.c_str(), rate, 1000 / rate);
  std::fflush(stdout);
}

TransformationParameter Normalized() {
  TransformationParameter param;
  param.set_force_color(true);
  param.set_mirror(true);
  param.set_crop_size(224);
  for (const float mean : {103.5f, 116.3f, 123.7f}) param.add_mean_value(mean);
  for (const float deviation : {57.4f, 57.1f, 58.4f}) param.add_std_value(deviation);
  return param;
}

int Run(const std::string& file, const std::string& root, double seconds) {
  const auto list = std::make_shared<const ImageList>(ReadImageList(file, root));
  TransformationParameter shorter = Normalized(), random = Normalized(), jitter = Normalized(), turned;
  shorter.set_resize_shorter_side(256);
  turned = shorter;
  turned.set_max_rotation_angle(15);
  random.mutable_random_resized_crop();
  *jitter.mutable_random_resized_crop() = random.random_resized_crop();
  jitter.mutable_color_jitter()->set_brightness(0.4f);
  jitter.mutable_color_jitter()->set_contrast(0.4f);
  jitter.mutable_color_jitter()->set_saturation(0.4f);
  const std::pair<const char*, TransformationParameter> whole[] = {
      {"shorter side 256, random crop 224, mirror", shorter},
      {"the same turned", turned},
      {"random resized crop 224, mirror", random},
      {"random resized crop 224, mirror, colours", jitter}};
  ItemScratch scratch;
  std::vector<float> out(3 * 224 * 224);
  float label = 0;
  for (const auto& [name, param] : whole) {
    const ImageListLoader loader(list, Transform(param, TRAIN, ""), {});
    Print(name, Rate(seconds, [&](uint64_t i) { loader.Load(i, out.data(), &label, scratch); }));
  }

  std::vector<std::vector<uint8_t>> files;
  for (size_t i = 0; i < list->entries.size() && i < 64; ++i) files.push_back(ReadFileBytes(list->PathOf(i)));
  const auto decode = [&](uint64_t i, int reduction) {
    const std::string problem =
        DecodeImage(files[i % files.size()], {DecodeOptions::Colors::kColor, reduction}, &scratch.decoded);
    if (!problem.empty()) throw UserError(list->PathOf(i % files.size()) + " " + problem);
  };
  Print("of these: decoding", Rate(seconds, [&](uint64_t i) { decode(i, 1); }));
  Print("decoding at half the size", Rate(seconds, [&](uint64_t i) { decode(i, 2); }));
  Image image;
  decode(0, 1);
  ResizeBilinear(scratch.decoded, 256, 341, &scratch.transform.buffers, &image);
  Image larger;
  larger.Resize(375, 500, 3);
  Print("resizing 375x500 to 256x341", Rate(seconds, [&](uint64_t) {
          ResizeBilinear(larger, 256, 341, &scratch.transform.buffers, &scratch.transform.resized);
        }));
  const auto values = [&](const TransformationParameter& param) {
    const Transform transform(param, TRAIN, "");
    return Rate(seconds,
                [&](uint64_t i) { transform.Apply(image, RandomStream(1, i), &scratch.transform, out.data()); });
  };
  TransformationParameter changed = Normalized(), erased = Normalized(), hue, rand = Normalized(), trivial = rand,
                          blurred = rand;
  erased.mutable_random_erasing()->set_probability(1);
  turned.clear_resize_shorter_side();
  *changed.mutable_color_jitter() = jitter.color_jitter();
  hue = changed;
  hue.mutable_color_jitter()->set_hue(0.1f);
  rand.mutable_rand_augment();
  trivial.mutable_trivial_augment();
  blurred.mutable_gaussian_blur()->set_probability(1);
  Print("crop, mirror, mean and deviation", values(Normalized()));
  Print("the same with colours", values(changed));
  Print("the same with colours and hue", values(hue));
  Print("the same with rand_augment", values(rand));
  Print("the same with trivial_augment", values(trivial));
  Print("the same blurred", values(blurred));
  Print("the same turned", values(turned));
  Print("the same with a part erased", values(erased));
  return 0;
}

}  // namespace
}  // namespace crema::bench

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: bench_images LIST ROOT [SECONDS]\n";
    return 2;
  }
  try {
    return crema::bench::Run(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 3);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
