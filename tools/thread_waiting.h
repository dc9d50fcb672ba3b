// How OpenMP's threads wait for each other.
#ifndef CREMA_TOOLS_THREAD_WAITING_H_
#define CREMA_TOOLS_THREAD_WAITING_H_

namespace crema::tools {

// GCC's OpenMP lets threads spin for milliseconds at the end of every parallel loop. Alone on a machine that is best;
// where something else runs too (another training, the data thread) each spinning thread keeps the one it waits for
// from its core. A short spin costs nothing alone and halves the time of a step on a busy machine
// (docs/performance.md). OpenMP reads the setting when the program is loaded, so the program starts itself again with
// it, once. Does nothing where the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT. First thing in main.
void SpinBriefly(char** argv);

}  // namespace crema::tools

#endif  // CREMA_TOOLS_THREAD_WAITING_H_
