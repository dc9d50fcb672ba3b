// Small nets for the tests of src/compiler, and what compiling them says.
#ifndef CREMA_TESTS_COMPILER_SMALL_NETS_H_
#define CREMA_TESTS_COMPILER_SMALL_NETS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "crema/error.h"
#include "device/device.h"
#include "errors.h"

namespace crema::testing_compiler {

inline NetOptions Options(Phase phase = TRAIN) {
  NetOptions options;
  options.phase = phase;
  options.context.device = &CpuDevice();
  return options;
}

// Text of one layer, with `more` inside.
inline std::string L(const std::string& type, const std::string& name, std::vector<std::string> bottoms,
                     std::vector<std::string> tops, const std::string& more = "") {
  std::string text = "layer { type: \"" + type + "\" name: \"" + name + "\"";
  for (const auto& b : bottoms) text += " bottom: \"" + b + "\"";
  for (const auto& t : tops) text += " top: \"" + t + "\"";
  return text + " " + more + " }\n";
}

inline const std::string kInput =
    L("Input", "in", {}, {"data", "label"}, "input_param { shape { dim: 4 dim: 6 } shape { dim: 4 } }");
inline std::string Ip(const std::string& name, const std::string& bottom, const std::string& top, int outputs = 3,
                      const std::string& more = "") {
  return L("InnerProduct", name, {bottom}, {top},
           "inner_product_param { num_output: " + std::to_string(outputs) + " } " + more);
}
inline std::string Loss(const std::string& bottom) { return L("SoftmaxWithLoss", "loss", {bottom, "label"}, {"loss"}); }

inline std::unique_ptr<CompiledNet> Build(const std::string& text, NetOptions options = Options()) {
  return Compile(ParseNet(text, "net.prototxt"), options);
}

inline std::string ErrorOf(const std::string& text, NetOptions options = Options()) {
  return ThrownBy<UserError>([&] { Build(text, options); });
}

}  // namespace crema::testing_compiler

#endif  // CREMA_TESTS_COMPILER_SMALL_NETS_H_
