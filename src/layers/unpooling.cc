// Unpooling: larger images of what pooling left, as in DeconvNet. MAX with a second bottom, the mask of a Pooling
// layer, is Upsample; without one, elements stand apart among zeros. AVE and TILE add each element, in AVE divided by
// the window's size, to all of its window. Gradients are the derivatives; DeconvNet's own layer divides those of TILE.
#include <algorithm>
#include <string>

#include "layers/field_range.h"
#include "layers/unpooled_images.h"

namespace crema {

namespace {

class UnpoolingLayer : public UnpooledImages {
 public:
  void Setup(LayerSetup& setup) override {
    const UnpoolingParameter& param = setup.param().unpooling_param();
    const bool goes_by_mask = param.unpool() == UnpoolingParameter::MAX;
    if (!goes_by_mask && setup.bottoms() == 2) {
      setup.Fail("bottom", "only unpool: MAX takes a second bottom, a mask; remove it");
    }
    setup.ExpectBottoms(1, goes_by_mask ? 2 : 1);
    ExpectImages(setup);
    PoolingWindow vertical, horizontal;
    ReadWindow(setup, &vertical, &horizontal);
    const Shape& values = setup.bottom_shape(0);
    const bool sized = param.has_unpool_size() || param.has_unpool_h() || param.has_unpool_w();
    int64_t height = DefaultExtent(values[2], vertical), width = DefaultExtent(values[3], horizontal);
    if (sized) {
      Read(setup,
           {"unpool_size", param.has_unpool_size(), param.unpool_size(), param.has_unpool_h(), param.unpool_h(),
            param.has_unpool_w(), param.unpool_w(), 1},
           &height, &width);
    }
    if (setup.bottoms() == 2) {
      StandInWindows(setup, vertical, horizontal);
      return PutBack(setup, "unpooling_param", height, width, "unpool_h and unpool_w");
    }
    if (goes_by_mask) {
      if (vertical.pad > 0 || horizontal.pad > 0) {
        setup.Fail(param.has_pad() ? "unpooling_param.pad" : "unpooling_param.pad_h",
                   "pad has no meaning with unpool: MAX and no mask, where elements stand at multiples of the stride; "
                   "remove it, or name the mask of the Pooling layer");
      }
      vertical.kernel = horizontal.kernel = 1;
    }
    ExpectRoom(setup, "height", values[2], vertical, height);
    ExpectRoom(setup, "width", values[3], horizontal, width);
    const bool divides = param.unpool() == UnpoolingParameter::AVE;
    Spread(setup, "unpooling_param", divides ? PoolingMethod::kAverage : PoolingMethod::kSum, vertical, horizontal,
           height, width);
  }

 private:
  // One setting of both axes, or one for each.
  struct Pair {
    std::string name;  // of both; those of one end with h and w
    bool has_both;
    int64_t both;
    bool has_h;
    int64_t h;
    bool has_w;
    int64_t w;
    int64_t least;
  };

  static void Read(const LayerSetup& setup, const Pair& pair, int64_t* vertical, int64_t* horizontal) {
    const std::string stem = pair.name == "kernel_size"   ? "kernel_"
                             : pair.name == "unpool_size" ? "unpool_"
                                                          : pair.name + "_";
    const std::string h = stem + "h", w = stem + "w", block = "unpooling_param.";
    if (pair.has_h != pair.has_w) {
      const std::string& given = pair.has_h ? h : w;
      setup.Fail(block + given, "has " + given + " without " + (pair.has_h ? w : h) + "; give both, or " + pair.name);
    }
    if (pair.has_both && pair.has_h) {
      setup.Fail(block + pair.name, "has both " + pair.name + " and " + h + "; keep one of the two forms");
    }
    *vertical = pair.has_h ? pair.h : pair.both;
    *horizontal = pair.has_h ? pair.w : pair.both;
    const NumberRange range = {.low = static_cast<double>(pair.least), .high = INT32_MAX};
    for (const int64_t* value : {vertical, horizontal}) {
      const std::string& field = !pair.has_h ? pair.name : value == vertical ? h : w;
      ReadInRange(setup, block + field, *value, range);
    }
  }

  static void ReadWindow(const LayerSetup& setup, PoolingWindow* vertical, PoolingWindow* horizontal) {
    const UnpoolingParameter& param = setup.param().unpooling_param();
    if (!param.has_kernel_size() && !param.has_kernel_h() && !param.has_kernel_w()) {
      setup.Fail("unpooling_param", "kernel_size is not set; it is the side of the window that was pooled, in pixels");
    }
    Read(setup,
         {"kernel_size", param.has_kernel_size(), param.kernel_size(), param.has_kernel_h(), param.kernel_h(),
          param.has_kernel_w(), param.kernel_w(), 1},
         &vertical->kernel, &horizontal->kernel);
    Read(setup,
         {"stride", param.has_stride(), param.stride(), param.has_stride_h(), param.stride_h(), param.has_stride_w(),
          param.stride_w(), 1},
         &vertical->stride, &horizontal->stride);
    Read(setup,
         {"pad", param.has_pad(), param.pad(), param.has_pad_h(), param.pad_h(), param.has_pad_w(), param.pad_w(), 0},
         &vertical->pad, &horizontal->pad);
    for (const PoolingWindow* window : {vertical, horizontal}) {
      if (window->pad < window->kernel) continue;
      setup.Fail(param.has_pad() ? "unpooling_param.pad" : "unpooling_param.pad_h",
                 "pad " + std::to_string(window->pad) + " must be smaller than the kernel");
    }
  }

  static int64_t DefaultExtent(int64_t extent, const PoolingWindow& window) {
    return std::max((extent - 1) * window.stride + window.kernel - 2 * window.pad,
                    extent * window.stride - window.pad + 1);
  }

  // All windows must hold an element of the top.
  static void ExpectRoom(const LayerSetup& setup, const std::string& name, int64_t elements,
                         const PoolingWindow& window, int64_t extent) {
    const int64_t last = (elements - 1) * window.stride - window.pad;
    if (last < extent) return;
    setup.Fail("unpooling_param", "the last of " + std::to_string(elements) + " windows would begin at " +
                                      std::to_string(last) + ", outside of a top of " + name + " " +
                                      std::to_string(extent) +
                                      "; give unpool_h and unpool_w, the size of what was "
                                      "pooled, or a smaller stride");
  }
};

}  // namespace

REGISTER_LAYER(Unpooling, UnpoolingLayer, "unpooling_param");

}  // namespace crema
