// Goal: credentials arrive as they were sent, and a key that others may read is refused. Method:
// texts and
// files there and back; files with access for others.
#include "credentials.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "job_security.hpp"
#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;

Credentials sample() {
  return {"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
          "-----BEGIN CERTIFICATE-----\nBB==\n-----END CERTIFICATE-----\n",
          "-----BEGIN PRIVATE KEY-----\nCC==\n-----END PRIVATE KEY-----\n"};
}

TEST(Credentials, GoThereAndBackAsText) {
  const auto back = parse_credentials("\n" + to_text(sample()) + "\n");
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->key, sample().key);
  EXPECT_EQ(back->certificate, sample().certificate);
  EXPECT_EQ(back->authority, sample().authority);
  for (const auto& text :
       std::vector<std::string>{"", sample().key, sample().key + sample().certificate,
                                "-----BEGIN X", "-----END X-----"}) {
    const auto part = parse_credentials(text);
    ASSERT_FALSE(part);
    EXPECT_THAT(part.error().message(), HasSubstr("not all there"));
  }
}

TEST(Credentials, GoThereAndBackAsFilesForTheirOwner) {
  const TemporaryFolder folder;
  const auto at = folder.path() / "a" / "b";
  ASSERT_TRUE(write_credentials(at, sample()));
  const auto back = read_credentials(at.string());
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(to_text(*back), to_text(sample()));
  struct stat facts {};
  ASSERT_EQ(::stat((at / "key.pem").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(at.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  EXPECT_FALSE(write_credentials(at, sample())) << "none are overwritten";
  ASSERT_EQ(::chmod((at / "key.pem").c_str(), 0604), 0);
  EXPECT_THAT(read_credentials(at.string()).error().message(), HasSubstr("chmod 600"));
  std::filesystem::remove(at / "key.pem");
  std::filesystem::create_symlink("certificate.pem", at / "key.pem");
  EXPECT_FALSE(read_credentials(at.string())) << "a link may lead anywhere";
  EXPECT_THAT(read_credentials("/no/such").error().message(), HasSubstr("/no/such/key.pem"));
}

TEST(JobSecurity, GivesEveryAgentItsOwnAndOnlyWhereTheJobNeedsThem) {
  actors::JobConfig job;
  AgentStart plain;
  ASSERT_TRUE(secure(job, plain));
  EXPECT_TRUE(plain.credentials.empty() && !plain.input) << "connections stay here";
  EXPECT_TRUE(plain.job_name.empty());

  job.transport.nics = actors::NicSource::kInterfaces;
  AgentStart start;
  ASSERT_TRUE(secure(job, start));
  EXPECT_THAT(start.job_name, testing::StartsWith("holmes-"));
  const auto a0 = start.input({HostId(0), "a0", start.job_name, ""});
  const auto again = start.input({HostId(0), "a0", start.job_name, ""});
  ASSERT_TRUE(a0 && again);
  EXPECT_NE(*a0, *again) << "an agent that is started again has a new key";
  EXPECT_EQ(parse_credentials(*a0)->authority, start.credentials.authority);

  job.transport.security = actors::Security::kNone;
  AgentStart insecure;
  ASSERT_TRUE(secure(job, insecure));
  EXPECT_TRUE(insecure.credentials.empty() && !insecure.input);

  job.transport.security = actors::Security::kTls;
  AgentStart by_others;
  by_others.by_others = true;
  EXPECT_THAT(secure(job, by_others).error().message(), HasSubstr("holmes security issue"));
}

}  // namespace
}  // namespace holmes::launcher
