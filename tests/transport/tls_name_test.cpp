// Goal: a certificate's name is what it was made for, and no two names look the same.
// Method: names with every awkward byte, there and back; URIs that nobody of ours would write.
#include "tls/name.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holmes::transport::tls {
namespace {

TEST(CertifiedName, GoesThereAndBack) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const CertifiedName& name :
       {CertifiedName{"demo", "a0"}, CertifiedName{"demo", ""}, CertifiedName{"", "a0"},
        CertifiedName{"x/host/a", "b"}, CertifiedName{"x", "a/host/b"}, CertifiedName{all, all},
        CertifiedName{"100%", "user@host"}})
    EXPECT_EQ(from_uri(to_uri(name)), name) << to_uri(name);
  EXPECT_EQ(to_uri({"demo-7", "a0"}), "holmes:job/demo-7/host/a0");
  EXPECT_EQ(to_uri({"demo 7", ""}), "holmes:job/demo%207/coordinator");
}

TEST(CertifiedName, OthersAreNone) {
  for (const char* uri : {"", "holmes:", "holmes:job/x", "holmes:job/x/", "holmes:job/x/host/",
                          "holmes:job/x/host", "holmes:job/x/coordinator/", "holmes:job/x/host/a/b",
                          "holmes:job/x/host/%61", "holmes:job/x/host/%2", "holmes:job/x/host/%zz",
                          "holmes:job/x/host/%2f", "https:job/x/host/a", "holmes:job/x/HOST/a"})
    EXPECT_EQ(from_uri(uri), std::nullopt) << uri;
}

}  // namespace
}  // namespace holmes::transport::tls
