// What layers share whose top follows from the shapes of the bottoms, so that it is written once.
#ifndef CREMA_LAYERS_CONSTANT_SOURCE_H_
#define CREMA_LAYERS_CONSTANT_SOURCE_H_

#include "crema/layer.h"

namespace crema {

class ConstantSource : public Layer {
 public:
  void Forward(const LayerRun& run) final {
    const Tensor& top = run.tops[0];
    wrote_ = written_ != top.raw();
    if (wrote_) Write(top);
    written_ = top.raw();
  }
  bool wrote_tops() const final { return wrote_; }

 protected:
  // To be called by Setup of a derived class.
  static void MakeConstant(LayerSetup& setup) {
    setup.MakeNonDifferentiable();
    setup.MakeSource();
  }
  virtual void Write(const Tensor& top) const = 0;

 private:
  const void* written_ = nullptr;  // where the top lay when it was written
  bool wrote_ = false;             // in the latest pass
};

}  // namespace crema

#endif  // CREMA_LAYERS_CONSTANT_SOURCE_H_
