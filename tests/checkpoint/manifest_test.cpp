#include <functional>

#include <lamina/base/error.hpp>
#include <lamina/checkpoint/manifest.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamina {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// One unit of five elements over two files.
Manifest small_manifest() {
  Manifest manifest;
  manifest.sequence = 3;
  manifest.step = 100;
  manifest.tokens_seen = UINT64_MAX;
  manifest.world_size = 2;
  manifest.shard_count = 2;
  manifest.alignment = 3;
  manifest.strategy = "full";
  manifest.units = {{"head", {{"a", {5}, false, {"b"}}}}};
  manifest.optimizer_step = 99;
  manifest.no_exp_avg_sq = {"a"};
  manifest.skipped_steps = 4;
  manifest.skipped_in_a_row = 1;
  manifest.seed = 1;
  manifest.next_sample = 12345678901234;
  manifest.data_restarts = 2;
  manifest.data_identity = "7 tokens 0123456789abcdef";
  manifest.validation_identity = "3 tokens 00000000000000ff";
  manifest.tokenizer_identity = "fedcba9876543210";
  manifest.config_text = "[run]\nseed = 1\n";
  manifest.model_config_json = "{\"hidden_size\": 8}";
  manifest.extra_json = R"({"scale":65536.0,"third":0.3333333333333333})";
  manifest.files = {{"rank_00000.h5", 100, {{0, {0, 3}, UINT64_MAX, MomentChecksums{1, 2}, 5}}},
                    {"rank_00001.h5", 200, {{0, {3, 5}, 7, std::nullopt, 6}}}};
  manifest.side_files = {{"model/config.json", 18, 9}};
  return manifest;
}

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_manifest(text, "M"));
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const std::function<void(Manifest&)>& change) {
  Manifest manifest = small_manifest();
  change(manifest);
  return refusal(to_json(manifest));
}

TEST(Manifest, ComesBackAsItWas) { EXPECT_EQ(parse_manifest(to_json(small_manifest()), "M"), small_manifest()); }

TEST(Manifest, SurvivesTextThatIsNotUtf8) {
  Manifest manifest = small_manifest();
  manifest.config_text = "dir = caf\xe9";
  EXPECT_EQ(parse_manifest(to_json(manifest), "M").config_text, "dir = caf\xef\xbf\xbd");
}

TEST(Manifest, RefusesAnyChangedByte) {
  const std::string text = to_json(small_manifest());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x01);
    if (text[i] == '\n' || text[i] == ' ') continue;  // white space outside texts is no content
    const std::string answer = refusal(changed);
    EXPECT_NE(answer, "accepted") << "byte " << i << " of " << text;
    EXPECT_THAT(answer, Not(HasSubstr("\n")));
  }
}

TEST(Manifest, RefusesAnyTruncation) {
  const std::string text = to_json(small_manifest());
  for (std::size_t size = 0; size + 1 < text.size(); ++size) EXPECT_NE(refusal(text.substr(0, size)), "accepted");
}

TEST(Manifest, RefusesAnotherVersion) {
  EXPECT_THAT(refusal([](Manifest& m) { m.version = 2; }),
              HasSubstr("it has version 2 and this program reads version 1"));
}

TEST(Manifest, RefusesWhatIsNotAManifest) {
  EXPECT_THAT(refusal(std::string("[]")), HasSubstr("\"format\" is missing"));
  EXPECT_THAT(refusal(std::string("{\"format\": 3}")), HasSubstr("not a text"));
  EXPECT_THAT(refusal(std::string("{\"format\": \"x\"}")), HasSubstr("Lamina"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("cannot use M"));
}

TEST(Manifest, RefusesGapsAndOverlaps) {
  EXPECT_THAT(refusal([](Manifest& m) {
                m.files[1].slices[0].range = {4, 5};
              }),
              HasSubstr("elements 3 to 4 of unit head are in no file"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].slices[0].range = {2, 5}; }), HasSubstr("in two files"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].slices[0].range = {3, 4}; }), HasSubstr("elements 4 to 5"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].slices[0].range = {3, 6}; }), HasSubstr("fewer elements"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files.pop_back(); }), HasSubstr("elements 3 to 5"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].slices[0].range = {5, 3}; }), HasSubstr("impossible range"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].slices[0].unit = 1; }), HasSubstr("not listed"));
}

TEST(Manifest, RefusesNamesThatLeaveTheFolderOrRepeat) {
  EXPECT_THAT(refusal([](Manifest& m) { m.files[0].name = "../x"; }), HasSubstr("not a plain file name"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[0].name = ".."; }), HasSubstr("not a plain file name"));
  EXPECT_THAT(refusal([](Manifest& m) { m.side_files[0].name = "model/../../x"; }), HasSubstr("not a file of"));
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].name = m.files[0].name; }), HasSubstr("listed twice"));
  EXPECT_THAT(refusal([](Manifest& m) { m.units[0].tensors[0].aliases = {"a"}; }), HasSubstr("listed twice"));
}

TEST(Manifest, RefusesAveragedWeightsOfAPart) {
  EXPECT_THAT(refusal([](Manifest& m) { m.files[1].slices[0].ema.reset(); }), HasSubstr("a part of the model only"));
  EXPECT_EQ(refusal([](Manifest& m) {
              for (ShardFileRecord& file : m.files) file.slices[0].ema.reset();
            }),
            "accepted");
}

TEST(Manifest, RefusesSecondMomentsThatAreNotOfItsTensors) {
  EXPECT_THAT(refusal([](Manifest& m) { m.no_exp_avg_sq = {"b"}; }), HasSubstr("says of b"));  // an alias
  EXPECT_THAT(refusal([](Manifest& m) { m.no_exp_avg_sq = {"a", "a"}; }), HasSubstr("says of a"));
}

TEST(Manifest, RefusesImpossibleNumbersOfSteps) {
  EXPECT_THAT(refusal([](Manifest& m) { m.skipped_steps = 101; }), HasSubstr("skipped steps are impossible"));
  EXPECT_THAT(refusal([](Manifest& m) { m.skipped_in_a_row = 5; }), HasSubstr("skipped steps are impossible"));
  EXPECT_THAT(refusal([](Manifest& m) { m.skipped_in_a_row = -1; }), HasSubstr("skipped steps are impossible"));
  EXPECT_THAT(refusal([](Manifest& m) { m.optimizer_step = -1; }), HasSubstr("updates or of skipped steps"));
}

TEST(Manifest, RefusesImpossibleShapes) {
  EXPECT_THAT(refusal([](Manifest& m) { m.units[0].tensors[0].shape = {-5}; }), HasSubstr("impossible"));
  EXPECT_THAT(refusal([](Manifest& m) { m.units[0].tensors[0].shape = {INT64_MAX, 3}; }), HasSubstr("impossible"));
}

}  // namespace
}  // namespace lamina
