// Workers that a coordinator starts on its own machine.
#ifndef CREMA_DISTRIBUTED_TRAINING_LOCAL_WORKERS_H_
#define CREMA_DISTRIBUTED_TRAINING_LOCAL_WORKERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace crema {

// Starts them, again when they die, and ends them; what they are says who derives from it. Used by the thread that made
// it.
class LocalWorkers {
 public:
  virtual ~LocalWorkers() = default;
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  // Told of each that ended, however.
  using OnEnd = std::function<void(const std::string& name)>;

  // Starts those that do not run, unless one dies again and again: then it throws EnvironmentError; where another one
  // would end so, too, UserError. What it did is in the sentences that it returns. To be called now and then.
  // `wanted`: whether workers still have something to do. It is asked once one was seen to have ended, which those that
  // were told to end do a moment later than that.
  std::vector<std::string> Tend(int64_t now_ms, const OnEnd& on_end = {}, const std::function<bool()>& wanted = {});
  // No more starting; waits for all to end by themselves, for at most `timeout_ms`.
  void Wind(int64_t timeout_ms, const OnEnd& on_end = {});

 protected:
  struct End {
    std::string how;        // "was ended by signal 9"
    bool hopeless = false;  // another one would end so, too
  };

  explicit LocalWorkers(size_t count);

  size_t count() const { return workers_.size(); }
  static std::string NameOf(size_t index) { return "local-" + std::to_string(index); }
  // Starts all of them. To be called once, by the constructor of who derives from this.
  void StartAll();
  virtual void Start(size_t index) = 0;
  // How a worker that was started came to its end, once; nothing while it runs.
  virtual std::optional<End> TakeEnd(size_t index) = 0;

 private:
  std::optional<End> Look(size_t index, const OnEnd& on_end);

  struct Worker {
    bool running = false;
    int deaths = 0;
    int64_t started = -1, restart_at = 0;  // -1: before the first call of Tend
  };

  std::vector<Worker> workers_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_LOCAL_WORKERS_H_
