#include "darknet/import.h"

#include "darknet/cfg_file.h"
#include "darknet/net_reader.h"
#include "darknet/weights_file.h"

namespace crema {

ImportedNet ImportDarknetNet(const std::string& cfg, const std::string& weights, const DarknetImportOptions& options,
                             DarknetTraining* training) {
  const std::vector<darknet::CfgSection> sections = darknet::ReadCfgFile(cfg);
  darknet::NetReader reader(sections, cfg, options);
  ImportedNet imported = reader.Read();
  CheckThatItRuns(cfg, &imported);
  if (!weights.empty()) {
    darknet::WeightsFile file(weights);
    reader.weights().Read(&file, &imported);
  }
  reader.weights().MoveTo(&imported);
  imported.weights.set_name(imported.net.name());
  if (training) {
    *training = reader.Training(imported.net);
    reader.NoteFrozenAtRandom(&imported);
  }
  return imported;
}

}  // namespace crema
