// What is left out of an embedding is still looked at before it is believed.
#include <string>
#include <vector>

#include "check.h"
#include "metaschedule/instruction_builder.h"

using tlp_tvm::SequenceBatch;
using tlp_tvm::metaschedule::Instruction;
using tlp_tvm::metaschedule::InstructionBuilder;
using tlp_tvm::metaschedule::Integer;
using tlp_tvm::metaschedule::TraceFault;
using tlp_tvm::metaschedule::TraceVocabulary;
using tlp_tvm::metaschedule::Value;
using tlp_tvm::metaschedule::ValueForm;
using tlp_tvm::metaschedule::Values;

namespace {

/*! \brief Skips a SampleCategorical with the first `count` of these attributes. */
void Skip(const std::vector<Value>& attributes, std::size_t count, std::int64_t index) {
  SequenceBatch batch;
  InstructionBuilder builder(&batch);
  builder.BeginTrace();
  const Value decision = Integer(index);
  const Values none(nullptr, nullptr);
  builder.Skip(
      Instruction<Values>{static_cast<std::size_t>(TraceVocabulary().Find("SampleCategorical")),
                          none, Values(attributes.data(), attributes.data() + count), 1, true,
                          Values(&decision, &decision + 1)});
  EXPECT_EQ(batch.PrimitivesOfOpenProgram(), 0u);
  EXPECT_EQ(builder.letters().at(0), 'v');
}

const std::vector<Value> kCandidates = {{ValueForm::kList, 2, 2, 0, {}}, Integer(0), Integer(16)};

}  // namespace

TEST(ASkippedChoiceIsOneOfItsCandidates) {
  Skip(kCandidates, 3, 1);
  EXPECT_THROWS(Skip(kCandidates, 3, 2), TraceFault,
                "expected the decision to be one of 2 candidates, found 2");
  EXPECT_THROWS(Skip(kCandidates, 3, -1), TraceFault,
                "expected the decision to be one of 2 candidates, found -1");
}

TEST(ASkippedChoiceWithoutCandidatesIsRefused) {
  // What lies behind the attributes is a list with such a candidate, and none of the instruction's.
  EXPECT_THROWS(Skip(kCandidates, 0, 1), TraceFault,
                "expected candidates to be a list, found nothing more");
  EXPECT_THROWS(Skip({Integer(5)}, 1, 0), TraceFault, "expected candidates to be a list, found 5");
  EXPECT_THROWS(Skip({{ValueForm::kList, 1, 1, 0, {}}, {ValueForm::kText, 0, 0, 0, "x"}}, 2, 0),
                TraceFault, "expected candidates to be numbers, found \"x\"");
}
