#include "crema/layer.h"

#include <algorithm>

#include "base/check.h"
#include "base/paths.h"
#include "graph/filler.h"

namespace crema {

LayerSetup::LayerSetup(const LayerParameter& param, Phase phase, std::vector<TensorSpec> bottoms, FieldLocator locate)
    : param_(&param),
      members_{&param},
      phase_(phase),
      bottoms_(std::move(bottoms)),
      locate_(std::move(locate)),
      top_specs_(param.top_size()),
      top_set_(param.top_size(), false) {}

void LayerSetup::Fail(std::string_view field, const std::string& message) const {
  throw UserError(locate_(field), "layer \"" + param_->name() + "\" (" + param_->type() + "): " + message);
}

void LayerSetup::Warn(std::string_view field, const std::string& message) {
  warnings_.push_back({Diagnostic::Severity::kWarning, locate_(field),
                       "layer \"" + param_->name() + "\" (" + param_->type() + "): " + message});
}

namespace {

std::string Wanted(int min, int max) {
  if (max < 0) return "at least " + std::to_string(min);
  if (min == max) return min == 0 ? "none" : std::to_string(min);
  return std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace

void LayerSetup::ExpectBottoms(int min, int max) const {
  if (bottoms() < min || (max >= 0 && bottoms() > max)) {
    Fail("bottom", "takes " + Wanted(min, max) + " bottom(s), but " + std::to_string(bottoms()) + " are given");
  }
}

void LayerSetup::ExpectTops(int min, int max) const {
  if (tops() < min || (max >= 0 && tops() > max)) {
    Fail("top", "makes " + Wanted(min, max) + " top(s), but " + std::to_string(tops()) + " are named");
  }
}

int LayerSetup::CanonicalAxis(std::string_view field, int axis, int bottom) const {
  const Shape& shape = bottom_shape(bottom);
  if (!shape.HasAxis(axis)) {
    Fail(field, "axis " + std::to_string(axis) + " is outside \"" + param_->bottom(bottom) + "\", which is " +
                    shape.ToString() + " (axes " + std::to_string(-shape.axes()) + " to " +
                    std::to_string(shape.axes() - 1) + ")");
  }
  return shape.CanonicalAxis(axis);
}

std::string LayerSetup::ResolvePath(const std::string& path) const { return FindFile(path, folders_); }

void LayerSetup::SetTop(int i, Shape shape) {
  CREMA_CHECK(i >= 0 && i < tops()) << param_->type() << " sets top " << i << " of " << tops();
  top_specs_[i] = {std::move(shape), DType::kF32};
  top_set_[i] = true;
}

void LayerSetup::KeepCoordinates() {
  const int axes = bottoms() > 0 ? bottom_shape(0).axes() : 0;
  coordinate_map_.emplace(axes > 2 ? axes - 2 : 0);
}

int LayerSetup::AddParam(ParamRequest request) {
  const std::string problem = CheckFiller(request.filler, request.shape);
  if (!problem.empty()) Fail("", problem);
  params_.push_back(std::move(request));
  return static_cast<int>(params_.size()) - 1;
}

const Shape* LayerSetup::shape_override(int top) const {
  for (const auto& [name, shape] : overrides_) {
    if (name == param_->top(top)) return &shape;
  }
  return nullptr;
}

bool LayerSetup::has_gradient(int bottom) const {
  return std::find(no_gradient_.begin(), no_gradient_.end(), bottom) == no_gradient_.end();
}

void LayerSetup::NoGradient(int i) {
  CREMA_CHECK(i >= 0 && i < bottoms()) << "of layer type " << param_->type() << ", which has no bottom " << i;
  no_gradient_.push_back(i);
}

LayerPlan::LayerPlan(const Context& context, std::vector<TensorSpec> bottoms, std::vector<TensorSpec> tops,
                     std::vector<bool> bottom_grads, std::vector<bool> param_grads)
    : context_(context),
      bottoms_(std::move(bottoms)),
      tops_(std::move(tops)),
      bottom_grads_(std::move(bottom_grads)),
      param_grads_(std::move(param_grads)),
      passes_gradient_(bottom_grads_.size(), false) {}

bool LayerPlan::backward() const {
  const auto any = [](const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
  };
  return any(bottom_grads_) || any(param_grads_);
}

void LayerPlan::BackwardReadsBottom(int i) {
  CREMA_CHECK(i >= 0 && static_cast<size_t>(i) < bottoms_.size()) << "of the layer's type: there is no bottom " << i;
  reads_bottom_.push_back(i);
}

void LayerPlan::BackwardReadsTop(int i) {
  CREMA_CHECK(i >= 0 && static_cast<size_t>(i) < tops_.size()) << "of the layer's type: there is no top " << i;
  reads_top_.push_back(i);
}

void LayerPlan::PassGradient(int i) {
  CREMA_CHECK(i >= 0 && static_cast<size_t>(i) < passes_gradient_.size())
      << "of the layer's type: there is no bottom " << i;
  passes_gradient_[i] = true;
}

void LayerPlan::KeepParameterAs(int i, std::shared_ptr<const ParameterLayout> layout) {
  CREMA_CHECK(may_lay_out(i)) << "parameter " << i << " must stay plain";
  laid_out_[i].kept = std::move(layout);
}

std::shared_ptr<const ParameterLayout> LayerPlan::TakeParameterLayout(int i) {
  if (static_cast<size_t>(i) >= laid_out_.size()) return nullptr;
  laid_out_[i].taken = true;
  return laid_out_[i].given;
}

int LayerPlan::Save(TensorSpec spec) {
  saved_.push_back(std::move(spec));
  return static_cast<int>(saved_.size()) - 1;
}

void LayerPlan::Workspace(size_t forward_bytes, size_t backward_bytes) {
  forward_workspace_ = std::max(forward_workspace_, forward_bytes);
  backward_workspace_ = std::max(backward_workspace_, backward_bytes);
}

void LayerPlan::Chose(std::string kernel, std::vector<std::string> skipped) {
  kernel_ = std::move(kernel);
  skipped_ = std::move(skipped);
}

}  // namespace crema
