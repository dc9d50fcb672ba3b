// Flags that several of the programs take.
#ifndef CREMA_DATA_TOOLS_DATASET_FLAGS_H_
#define CREMA_DATA_TOOLS_DATASET_FLAGS_H_

#include <gflags/gflags_declare.h>

#include <string>
#include <vector>

#include "data/databases/dataset_writer.h"
#include "tools/command_line.h"

DECLARE_bool(force);
DECLARE_string(backend);
DECLARE_string(split);
DECLARE_int64(seed);
DECLARE_int32(threads);

namespace crema::tools {

// The table entries of the flags above.
Flag ForceFlag();
Flag BackendFlag();
Flag SplitFlag(const std::string& how);
Flag SeedFlag();
// Of --labels, which each program defines: `what` have the names of classes.
Flag LabelsFlag(const std::string& what);
Flag ThreadsFlag();

// The database to write, as the flags say, and what it is made of. Throws UserError where --backend or --split is none.
DatasetTarget TargetOf(const CommandLine& line, const std::string& database, std::vector<std::string> inputs = {});
[[noreturn]] void RejectFlag(const CommandLine& line, const std::string& message);

}  // namespace crema::tools

#endif  // CREMA_DATA_TOOLS_DATASET_FLAGS_H_
