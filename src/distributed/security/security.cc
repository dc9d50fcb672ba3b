#include "distributed/security/security.h"

#include <arpa/inet.h>

#include <algorithm>
#include <functional>

#include "base/number_text.h"
#include "crema/error.h"
#include "distributed/security/authorized_keys.h"
#include "distributed/security/keys.h"
#include "distributed/sockets/library.h"
#include "distributed/sockets/own_address.h"

namespace crema {

namespace {

// Where to listen, or whom to connect to.
bool IsEndpoint(std::string_view endpoint, bool listens) {
  for (const std::string_view within : {"ipc://", "inproc://"}) {
    if (endpoint.starts_with(within)) return endpoint.size() > within.size();
  }
  if (!endpoint.starts_with(kTcp)) return false;
  endpoint.remove_prefix(std::max(kTcp.size(), endpoint.rfind(';') + 1));
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = endpoint.substr(0, colon), port = endpoint.substr(colon + 1);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (host.empty() || (!in_brackets && host.find(':') != std::string_view::npos)) return false;
  if (listens && port == "*") return true;
  uint32_t number = 0;
  if (!ParseWhole(port, &number) || number > 65535) return false;
  return listens || (number > 0 && host != "*");
}

class Check {
 public:
  Check(const std::string& endpoint, const DistributedParameter::Security& settings, bool is_coordinator,
        const Location& where)
      : endpoint_(endpoint), settings_(settings), is_coordinator_(is_coordinator), where_(where) {}

  Protection Run() {
    CheckEndpoint(endpoint_, is_coordinator_, where_);
    const bool has_keys = !settings_.secret_key_file().empty() || !settings_.authorized_keys_dir().empty() ||
                          !settings_.server_public_key_file().empty();
    if (!has_keys) {
      if (!settings_.allow_plaintext() && !IsLocal(endpoint_)) Error(Missing());
    } else {
      if (settings_.allow_plaintext()) {
        Error(
            "allow_plaintext contradicts the keys; remove allow_plaintext to use them, or the keys to let anybody in");
      }
      CheckSettings();
      // The files only of settings that make sense.
      if (!diagnostics_.has_errors()) CheckFiles();
    }
    diagnostics_.ThrowIfErrors();
    return has_keys ? Protection::kKeys : Protection::kNone;
  }

 private:
  void Error(const std::string& message) { diagnostics_.Error(where_, message); }

  std::string Missing() const {
    if (is_coordinator_) {
      return "others can reach " + endpoint_ +
             ", but secret_key_file and authorized_keys_dir are missing; run `crema keygen --output=coordinator`, set "
             "secret_key_file: \"coordinator.secret\", copy the .public file of each worker into a folder and set "
             "authorized_keys_dir to it; or listen on tcp://127.0.0.1:PORT for workers on this machine only; or set "
             "allow_plaintext: true, which lets anybody who can reach it join, read the net and what it learns from, "
             "and change it";
    }
    return endpoint_ +
           " is on another machine, but --secret_key and --server_key are missing; run `crema keygen --output=NAME`, "
           "give --secret_key=NAME.secret, copy NAME.public into the coordinator's authorized_keys_dir, and give "
           "--server_key=FILE, a copy of the coordinator's .public file; or --allow_plaintext, with which anybody "
           "between here and there can read the net and change what is learned";
  }

  void CheckSettings() {
    if (settings_.secret_key_file().empty()) {
      Error(std::string(is_coordinator_ ? "secret_key_file" : "--secret_key") +
            " is missing beside the other keys; run `crema keygen --output=NAME` and set it to NAME.secret");
    }
    if (is_coordinator_) {
      if (settings_.authorized_keys_dir().empty()) {
        Error(
            "authorized_keys_dir is missing: without it nobody could join; copy the .public file of each worker into a "
            "folder and set it to that");
      }
      if (!settings_.server_public_key_file().empty()) {
        Error("server_public_key_file is for workers, and this is the coordinator; remove it here");
      }
    } else {
      if (settings_.server_public_key_file().empty()) {
        Error(
            "--server_key is missing: without it anybody could pass for the coordinator; set it to a copy of the "
            "coordinator's .public file");
      }
      if (!settings_.authorized_keys_dir().empty()) {
        Error("authorized_keys_dir is for the coordinator, and this is a worker; remove it here");
      }
    }
  }

  // Collects the mistakes of one file and goes on to the next.
  void Collect(const std::function<void()>& read) {
    try {
      read();
    } catch (const UserError& error) {
      for (const Diagnostic& d : error.diagnostics()) diagnostics_.Error(d.where, d.message);
    }
  }

  void CheckFiles() {
    CheckLibrary();
    std::string own_key;
    Collect([&] { own_key = ReadKeyPair(settings_.secret_key_file()).public_key; });
    if (is_coordinator_) {
      Collect([&] { CheckAuthorizedKeys(settings_.authorized_keys_dir()); });
      return;
    }
    Collect([&] {
      if (ReadPublicKey(settings_.server_public_key_file()) == own_key) {
        throw UserError(Location{settings_.server_public_key_file()},
                        "is to be the coordinator's key, but belongs to " + settings_.secret_key_file() +
                            ", the key of this worker; give a copy of the coordinator's .public file, and where it is "
                            "one, make a key of this machine by `crema keygen`: with the coordinator's it could pass "
                            "for the coordinator");
      }
    });
  }

  const std::string& endpoint_;
  const DistributedParameter::Security& settings_;
  const bool is_coordinator_;
  const Location where_;
  Diagnostics diagnostics_;
};

}  // namespace

bool IsLocal(std::string_view endpoint) {
  if (endpoint.starts_with("ipc://") || endpoint.starts_with("inproc://")) return true;
  if (!endpoint.starts_with(kTcp)) return false;
  endpoint.remove_prefix(kTcp.size());
  // What is before a semicolon is where the connection comes from.
  const size_t semicolon = endpoint.rfind(';');
  if (semicolon != std::string_view::npos) endpoint.remove_prefix(semicolon + 1);
  const std::string host(endpoint.substr(0, endpoint.rfind(':')));
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

void CheckEndpoint(const std::string& endpoint, bool is_coordinator, const Location& where) {
  if (IsEndpoint(endpoint, is_coordinator)) return;
  const bool bare = IsEndpoint(std::string(kTcp) + endpoint, is_coordinator);
  throw UserError(where, "\"" + endpoint + "\" is no endpoint; " +
                             (bare             ? "write " + std::string(kTcp) + endpoint
                              : is_coordinator ? "give tcp://*:PORT, or tcp://ADDRESS:PORT for one address of this "
                                                 "machine (in numbers), with a port of up to 65535: tcp://*:5570"
                                               : "give tcp://HOST:PORT, with a port from 1 to 65535: "
                                                 "tcp://node0:5570"));
}

Protection CheckSecurity(const std::string& endpoint, const DistributedParameter::Security& settings,
                         bool is_coordinator, const Location& where) {
  return Check(endpoint, settings, is_coordinator, where).Run();
}

std::string PlaintextWarning(const std::string& endpoint) {
  return "allow_plaintext: anybody who can reach " + endpoint +
         " can join this training, read the net and change what it learns; `crema keygen --help` tells how to use keys";
}

}  // namespace crema
