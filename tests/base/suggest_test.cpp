// Goal: a misspelt name is answered with the one that was meant, and nonsense with none.
#include "holmes/base/suggest.hpp"

#include <array>

#include <gtest/gtest.h>

namespace holmes {
namespace {

constexpr std::array<std::string_view, 4> kNames{"train", "plan", "generate", "agent"};

TEST(DidYouMean, FindsTheNearestName) {
  EXPECT_EQ(did_you_mean("trian", kNames), "; did you mean 'train'?");
  EXPECT_EQ(did_you_mean("paln", kNames), "; did you mean 'plan'?");
  EXPECT_EQ(did_you_mean("genrat", kNames), "; did you mean 'generate'?");
}

TEST(DidYouMean, OffersNothingForWhatIsNoTypingError) {
  EXPECT_EQ(did_you_mean("", kNames), "");
  EXPECT_EQ(did_you_mean("xyzzy-frobnicate", kNames), "");
  EXPECT_EQ(did_you_mean(std::string(1000, 't'), kNames), "");
}

}  // namespace
}  // namespace holmes
