#include "zoo/fetch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "crema/error.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

constexpr int kNoProgram = 127;         // of a child that could not become the program, as shells have it
constexpr int kCannotResume = 33;       // of curl: the server does not give parts of files
constexpr char kNoSuchRange[] = "416";  // HTTP's: what is asked for lies behind the file's end

// The bytes of "%41" and the like.
std::string Decoded(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
        std::isxdigit(static_cast<unsigned char>(text[i + 2]))) {
      decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// What PathOf makes `path` of.
std::string UrlOf(const std::string& path) {
  std::string url = "file://";
  for (const char c : path) url += c == '%' ? std::string("%25") : std::string(1, c);
  return url;
}

// Of file:///path and file://localhost/path; empty where the URL names another machine.
std::string PathOf(const std::string& url) {
  std::string path = url.substr(std::strlen("file://"));
  if (path.starts_with("localhost/")) path = path.substr(std::strlen("localhost"));
  return path.starts_with("/") ? Decoded(path) : "";
}

// Goes on behind what `part` holds. Returns why it could not; empty when all is there.
std::string CopyPart(const std::string& url, const std::string& part) {
  const std::string from = PathOf(url);
  if (from.empty()) return "names another machine; expected file:///path";
  if (const std::string other = OtherThanFile(from); !other.empty()) return other;
  std::ifstream in(from, std::ios::binary);
  if (!in) return std::string("cannot be read: ") + std::strerror(errno);
  std::error_code error;
  uint64_t have = fs::exists(part, error) ? fs::file_size(part, error) : 0;
  if (have > fs::file_size(from, error)) have = 0;
  in.seekg(static_cast<std::streamoff>(have));
  std::ofstream out(part, std::ios::binary | (have > 0 ? std::ios::app : std::ios::trunc));
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    out.write(block.data(), in.gcount());
  }
  out.flush();
  if (!out) throw EnvironmentError("cannot write \"" + part + "\": " + std::strerror(errno));
  return in.bad() ? std::string("cannot be read: ") + std::strerror(errno) : "";
}

struct CurlResult {
  int status = 0;     // its exit status
  std::string reply;  // the server's last code: "206"; "000" without any
};

// Runs curl with its messages on our stderr.
CurlResult RunCurl(const std::string& url, const std::string& part, bool resume) {
  std::vector<std::string> words = {"curl",        "--fail",        "--location",   "--proto",
                                    "=http,https", "--proto-redir", "=http,https",  "--connect-timeout",
                                    "30",          "--write-out",   "%{http_code}", "--output",
                                    part};
  if (isatty(STDERR_FILENO)) {
    words.push_back("--progress-bar");
  } else {
    words.insert(words.end(), {"--silent", "--show-error"});
  }
  if (resume) words.insert(words.end(), {"--continue-at", "-"});
  words.insert(words.end(), {"--", url});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw EnvironmentError(std::string("cannot start curl: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    // It must not go on writing when this program is killed.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(ends[1], STDOUT_FILENO);
    execvp("curl", arguments.data());
    _exit(kNoProgram);
  }
  const int error = errno;
  close(ends[1]);
  CurlResult result;
  char reply[64];
  for (ssize_t got = 1; child > 0 && got != 0;) {
    got = read(ends[0], reply, sizeof reply);
    if (got > 0) result.reply.append(reply, static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  if (child < 0) throw EnvironmentError(std::string("cannot start curl: ") + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

// Goes on behind what `part` holds, where the server can do that. Returns why it could not; empty when all is there.
std::string Download(const std::string& url, const std::string& part) {
  std::error_code error;
  const bool resume = fs::exists(part, error) && fs::file_size(part, error) > 0;
  CurlResult result = RunCurl(url, part, resume);
  if (resume && result.status != 0 && (result.status == kCannotResume || result.reply == kNoSuchRange)) {
    fs::remove(part, error);
    result = RunCurl(url, part, false);
  }
  if (result.status == kNoProgram) {
    throw EnvironmentError("the program curl, which fetches from the network, is not installed; install it, or " +
                           ("download " + url) + " yourself and give --mirror=file:///FOLDER");
  }
  if (result.status == 0) return "";
  return "curl could not fetch it (exit status " + std::to_string(result.status) +
         (result.reply.empty() || result.reply == "000" ? "" : ", the server's reply " + result.reply) + ")";
}

void Sync(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!synced) throw EnvironmentError("cannot flush \"" + path + "\": " + std::strerror(errno));
}

// Returns what went wrong; empty when `part` has that sum. What was begun elsewhere may not fit: then once more from
// the begin.
std::string Fetch(const std::string& url, const std::string& part, const std::string& sha256) {
  std::error_code error;
  for (bool resumed = fs::exists(part, error) && fs::file_size(part, error) > 0;; resumed = false) {
    if (resumed && Sha256OfFile(part) == sha256) return "";
    std::string problem = url.starts_with("file://") ? CopyPart(url, part) : Download(url, part);
    if (!problem.empty()) return problem;
    const std::string sum = Sha256OfFile(part);
    if (sum == sha256) return "";
    fs::remove(part, error);
    if (!resumed) {
      return "is another file, which was removed: its SHA-256 is " + sum + ", the card's " + sha256;
    }
  }
}

std::vector<std::string> Sources(const ZooModel& model, const FetchOptions& options) {
  std::vector<std::string> urls;
  if (!options.mirror.empty()) {
    const std::string prefix = options.mirror + (options.mirror.ends_with("/") ? "" : "/");
    if (!prefix.starts_with("https://") && !prefix.starts_with("http://") && !prefix.starts_with("file://")) {
      throw UserError("the mirror \"" + options.mirror + "\" is no URL; expected https://, http:// or file://");
    }
    urls.push_back(prefix + model.card.name + "/" + model.card.weights);
    urls.push_back(prefix + model.card.weights);
  }
  if (!model.card.weights_url.empty()) urls.push_back(model.card.weights_url);
  return urls;
}

}  // namespace

std::string FetchWeights(const ZooModel& model, const FetchOptions& options) {
  const Card& card = model.card;
  const Location where{model.folder + "/README.md", 0, 0};
  if (card.weights.empty()) {
    throw UserError(where, "names no weights to fetch for " + card.name +
                               "; train it, as its card says (`crema zoo show " + card.name + "`)");
  }
  const std::string folder = options.output.empty() ? model.folder : options.output;
  MakeFolder(folder);
  std::error_code error;
  const std::string target = (fs::path(folder) / card.weights).string(), part = target + ".part";
  if (fs::exists(target, error)) {
    const std::string sum = Sha256OfFile(target);
    if (sum == card.weights_sha256) {
      options.say(target + " is there already, and its sum is right");
      return target;
    }
    throw UserError({target, 0, 0}, "is another file: its SHA-256 is " + sum + ", the card's " + card.weights_sha256 +
                                        "; move it away, or give --output=DIR");
  }
  // Weights that came with the zoo are only copied.
  std::vector<std::string> urls = Sources(model, options);
  if (model.has_weights) urls.insert(urls.begin(), UrlOf(fs::absolute(model.weights_path()).string()));
  if (urls.empty()) {
    throw UserError(where, "gives no weights_url, and the file \"" + card.weights +
                               "\" is not beside it; give --mirror=URL where you have it");
  }
  if (access(folder.c_str(), W_OK) != 0) {
    throw EnvironmentError("cannot write to \"" + folder + "\": " + std::strerror(errno) + "; give --output=DIR");
  }
  std::vector<std::string> failures;
  for (const std::string& url : urls) {
    options.say("fetching " + url);
    const std::string problem = Fetch(url, part, card.weights_sha256);
    if (!problem.empty()) {
      failures.push_back(url + ": " + problem);
      continue;
    }
    Sync(part);
    if (rename(part.c_str(), target.c_str()) != 0) {
      throw EnvironmentError("cannot finish \"" + target + "\": " + std::strerror(errno));
    }
    SyncDirectory(folder);
    return target;
  }
  std::string all = "the weights of " + card.name + " could not be fetched";
  for (const std::string& failure : failures) all += "\n  " + failure;
  throw EnvironmentError(all);
}

}  // namespace crema
