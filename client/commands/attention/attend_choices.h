// Flags of `attendant attend` that say how items are scored, weighted and
// chosen, and how exactly.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_CHOICES_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_CHOICES_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/attention_service.pb.h"

namespace attendant {

struct AttendChoices {
  bool hard = false;
  bool sample = false;
  bool with_replacement = false;
  std::string seed;
  double min_mass = 0;
  std::vector<std::string> crowding_limits;
  std::string activation;
  std::string score;
  std::string model;
  std::vector<std::string> heads;
  std::vector<std::string> biases;
  std::vector<std::string> decays;
  std::string time;
  double recall = 0;
  std::int32_t probe_count = 0;
  double mass_precision = 0;
  std::string mass_method;
};

// Adds the flags. `results` is the option that --hard excludes.
void AddChoiceFlags(CLI::App& attend, CLI::Option* results,
                    AttendChoices& choices);

// Returns an error of the server in terms of --bias and --decay if it is about
// one of them; otherwise, `error`.
absl::Status ErrorOfChoices(const absl::Status& error,
                            const AttendChoices& choices);

// Sets what the flags ask for. InvalidArgument for a flag that can't be read.
absl::Status SetChoices(const AttendChoices& choices,
                        v1::AttendRequest& request);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_ATTEND_CHOICES_H_
