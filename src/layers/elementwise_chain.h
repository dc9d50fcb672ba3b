// Layers that are a function of single elements, alone or several in a row (ops/activations/elementwise_chain.h).
#ifndef CREMA_LAYERS_ELEMENTWISE_CHAIN_H_
#define CREMA_LAYERS_ELEMENTWISE_CHAIN_H_

#include <span>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "ops/activations/elementwise_chain.h"

namespace crema {

// The types that may be a link, and those of them that a convolution ends with and whose gradient is mostly known from
// the output or needs the input, as REGISTER_FUSION takes them.
#define CREMA_OUTPUT_ACTIVATIONS "ReLU|ReLU6|Sigmoid|TanH|ELU"
#define CREMA_INPUT_ACTIVATIONS "Swish|HardSwish|Mish"
#define CREMA_CHAIN_LINKS CREMA_OUTPUT_ACTIVATIONS "|" CREMA_INPUT_ACTIVATIONS "|AbsVal|Clip|Power|Dropout"

// Whether layers whose members all but perhaps the first are of these types may be done in one pass.
bool AcceptsChain(std::span<const LayerSetup* const> members, std::string* why_not);

// Of layers of the types CREMA_CHAIN_LINKS.
ElementwiseChain ReadChain(std::span<const LayerParameter* const> members, Phase phase);
ElementwiseChain ReadChain(std::span<const LayerSetup* const> members);

// The members of a layer from `first` on, as a chain, with what it needs while running.
class MemberChain {
 public:
  void Setup(const LayerSetup& setup, int first);
  const ElementwiseChain& chain() const { return chain_; }
  // Declares what the backward pass reads; `count`: elements.
  void Plan(LayerPlan& plan, int64_t count);

  // What the dropouts draw from in this pass.
  std::span<const RandomStream> Streams(const LayerRun& run);
  uint32_t* Masks(const LayerRun& run) const;

 private:
  ElementwiseChain chain_;
  std::vector<int> indices_;  // of the dropouts in the net; -1: of the layer itself
  std::vector<RandomStream> streams_;
  int saved_ = -1;
};

class ElementwiseChainLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override;
  void Plan(LayerPlan& plan) override;
  void Forward(const LayerRun& run) override;
  void Backward(const LayerRun& run) override;

 private:
  MemberChain members_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_ELEMENTWISE_CHAIN_H_
