// The certificates that clients of cpp-httplib trust at https:// addresses.
#pragma once

#include <httplib.h>

#include <string>

#include "common/base/environment.h"
#include "common/tls/tls.h"

namespace rt::http {

// `verify` is "" or "true", "false" (any certificate will do), or a file of trusted certificates.
// Without a file the cluster's authority is trusted if the environment names it, else the system's
// authorities. The certificate must name the host.
inline void set_trusted_certificates(httplib::Client& client, const std::string& verify = "") {
  if (verify == "false" || verify == "False" || verify == "0")
    return client.enable_server_certificate_verification(false);
  bool named = !verify.empty() && verify != "true" && verify != "True" && verify != "1";
  std::string file = named ? verify : environment(tls::kAuthorities);
  if (!file.empty()) client.set_ca_cert_path(file.c_str());
}

// Whether a request failed because the server's certificate is not trusted, or because the file of
// trusted certificates cannot be used.
inline bool is_untrusted(httplib::Error error) {
  return error == httplib::Error::SSLServerVerification || error == httplib::Error::SSLLoadingCerts;
}

}  // namespace rt::http
