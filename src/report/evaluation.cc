#include "report/evaluation.h"

#include "base/number_text.h"
#include "report/log_observer.h"

namespace crema {

Evaluation Evaluate(Net& net, int batches, const std::function<void(const std::string& line)>& log) {
  Evaluation result;
  result.batches = batches;
  std::vector<double> sums;
  for (int batch = 0; batch < batches; ++batch) {
    result.loss += net.Forward();
    size_t at = 0;
    for (const NetOutput& output : net.outputs()) {
      for (int64_t i = 0; i < output.value.count(); ++i, ++at) {
        const double value = output.value.value(i);
        if (batch == 0) {
          sums.push_back(0);
          result.outputs.push_back({output.name, 0, output.loss_weight});
        }
        sums[at] += value;
        log("Batch " + std::to_string(batch) + ", " + output.name + " = " + FormatNumber(value));
      }
    }
  }
  result.loss /= batches;
  log("Loss: " + FormatNumber(result.loss));
  for (size_t i = 0; i < sums.size(); ++i) {
    OutputValue& output = result.outputs[i];
    output.value = static_cast<float>(sums[i] / batches);
    log(output.name + " = " + FormatNumber(output.value) + LossNote(output));
  }
  return result;
}

}  // namespace crema
