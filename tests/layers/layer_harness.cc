#include "layers/layer_harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "device/gpu.h"
#include "graph/filler.h"
#include "ops/operations.h"

namespace crema::testing {

namespace {

std::vector<Tensor> TensorsOf(const std::vector<GuardedTensor>& guarded) {
  std::vector<Tensor> tensors;
  for (const GuardedTensor& g : guarded) tensors.push_back(g.on_device());
  return tensors;
}

// Calls body(index in C order of the axes, index in memory) for each element.
template <typename Body>
void ForEachElement(const Tensor& tensor, bool by_memory, const Body& body) {
  const bool plain = by_memory || tensor.layout() == Layout::kPlain;
  const int64_t channels = plain ? 1 : tensor.shape()[1], pixels = plain ? 1 : tensor.shape().count(2);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const int64_t pixel = i % pixels, channel = i / pixels % channels, item = i / (pixels * channels);
    body(static_cast<size_t>(i), (item * pixels + pixel) * channels + channel);
  }
}

}  // namespace

double GenericValue(uint64_t i, uint64_t p) {
  uint64_t z = i + (p << 32) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
}

Shape ShapeOf(const CaseTensor& tensor) {
  return Shape(std::vector<int64_t>(tensor.dim().begin(), tensor.dim().end()));
}

std::vector<float> Values(const CaseTensor& tensor, const Shape& shape, uint32_t default_fill) {
  const size_t count = static_cast<size_t>(shape.count());
  if (tensor.value_size() == 1) return std::vector<float>(count, tensor.value(0));
  if (tensor.value_size() > 0) {
    if (static_cast<size_t>(tensor.value_size()) != count) {
      throw std::runtime_error("the case gives " + std::to_string(tensor.value_size()) +
                               " values for a tensor of shape " + shape.ToString());
    }
    return {tensor.value().begin(), tensor.value().end()};
  }
  const uint64_t fill = tensor.has_fill() ? tensor.fill() : default_fill;
  std::vector<double> generic(count);
  for (size_t i = 0; i < count; ++i) generic[i] = GenericValue(i, fill);
  if (tensor.distinct()) {
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return generic[a] < generic[b]; });
    for (size_t rank = 0; rank < count; ++rank) generic[order[rank]] = (2.0 * rank + 1.0) / count - 1.0;
  }
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    if (tensor.has_labels()) {
      values[i] = static_cast<float>(std::floor((generic[i] + 1.0) / 2.0 * tensor.labels()));
      continue;
    }
    const double value = generic[i] * tensor.scale() + tensor.shift();
    const double distance = std::max(std::fabs(value), static_cast<double>(tensor.away_from_zero()));
    values[i] = static_cast<float>(std::copysign(distance, value));
  }
  return values;
}

LayerParameter NamedLayer(const LayerCase& test) {
  LayerParameter layer = test.layer();
  if (layer.name().empty()) layer.set_name("layer");
  for (int i = layer.bottom_size(); i < test.bottom_size(); ++i) layer.add_bottom("bottom" + std::to_string(i));
  const bool makes_none = layer.type() == "Silence" || layer.type() == "HDF5Output";
  if (layer.top_size() == 0 && !makes_none) layer.add_top("top0");
  return layer;
}

LayerInstance::LayerInstance(const LayerCase& test, const Wanted* wanted, const Placing& placing)
    : test_(test), param_(NamedLayer(test)), placing_(placing) {
  const LayerType* type = FindLayerType(param_.type());
  if (type == nullptr) throw std::runtime_error("no layer type \"" + param_.type() + "\"");
  layer_ = type->create();

  std::vector<TensorSpec> bottom_specs;
  for (const CaseTensor& bottom : test.bottom()) bottom_specs.push_back({ShapeOf(bottom), DType::kF32});
  setup_ = std::make_unique<LayerSetup>(param_, test.phase(), bottom_specs, [](std::string_view field) {
    return Location{"case.prototxt:" + std::string(field), 0, 0};
  });
  std::vector<std::pair<std::string, Shape>> overrides;
  for (const ShapeOverride& shape : test.shape()) {
    overrides.emplace_back(shape.top(), Shape(std::vector<int64_t>(shape.dim().begin(), shape.dim().end())));
  }
  setup_->set_shape_overrides(std::move(overrides));
  layer_->Setup(*setup_);
  for (int i = 0; i < setup_->tops(); ++i) {
    if (!setup_->top_set()[i]) Note("Setup did not set the shape of top " + std::to_string(i));
  }

  std::vector<TensorSpec> top_specs;
  for (const TensorSpec& spec : setup_->top_specs()) top_specs.push_back(Placed(spec));
  for (TensorSpec& spec : bottom_specs) spec = Placed(spec);
  const std::vector<bool> none_bottoms(test.bottom_size(), false), none_params(setup_->params().size(), false);
  context_.device = setup_->is_source() ? &CpuDevice() : placing_.device;
  context_.seed = test.seed();
  plan_ =
      std::make_unique<LayerPlan>(context_, bottom_specs, top_specs, wanted != nullptr ? wanted->bottoms : none_bottoms,
                                  wanted != nullptr ? wanted->params : none_params);
  if (setup_->is_view()) return;
  layer_->Plan(*plan_);

  Device& device = *context_.device;
  for (const TensorSpec& spec : bottom_specs) bottoms_.emplace_back(spec, device);
  for (const TensorSpec& spec : top_specs) tops_.emplace_back(spec, device);
  for (const ParamRequest& request : setup_->params()) {
    params_.emplace_back(TensorSpec{request.shape, DType::kF32}, device);
  }
  for (const TensorSpec& spec : plan_->saved()) saved_.emplace_back(spec, device);
  const size_t workspace = std::max(plan_->forward_workspace(), plan_->backward_workspace());
  if (workspace > 0) workspace_ = GuardedTensor({Shape{static_cast<int64_t>(workspace)}, DType::kU8}, device);
  for (const TensorSpec& spec : top_specs) top_grads_.emplace_back(spec, device);
  for (int i = 0; i < test.bottom_size(); ++i) {
    bottom_grads_.push_back(plan_->bottom_grad(i) ? GuardedTensor(bottom_specs[i], device) : GuardedTensor());
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    bool gradient = plan_->param_grad(static_cast<int>(i));
    param_grads_.push_back(gradient ? GuardedTensor(params_[i].tensor().spec(), device) : GuardedTensor());
  }
}

bool LayerInstance::CanBackwardInPlace() const {
  const auto& reads = plan_->reads_bottom();
  return std::find(reads.begin(), reads.end(), 0) == reads.end();
}

void LayerInstance::FillInputs() {
  for (size_t i = 0; i < bottoms_.size(); ++i) {
    const Tensor& bottom = bottoms_[i].tensor();
    WriteImage(Values(test_.bottom(i), bottom.shape(), static_cast<uint32_t>(1000 + i)), bottom);
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    const Tensor& param = params_[i].tensor();
    if (static_cast<int>(i) < test_.param_size()) {
      const Shape given = ShapeOf(test_.param(i));
      if (test_.param(i).dim_size() > 0 && given != param.shape()) {
        Note("parameter " + std::to_string(i) + " is " + param.shape().ToString() + ", the case says " +
             given.ToString());
      }
      Write(Values(test_.param(i), param.shape(), static_cast<uint32_t>(2000 + i)), param);
    } else {
      const std::string problem = CheckFiller(setup_->params()[i].filler, param.shape());
      if (!problem.empty()) throw std::runtime_error(problem);
      Fill(setup_->params()[i].filler, test_.seed(), i, param);
    }
  }
}

TensorSpec LayerInstance::Placed(TensorSpec spec) const {
  if (!IsImage(spec.shape)) return spec;
  spec.layout = placing_.images;
  if (spec.dtype == DType::kF32) spec.dtype = placing_.numbers;
  return spec;
}

void LayerInstance::Write(const std::vector<float>& values, const Tensor& tensor) const {
  ForEachElement(tensor, placing_.by_memory, [&](size_t i, int64_t at) {
    if (tensor.dtype() == DType::kBF16) {
      tensor.bf16()[at] = values[i];
    } else if (tensor.dtype() == DType::kF16) {
      tensor.f16()[at] = values[i];
    } else {
      tensor.f32()[at] = values[i];
    }
  });
}

void LayerInstance::WriteImage(std::vector<float> values, const Tensor& tensor) const {
  if (placing_.rounded != DType::kF32 && IsImage(tensor.shape())) {
    for (float& value : values) {
      value = placing_.rounded == DType::kBF16 ? float{BFloat16(value)} : float{Float16(value)};
    }
  }
  Write(values, tensor);
}

std::vector<float> LayerInstance::Read(const GuardedTensor& guarded) const {
  const Tensor& tensor = guarded.tensor();
  if (!tensor.defined()) return {};
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  ForEachElement(tensor, placing_.by_memory, [&](size_t i, int64_t at) {
    values[i] = tensor.dtype() == DType::kBF16  ? static_cast<float>(tensor.bf16()[at])
                : tensor.dtype() == DType::kF16 ? static_cast<float>(tensor.f16()[at])
                                                : tensor.f32()[at];
  });
  return values;
}

void LayerInstance::Note(const std::string& problem) {
  if (problem_.find(problem) == std::string::npos) problem_ += problem + "\n";
}

void LayerInstance::CheckGuards() {
  for (const auto* list : {&bottoms_, &tops_, &params_, &saved_, &top_grads_, &bottom_grads_, &param_grads_}) {
    for (const GuardedTensor& tensor : *list) {
      if (!tensor.GuardsIntact()) Note("wrote outside a tensor of shape " + tensor.tensor().shape().ToString());
    }
  }
  if (!workspace_.GuardsIntact()) Note("wrote outside the workspace");
}

LayerRun LayerInstance::MakeRun() {
  LayerRun run;
  run.context = &context_;
  run.ops = &OperationsOf(*context_.device);
  run.pass = test_.pass();
  run.layer_index = 3;
  views_ = {TensorsOf(bottoms_), TensorsOf(tops_), TensorsOf(params_), TensorsOf(saved_)};
  if (placing_.in_place) views_[1][0] = views_[0][0];
  run.bottoms = views_[0];
  run.tops = views_[1];
  run.params = views_[2];
  run.saved = views_[3];
  run.workspace = static_cast<std::byte*>(workspace_.on_device().raw());
  return run;
}

void LayerInstance::RunOnDevice(const std::function<void()>& body) {
  Gpu* gpu = context_.device->type() == DeviceType::kCpu ? nullptr : static_cast<Gpu*>(context_.device);
  if (!gpu) return body();
  const auto for_all = [&](auto method) {
    for (const auto* list : {&bottoms_, &tops_, &params_, &saved_, &top_grads_, &bottom_grads_, &param_grads_}) {
      for (const GuardedTensor& tensor : *list) (tensor.*method)();
    }
    (workspace_.*method)();
  };
  for_all(&GuardedTensor::Upload);
  gpu->BeginPass(test_.pass());
  gpu->BeginUnit(3);
  body();
  for_all(&GuardedTensor::Download);
  GpuPassResult found;
  gpu->CopyOut(gpu->result(), &found, sizeof found);
  if (found.faulty_unit < 0) return;
  if (found.faulty_unit != 3) Note("a fault of unit " + std::to_string(found.faulty_unit));
  layer_->OnBadValue(found.position, found.value);
}

void LayerInstance::Forward() {
  for (auto* list : {&tops_, &saved_}) {
    for (GuardedTensor& tensor : *list) tensor.Poison();
  }
  workspace_.Poison();
  std::vector<std::vector<float>> inputs;
  for (const GuardedTensor& bottom : bottoms_) inputs.push_back(Read(bottom));
  LayerRun run = MakeRun();
  if (plan_->forward_workspace() == 0) run.workspace = nullptr;
  RunOnDevice([&] { layer_->Forward(run); });
  if (placing_.in_place) std::memcpy(tops_[0].tensor().raw(), bottoms_[0].tensor().raw(), tops_[0].tensor().bytes());
  for (size_t i = placing_.in_place ? 1 : 0; i < inputs.size(); ++i) {
    const size_t bytes = inputs[i].size() * sizeof(float);
    if (bytes > 0 && std::memcmp(inputs[i].data(), Read(bottoms_[i]).data(), bytes) != 0) {
      Note("Forward changed bottom " + std::to_string(i));
    }
  }
  for (size_t i = 0; i < tops_.size(); ++i) {
    if (tops_[i].Poisoned() > 0) {
      Note("Forward left " + std::to_string(tops_[i].Poisoned()) + " elements of top " + std::to_string(i) +
           " unwritten (or copied memory that nobody wrote)");
    }
  }
  CheckGuards();
}

void LayerInstance::Backward(const std::vector<std::vector<float>>& top_gradients) {
  for (size_t i = 0; i < tops_.size(); ++i) {
    WriteImage(top_gradients[i], top_grads_[i].tensor());
  }
  const auto poison_unread = [](std::vector<GuardedTensor>& tensors, const std::vector<int>& reads) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (std::find(reads.begin(), reads.end(), static_cast<int>(i)) == reads.end()) tensors[i].Poison();
    }
  };
  poison_unread(tops_, plan_->reads_top());
  poison_unread(bottoms_, plan_->reads_bottom());
  // In place, top 0 lives on in bottom 0's memory.
  if (placing_.in_place) std::memcpy(bottoms_[0].tensor().raw(), tops_[0].tensor().raw(), tops_[0].tensor().bytes());
  for (auto* list : {&bottom_grads_, &param_grads_}) {
    for (GuardedTensor& tensor : *list) tensor.Poison();
  }
  workspace_.Poison();
  LayerRun run = MakeRun();
  if (plan_->backward_workspace() == 0) run.workspace = nullptr;
  std::vector<Tensor> top_grads = TensorsOf(top_grads_), bottom_grads = TensorsOf(bottom_grads_);
  const std::vector<Tensor> param_grads = TensorsOf(param_grads_);
  // As the compiler does it: such a gradient is not asked for, the top's is taken.
  const auto passes = [&](size_t i) {
    return plan_->passes_gradient(static_cast<int>(i)) && bottom_grads_[i].tensor().defined();
  };
  for (size_t i = 0; i < bottom_grads.size(); ++i) {
    if (passes(i)) bottom_grads[i] = Tensor();
  }
  const bool gradient_in_place = placing_.in_place && bottom_grads[0].defined();
  if (gradient_in_place) bottom_grads[0] = top_grads[0];
  run.top_grads = top_grads;
  run.bottom_grads = bottom_grads;
  run.param_grads = param_grads;
  RunOnDevice([&] { layer_->Backward(run); });
  if (gradient_in_place) {
    std::memcpy(bottom_grads_[0].tensor().raw(), top_grads_[0].tensor().raw(), top_grads[0].bytes());
  }
  for (size_t i = 0; i < bottom_grads.size(); ++i) {
    if (passes(i)) std::memcpy(bottom_grads_[i].tensor().raw(), top_grads_[0].tensor().raw(), top_grads[0].bytes());
  }
  const auto check_written = [this](const std::vector<GuardedTensor>& tensors, const std::string& what) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].Poisoned() > 0) {
        Note("Backward left " + std::to_string(tensors[i].Poisoned()) + " elements of the gradient of " + what + " " +
             std::to_string(i) + " unwritten (or read memory it did not ask for)");
      }
    }
  };
  check_written(bottom_grads_, "bottom");
  check_written(param_grads_, "parameter");
  CheckGuards();
}

}  // namespace crema::testing
