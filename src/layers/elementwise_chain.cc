#include "layers/elementwise_chain.h"

#include "crema/fusion.h"
#include "ops/operations.h"

namespace crema {

bool AcceptsChain(std::span<const LayerSetup* const> members, std::string* why_not) {
  for (const LayerSetup* member : members) {
    const LayerParameter& param = member->param();
    if (!ReadActivation(param).chains()) *why_not = "this " + param.type() + " is always done alone";
  }
  return why_not->empty();
}

ElementwiseChain ReadChain(std::span<const LayerParameter* const> members, Phase phase) {
  std::vector<ChainLink> links;
  for (const LayerParameter* member : members) {
    const DropoutParameter& dropout = member->dropout_param();
    if (member->type() == "Dropout" && phase == TRAIN) {
      links.push_back({.dropout_ratio = dropout.dropout_ratio(), .dropout_scales = dropout.scale_train()});
    } else if (member->type() == "Dropout") {
      links.push_back({.activation = {Activation::Kind::kLinear, 1 - dropout.dropout_ratio()}});
    } else {
      links.push_back({.activation = ReadActivation(*member)});
    }
  }
  return ElementwiseChain(std::move(links));
}

ElementwiseChain ReadChain(std::span<const LayerSetup* const> members) {
  std::vector<const LayerParameter*> params;
  for (const LayerSetup* member : members) params.push_back(&member->param());
  return ReadChain(params, members.front()->phase());
}

void MemberChain::Setup(const LayerSetup& setup, int first) {
  const auto members = setup.members();
  chain_ = ReadChain(members.subspan(first), setup.phase());
  indices_.clear();
  for (size_t i = first; i < members.size(); ++i) {
    if (members[i]->type() != "Dropout" || setup.phase() == TEST) continue;
    indices_.push_back(members.size() > 1 ? setup.member_index(static_cast<int>(i)) : -1);
  }
  streams_.assign(indices_.size(), RandomStream(0, 0));
}

void MemberChain::Plan(LayerPlan& plan, int64_t count) {
  if (!plan.backward()) return;
  if (chain_.gradient_reads_output()) plan.BackwardReadsTop(0);
  if (chain_.gradient_reads_input()) plan.BackwardReadsBottom(0);
  const int64_t words = chain_.mask_words(count);
  if (words > 0) saved_ = plan.Save({Shape{words}, DType::kI32});
}

std::span<const RandomStream> MemberChain::Streams(const LayerRun& run) {
  for (size_t i = 0; i < indices_.size(); ++i) {
    const int index = indices_[i] < 0 ? run.layer_index : indices_[i];
    streams_[i] = RandomStream(run.context->draw_seed(), StreamId(static_cast<uint32_t>(index), run.pass));
  }
  return streams_;
}

uint32_t* MemberChain::Masks(const LayerRun& run) const {
  return saved_ < 0 ? nullptr : reinterpret_cast<uint32_t*>(run.saved[saved_].i32());
}

void ElementwiseChainLayer::Setup(LayerSetup& setup) {
  setup.ExpectBottoms(1);
  if (setup.members().size() == 1) setup.ExpectTops(1);
  members_.Setup(setup, 0);
  setup.SetTop(0, setup.bottom_shape(0));
  setup.AllowChannelsLast();
  setup.AllowHalfPrecision();
  setup.AllowInPlace();
  if (setup.phase() == TEST) setup.AllowSplitBatch();  // else elements are dropped at random
  double flops = 0;
  for (const LayerParameter* member : setup.members()) flops += FlopsOf(ReadActivation(*member));
  setup.SetFlops(flops * static_cast<double>(setup.bottom_shape(0).count()));
}

void ElementwiseChainLayer::Plan(LayerPlan& plan) { members_.Plan(plan, plan.top(0).shape.count()); }

void ElementwiseChainLayer::Forward(const LayerRun& run) {
  run.ops->ChainForward(members_.chain(), members_.Streams(run), run.bottoms[0], run.tops[0], members_.Masks(run));
}

void ElementwiseChainLayer::Backward(const LayerRun& run) {
  const ElementwiseChain& chain = members_.chain();
  const Tensor& known = chain.gradient_reads_output() ? run.tops[0] : run.bottoms[0];
  run.ops->ChainBackward(chain, known.raw(), members_.Masks(run), run.top_grads[0], run.bottom_grads[0]);
}

REGISTER_FUSION(ElementwiseChain, ElementwiseChainLayer, .types = {CREMA_CHAIN_LINKS, CREMA_CHAIN_LINKS "+"},
                .most_members = ElementwiseChain::kMostLinks, .accepts = AcceptsChain);

}  // namespace crema
