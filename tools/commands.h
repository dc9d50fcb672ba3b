// The commands of the program crema, one file each.
#ifndef CREMA_TOOLS_COMMANDS_H_
#define CREMA_TOOLS_COMMANDS_H_

#include "tools/command_line.h"

namespace crema::tools {

const Command& TrainCommand();
const Command& TestCommand();
const Command& TimeCommand();
const Command& CompileCommand();
const Command& ProbeCommand();
const Command& DeviceQueryCommand();
const Command& KeygenCommand();
const Command& ClusterCommand();
const Command& ZooCommand();
const Command& PredictCommand();
const Command& ExtractCommand();
const Command& DetectCommand();
const Command& GenerateCommand();
const Command& BnStatisticsCommand();
const Command& EvaluateCommand();
const Command& FinetuneCommand();
const Command& CurvesCommand();
const Command& ExportCommand();
const Command& ImportCommand();

}  // namespace crema::tools

#endif  // CREMA_TOOLS_COMMANDS_H_
