// main() of all programs of this folder.
#include "data_tools/program.h"

int main(int argc, char** argv) {
  const crema::tools::Command command = crema::tools::ProgramCommand();
  return crema::tools::RunCommand(command, command.name, {argv + 1, argv + argc});
}
