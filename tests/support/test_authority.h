// A certificate authority for tests.
#ifndef ATTENDANT_TESTS_SUPPORT_TEST_AUTHORITY_H_
#define ATTENDANT_TESTS_SUPPORT_TEST_AUTHORITY_H_

#include <string>

#include "absl/time/time.h"

struct evp_pkey_st;
struct x509_st;

namespace attendant {

// A certificate and its key, in PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

// A self-signed authority with a key of its own.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  // Returns the authority's certificate in PEM.
  const std::string& certificate() const { return certificate_; }

  // Issues a certificate for `host`, as in "IP:127.0.0.1", and its key. It is
  // valid from two hours ago until now + `validity`, which may be negative.
  TestCertificate Issue(const std::string& host = "IP:127.0.0.1",
                        absl::Duration validity = absl::Hours(1)) const;

 private:
  evp_pkey_st* key_ = nullptr;
  x509_st* root_ = nullptr;
  std::string certificate_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_TEST_AUTHORITY_H_
