// Drives one layer as a net would, on memory that shows what the layer wrote and read.
#ifndef CREMA_TESTS_LAYERS_LAYER_HARNESS_H_
#define CREMA_TESTS_LAYERS_LAYER_HARNESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "layers/guarded_tensor.h"
#include "layers/layer_case.pb.h"

namespace crema::testing {

// The generic value `h` of element i of fill p, in [-1, 1): a 64-bit mix (SplitMix64's) of both.
double GenericValue(uint64_t i, uint64_t p);

// Values of a CaseTensor of this shape.
std::vector<float> Values(const CaseTensor& tensor, const Shape& shape, uint32_t default_fill);
Shape ShapeOf(const CaseTensor& tensor);

// What to differentiate.
struct Wanted {
  std::vector<bool> bottoms, params;
};

// How a net might hold a layer's tensors.
struct Placing {
  // Top 0 lies over bottom 0 and its gradient over that of top 0.
  bool in_place = false;
  // Of every image, that is of bottoms and tops with three to five axes.
  Layout images = Layout::kPlain;
  // Of every image likewise, and of its gradient. kBF16, kF16: with channels last only.
  DType numbers = DType::kF32;
  // Values are put into memory, and read, in plain order whatever the layout.
  bool by_memory = false;
  // The numbers of images given to the layer are such as this type holds.
  DType rounded = DType::kF32;
  // Where the layer runs; one that makes data always does on the CPU.
  Device* device = &CpuDevice();
};

// The case's layer after Setup and Plan, with its tensors. Values go in and out in plain order.
class LayerInstance {
 public:
  // Throws UserError as Setup does. Without `wanted` no gradient is planned.
  LayerInstance(const LayerCase& test, const Wanted* wanted, const Placing& placing);

  const LayerSetup& setup() const { return *setup_; }
  const LayerPlan& plan() const { return *plan_; }
  bool CanBackwardInPlace() const;

  // Fills bottoms and parameters with the case's values.
  void FillInputs();
  void Forward();
  // Poisons what the layer did not ask to keep, then runs Backward.
  void Backward(const std::vector<std::vector<float>>& top_gradients);

  std::vector<float> Top(int i) const { return Read(tops_[i]); }
  std::vector<float> BottomGradient(int i) const { return Read(bottom_grads_[i]); }
  std::vector<float> ParamGradient(int i) const { return Read(param_grads_[i]); }
  Tensor Bottom(int i) const { return bottoms_[i].tensor(); }
  Tensor Param(int i) const { return params_[i].tensor(); }
  int64_t TopCount(int i) const { return setup_->top_specs()[i].shape.count(); }

  // What was written that should not have been, or not written that should have been; empty when all is well.
  std::string MemoryProblem() const { return problem_; }

 private:
  TensorSpec Placed(TensorSpec spec) const;
  void Write(const std::vector<float>& values, const Tensor& tensor) const;
  // Of an image: rounded, where the placing says so.
  void WriteImage(std::vector<float> values, const Tensor& tensor) const;
  std::vector<float> Read(const GuardedTensor& tensor) const;
  void Note(const std::string& problem);
  void CheckGuards();
  LayerRun MakeRun();
  // Calls body between the copies to and from the device.
  void RunOnDevice(const std::function<void()>& body);

  const LayerCase& test_;
  LayerParameter param_;
  Placing placing_;
  std::unique_ptr<Layer> layer_;
  std::unique_ptr<LayerSetup> setup_;
  std::unique_ptr<LayerPlan> plan_;
  Context context_;
  std::vector<GuardedTensor> bottoms_, tops_, params_, saved_, top_grads_, bottom_grads_, param_grads_;
  GuardedTensor workspace_;
  std::vector<std::vector<Tensor>> views_;  // what the spans of a LayerRun point to
  std::string problem_;
};

// Whether a tensor of this shape is an image, which layers may take with channels last.
inline bool IsImage(const Shape& shape) { return shape.axes() >= 3 && shape.axes() <= 5; }

// The case's layer with the names it leaves out.
LayerParameter NamedLayer(const LayerCase& test);

}  // namespace crema::testing

#endif  // CREMA_TESTS_LAYERS_LAYER_HARNESS_H_
