// Darknet's .cfg files: a [section] for each layer, with a line `key=value` for each of its settings. Lines that begin
// with # or ; are comments, and # begins one behind a value, too; blanks mean nothing anywhere.
#ifndef CREMA_DARKNET_CFG_FILE_H_
#define CREMA_DARKNET_CFG_FILE_H_

#include <string>
#include <vector>

namespace crema::darknet {

struct CfgEntry {
  std::string key, value;  // neither is empty
  int line = 0;
};

struct CfgSection {
  std::string kind;  // what stands in the brackets: "convolutional"
  int line = 0;
  std::vector<CfgEntry> entries;
};

// The sections in their order, of which there is one at least. Throws UserError with every line that is none of the
// above, EnvironmentError where the file cannot be read.
std::vector<CfgSection> ReadCfgFile(const std::string& path);
// `name` stands for the file in messages.
std::vector<CfgSection> ParseCfg(const std::string& text, const std::string& name);

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_CFG_FILE_H_
