// Where nets are computed: what Context::device and SolverOptions::device, ::devices name.
#ifndef CREMA_DEVICE_H_
#define CREMA_DEVICE_H_

namespace crema {

class Device;

// The machine's CPU; one object for the whole process, thread-safe.
Device& CpuDevice();

// The GPU of this number, as `crema device_query` counts them, from 0; made once for the process. Throws
// EnvironmentError, with the remedy, where the GPU library, the driver or that GPU is not there. Thread-safe.
Device& GpuDevice(int id);

}  // namespace crema

#endif  // CREMA_DEVICE_H_
