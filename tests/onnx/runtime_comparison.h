// What ONNX Runtime makes of exported nets, compared with what crema computes: all nets of one test in one Python
// process, tests/onnx/compare.py.
#ifndef CREMA_TESTS_ONNX_RUNTIME_COMPARISON_H_
#define CREMA_TESTS_ONNX_RUNTIME_COMPARISON_H_

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "crema/net.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "onnx/made_model.h"
#include "report/assumed_inputs.h"
#include "temporary_folder.h"

namespace crema::testing {

class RuntimeComparison {
 public:
  // Writes the values of a net's inputs.
  using Fill = std::function<void(Net& net)>;

  // Why there is nothing to compare with; empty where the Python of CREMA_ONNX_PYTHON, or python3, has onnxruntime and
  // numpy.
  static std::string Unavailable();

  // Exports the net, and runs it here as the file is and, where the batch is open, for one item more; with `small` for
  // one and two items instead. Throws what MakeOnnxModel does. Many large nets are run in several processes.
  void Add(const std::string& name, const NetFile& file, const std::vector<LayerWeights>& weights, const Fill& fill,
           const OnnxOptions& options = {}, bool small = false);

  // Imports the model and runs what that gives, with inputs of other shapes where some are given, on what `fill`
  // writes. Throws what ImportOnnxModel does.
  void AddImported(const std::string& name, MadeModel model, const Fill& fill, const BlobShapes& shapes = {});

  // Of all that is compared, in shares of an output's largest element.
  void set_tolerance(double tolerance) { tolerance_ = tolerance; }

  int nets() const { return nets_; }
  int open() const { return open_; }  // those whose batch is

  // Lets ONNX Runtime run what is left, and returns what was wrong with all nets: "name: reason".
  std::vector<std::string> Problems();

 private:
  void Begin();
  std::string NextModel();  // its path
  void AddRun(const std::string& name, const std::string& model, Net& net, const Fill& fill);

  void Run();

  std::unique_ptr<TemporaryFolder> folder_;
  std::ofstream list_;
  std::vector<std::string> problems_;
  double tolerance_ = 1e-4;
  size_t bytes_ = 0;  // in the folder
  int nets_ = 0, tensors_ = 0, open_ = 0;
};

// A net in TEST, with its weights.
std::unique_ptr<Net> RunnableNet(const ImportedNet& imported, const BlobShapes& shapes = {});

// The net's parameters, as a weights file has them.
std::vector<LayerWeights> WeightsOf(const Net& net);

}  // namespace crema::testing

#endif  // CREMA_TESTS_ONNX_RUNTIME_COMPARISON_H_
