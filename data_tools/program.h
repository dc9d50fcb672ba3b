// The programs that make and look at databases: each is one command.
#ifndef CREMA_DATA_TOOLS_PROGRAM_H_
#define CREMA_DATA_TOOLS_PROGRAM_H_

#include "tools/command_line.h"

namespace crema::tools {

// Defined by each program's own source file; its name is the program's.
Command ProgramCommand();

}  // namespace crema::tools

#endif  // CREMA_DATA_TOOLS_PROGRAM_H_
