#include "runtime/arena.h"

#include "base/byte_size.h"
#include "crema/error.h"

namespace crema {

namespace {

const Step& StepAt(const Program& program, int step) {
  const int forward = static_cast<int>(program.forward.size());
  return step < forward ? program.forward[step] : program.backward[step - forward];
}

// The step at which the most bytes are in use.
int PeakStep(const Program& program, size_t* most) {
  int peak = 0;
  *most = 0;
  for (int step = 0; step < program.steps(); ++step) {
    size_t bytes = 0;
    const auto add = [&](const Storage& storage) {
      if (storage.part < 0 && storage.first <= step && step <= storage.last) bytes += storage.bytes;
    };
    for (const Storage& storage : program.storages) add(storage);
    for (const ProgramPart& part : program.parts) add(part.memory);
    if (bytes <= *most) continue;
    *most = bytes;
    peak = step;
  }
  return peak;
}

std::string LargestAt(const Program& program, int step) {
  const PlannedTensor* largest = nullptr;
  size_t bytes = 0;
  for (const PlannedTensor& tensor : program.tensors) {
    if (tensor.storage < 0 || tensor.spec.bytes() <= bytes) continue;
    const Storage& storage = program.storages[tensor.storage];
    if (storage.first > step || step > storage.last) continue;
    largest = &tensor;
    bytes = tensor.spec.bytes();
  }
  return largest ? "\"" + largest->name + "\" with " + FormatBytes(bytes) : "";
}

std::string Explain(const CompiledNet& net, size_t bytes) {
  size_t most = 0;
  const int step = PeakStep(net.program, &most);
  std::string text = "net \"" + net.graph.name + "\" needs " + FormatBytes(bytes) + " for its passes";
  const Step& at = StepAt(net.program, step);
  if (at.node >= 0) {
    const Node& node = net.graph.unit(at.node);
    text += "; the most is in use in the " +
            std::string(step < static_cast<int>(net.program.forward.size()) ? "forward" : "backward") +
            " pass of layer \"" + node.name() + "\" (" + FormatBytes(most) + ", " + LargestAt(net.program, step) + ")";
  }
  return text;
}

}  // namespace

Buffer AllocateArena(const CompiledNet& net, Device& device, size_t bytes) {
  try {
    return Buffer(device, bytes);
  } catch (const EnvironmentError& error) {
    const bool gpu_in_floats = device.type() == DeviceType::kCuda &&
                               (net.graph.factors == Factors::kF32 || net.graph.factors == Factors::kTF32);
    throw EnvironmentError(Explain(net, bytes) + ": " + error.what() +
                           (gpu_in_floats ? "; precision: BF16 or FP16 holds images in half of it" : ""));
  }
}

}  // namespace crema
