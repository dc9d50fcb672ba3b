#include "curves/event_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/write_all.h"
#include "crema/error.h"
#include "curves/event.pb.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

namespace fs = std::filesystem;
using tensorboard::Event;

constexpr char kBegin[] = "events.out.tfevents.", kEnd[] = ".crema";

double UnixTime() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// CRC-32C (Castagnoli), masked as TFRecord has it.
uint32_t MaskedCrc(const std::string& bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries = {};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Record(const Event& event) {
  const std::string data = WireBytes(event), length = LittleEndian(data.size(), 8);
  return length + LittleEndian(MaskedCrc(length), 4) + data + LittleEndian(MaskedCrc(data), 4);
}

// Where points of a curve go, in the folder of their run.
std::string FolderOf(const Curve& curve) {
  if (curve.kind != CurveKind::kTest) return "train";
  return curve.net == 0 ? "test" : "test_" + std::to_string(curve.net);
}

std::string TagOf(const Curve& curve) {
  return curve.kind == CurveKind::kLearningRate ? "learning_rate" : curve.output + curve.element;
}

// Of runs that may have the names of files; none that listings hide.
std::string FolderName(std::string name) {
  while (name.starts_with("../") || name.starts_with("./")) name.erase(0, name.find('/') + 1);
  std::replace(name.begin(), name.end(), '/', '_');
  name.erase(0, name.find_first_not_of('.'));
  return name.empty() ? "run" : name;
}

}  // namespace

struct EventFolder::File {
  std::string path;
  int fd = -1;
  double started = 0;  // UnixTime of the run's second 0

  ~File() {
    if (fd >= 0) close(fd);
  }
  void Append(const std::string& bytes) const {
    if (!WriteAll(fd, bytes.data(), bytes.size())) {
      throw EnvironmentError(path + ": cannot be written: " + WriteFailure(errno));
    }
  }
};

EventFolder::EventFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error || access(path_.c_str(), W_OK | X_OK) != 0) {
    throw EnvironmentError(path_ +
                           ": no events can be written there: " + (error ? error.message() : std::strerror(errno)));
  }
}

EventFolder::~EventFolder() = default;

EventFolder::File& EventFolder::FileOf(const std::string& folder) {
  const auto known = files_.find(folder);
  if (known != files_.end()) return *known->second;
  std::error_code error;
  fs::create_directories(folder, error);
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.starts_with(kBegin) && name.ends_with(kEnd)) fs::remove(entry.path(), ignored);
  }
  auto file = std::make_unique<File>();
  const double now = UnixTime();
  file->path = folder + "/" + kBegin + std::to_string(static_cast<int64_t>(now)) + kEnd;
  file->fd = open(file->path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file->fd < 0) throw EnvironmentError(file->path + ": cannot be written: " + WriteFailure(errno));

  Event version, start;
  version.set_wall_time(now);
  version.set_file_version("brain.Event:2");
  start.set_wall_time(now);
  start.set_step(0);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  file->Append(Record(version) + Record(start));
  return *files_.emplace(folder, std::move(file)).first->second;
}

void EventFolder::Write(const std::vector<TrainingRun>& runs) {
  for (const TrainingRun& run : runs) {
    double seconds = 0;
    for (const Curve& curve : run.curves) seconds = std::max(seconds, curve.points.back().seconds);
    const std::string around = runs.size() > 1 ? path_ + "/" + FolderName(run.name) : path_;
    std::map<std::string, std::map<int, Event>> events;  // by folder and iteration
    for (const Curve& curve : run.curves) {
      const std::string folder = around + "/" + FolderOf(curve), tag = TagOf(curve);
      int& written = written_.try_emplace({folder, tag}, -1).first->second;
      for (const CurvePoint& point : curve.points) {
        if (point.iteration <= written) continue;
        Event& event = events[folder][point.iteration];
        event.set_step(point.iteration);
        event.set_wall_time(point.seconds);  // the rest is known below
        tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
        value->set_tag(tag);
        value->set_simple_value(static_cast<float>(point.value));
      }
      written = std::max(written, curve.points.back().iteration);
    }
    for (auto& [folder, of_folder] : events) {
      File& file = FileOf(folder);
      if (file.started == 0) file.started = UnixTime() - seconds;
      std::string bytes;
      for (auto& [iteration, event] : of_folder) {
        event.set_wall_time(file.started + event.wall_time());
        bytes += Record(event);
      }
      file.Append(bytes);
    }
  }
}

}  // namespace crema
