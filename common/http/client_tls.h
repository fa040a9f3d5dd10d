// What cpp-httplib's clients trust, for https:// addresses.
#pragma once

#include <httplib.h>

#include <string>

#include "common/base/environment.h"
#include "common/tls/tls.h"

namespace rt::http {

// `verify`: "" or "true", "false" (take any certificate), or a file of certificates. Without a file
// the cluster's authority counts when the environment names it, else the system's. The certificate
// has to name the host.
inline void trust(httplib::Client& client, const std::string& verify = "") {
  if (verify == "false" || verify == "False" || verify == "0")
    return client.enable_server_certificate_verification(false);
  bool named = !verify.empty() && verify != "true" && verify != "True" && verify != "1";
  std::string file = named ? verify : environment(tls::kAuthorities);
  if (!file.empty()) client.set_ca_cert_path(file.c_str());
}

// The server has answered, with a certificate that is not trusted, or the file that says what is
// trusted cannot be used.
inline bool is_untrusted(httplib::Error error) {
  return error == httplib::Error::SSLServerVerification || error == httplib::Error::SSLLoadingCerts;
}

}  // namespace rt::http
