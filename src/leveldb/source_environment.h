// What LevelDB sees in place of the file system, so that it reads a database without changing it.
//
// LevelDB cannot open a database read-only. Opening one takes its lock, makes tables of its log, writes a new MANIFEST,
// CURRENT and log, deletes files that these do not name, and begins to compact in a thread of its own. Here it reads
// the files of the database, and what it writes is kept in memory: the tables that become of the log, which is as large
// as the program that wrote the database let it grow (with Caffe up to 256 MiB), and a MANIFEST. A folder with copies
// of the log and links to the tables would not do: it takes a disk that can be written, and compaction may fill it.
#ifndef CREMA_LEVELDB_SOURCE_ENVIRONMENT_H_
#define CREMA_LEVELDB_SOURCE_ENVIRONMENT_H_

#include <leveldb/env.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace crema::level_db {

// Every call that would write is answered here. May be used by any thread.
class SourceEnvironment : public leveldb::EnvWrapper {
 public:
  // Of the thread that opens the database: others, which compact, are refused what they want to write.
  SourceEnvironment() : EnvWrapper(leveldb::Env::Default()) {}

  leveldb::Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** file) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status CreateDir(const std::string&) override { return {}; }
  leveldb::Status RemoveDir(const std::string&) override { return {}; }
  leveldb::Status RemoveFile(const std::string&) override { return {}; }
  // Of CURRENT, which is not read again.
  leveldb::Status RenameFile(const std::string&, const std::string&) override { return {}; }
  // See SourceLock, which is there before.
  leveldb::Status LockFile(const std::string& name, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string& name, leveldb::Logger** logger) override;

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::string>> written_;
};

}  // namespace crema::level_db

#endif  // CREMA_LEVELDB_SOURCE_ENVIRONMENT_H_
