#include "runtime/parameters.h"

#include <algorithm>

#include "base/check.h"
#include "crema/error.h"
#include "device/host_copies.h"
#include "graph/filler.h"
#include "graph/namesakes.h"
#include "ops/operations.h"

namespace crema {

namespace {

constexpr int64_t kPadding = 16;  // floats in a cache line

int64_t Padded(int64_t count) { return (count + kPadding - 1) / kPadding * kPadding; }

// By all threads: most of the time goes to the system, which hands out the pages.
void Clear(Device& device, std::span<float> block) {
  OperationsOf(device).Fill(0, Tensor(block.data(), {Shape{static_cast<int64_t>(block.size())}, DType::kF32}));
}

// Adding or removing a layer must not change how the others start, but layers of one name start differently.
uint64_t FillStream(const std::string& layer, int number, int index) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (unsigned char c : layer) hash = (hash ^ c) * 0x100000001b3;
  constexpr uint64_t kBlobs = 1 << 16;  // more than a layer has
  return hash + kBlobs * static_cast<uint64_t>(number) + static_cast<uint64_t>(index);
}

void CheckShared(const Parameter& own, const Parameter& shared) {
  if (own.shape == shared.shape) return;
  throw UserError("parameter " + own.name() + " is " + own.shape.ToString() + " in the test net but " +
                  shared.shape.ToString() + " in the train net; a test net uses the train net's parameters " +
                  "for layers of the same name, so make the two layers alike or rename one");
}

}  // namespace

void Parameter::CopyDataTo(float* plain) const { CopyPlainOut(*device, layout.get(), data, plain); }

void Parameter::CopyGradTo(float* plain) const {
  if (!grad.defined()) throw UserError("parameter " + name() + " has no gradient of its own");
  CopyPlainOut(*device, layout.get(), grad, plain);
}

void Parameter::SetData(const float* plain) const { CopyPlainIn(*device, layout.get(), plain, data); }

ParameterStore::ParameterStore(const Graph& graph, Device& device, uint64_t seed, bool gradients,
                               const std::function<const Parameter*(int)>& shared, bool trains_shared) {
  std::vector<int64_t> offsets, gradient_offsets;
  int64_t total = 0, gradient_total = 0;
  bool any_gradient = false;
  for (int i = 0; i < std::ssize(graph.params); ++i) {
    const GraphParam& param = graph.params[i];
    Parameter p;
    p.layer = graph.nodes[param.owner].name();
    p.index = param.owner_index;
    p.lr_mult = param.lr_mult;
    p.decay_mult = param.decay_mult;
    p.trained = param.wants_grad();
    p.shape = param.spec.shape;
    p.layout = param.layout;
    p.device = &device;
    const Parameter* other = shared ? shared(i) : nullptr;
    if (other) {
      CheckShared(p, *other);
      p.data = other->data;
      CREMA_CHECK(!trains_shared || other->data.spec() == param.stored()) << p.name() << " is stored in two forms";
    }
    const int64_t padded = Padded(param.stored().shape.count());
    const bool with_gradient = !other || trains_shared;
    any_gradient |= with_gradient && p.trained;
    offsets.push_back(total);
    gradient_offsets.push_back(gradient_total);
    if (!other) total += padded;
    if (with_gradient) gradient_total += padded;
    list_.push_back(std::move(p));
  }
  const size_t bytes = total * sizeof(float);
  values_ = Buffer(device, bytes);
  const bool on_cpu = device.type() == DeviceType::kCpu;
  // For the padding; the CPU clears that alone, below.
  if (!on_cpu && bytes > 0) Clear(device, values());
  if (gradients && any_gradient) {
    gradients_ = Buffer(device, static_cast<size_t>(gradient_total) * sizeof(float));
    Clear(device, this->gradients());
  }
  const Namesakes namesakes(graph);
  std::vector<float> plain;
  for (size_t i = 0; i < list_.size(); ++i) {
    Parameter& p = list_[i];
    const GraphParam& param = graph.params[i];
    const bool own = !p.data.defined();
    if (gradients && p.trained && (own || trains_shared)) {
      p.grad = Tensor(this->gradients().data() + gradient_offsets[i], param.stored());
    }
    if (!own) continue;
    float* const at = values().data() + offsets[i];
    p.data = Tensor(at, param.stored());
    if (on_cpu) std::fill(at + p.data.count(), at + Padded(p.data.count()), 0.0f);
    const uint64_t stream = FillStream(p.layer, namesakes.NumberOf(param.owner), p.index);
    if (on_cpu && !p.layout) {
      Fill(param.filler, seed, stream, p.data);
      continue;
    }
    plain.resize(p.shape.count());
    Fill(param.filler, seed, stream, Tensor(plain.data(), param.spec));
    p.SetData(plain.data());
  }
}

}  // namespace crema
