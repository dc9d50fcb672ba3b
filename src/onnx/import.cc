#include "onnx/import.h"

#include "compiler/compiler.h"
#include "device/device.h"
#include "graph/program.h"
#include "onnx/graph_reader.h"
#include "onnx/model_reader.h"

namespace crema {

ImportedNet ImportOnnxModel(const std::string& path, const OnnxImportOptions& options) {
  const onnx::ModelProto model = onnx::ReadModelFile(path);
  ImportedNet imported = onnx::GraphReader(model, path, options).Read();
  // What is written can be run.
  NetOptions net;
  net.phase = TEST;
  net.backward = false;
  net.context.device = &CpuDevice();
  for (const Diagnostic& warning : Compile(MakeNetFile(imported.net, {path, 0, 0}), net)->warnings) {
    imported.notes.push_back(warning);
  }
  return imported;
}

}  // namespace crema
