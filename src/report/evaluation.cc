#include "report/evaluation.h"

#include "base/number_text.h"
#include "report/log_observer.h"
#include "solver/test_outputs.h"

namespace crema {

Evaluation Evaluate(Net& net, int batches, const std::function<void(const std::string& line)>& log,
                    ApVersion ap_version) {
  Evaluation result;
  result.batches = batches;
  BeginTest(net);
  TestOutputs total(net, ap_version);
  for (int batch = 0; batch < batches; ++batch) {
    result.loss += net.Forward();
    total.AddBatch();
    const std::vector<NetOutput> outputs = net.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (total.is_detection(i)) continue;  // rows of single objects
      for (int64_t k = 0; k < outputs[i].value.count(); ++k) {
        log("Batch " + std::to_string(batch) + ", " + outputs[i].name + " = " +
            FormatNumber(outputs[i].value.value(k)));
      }
    }
  }
  result.loss /= batches;
  log("Loss: " + FormatNumber(result.loss));
  result.outputs = total.Values(true);
  for (const OutputValue& output : result.outputs) {
    for (const std::string& line : ClassLines(output)) log(line);
    log(output.name + " = " + FormatNumber(output.value) + LossNote(output));
  }
  return result;
}

}  // namespace crema
