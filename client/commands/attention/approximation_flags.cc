#include "client/commands/attention/approximation_flags.h"

#include "absl/strings/str_cat.h"
#include "client/commands/shared/flags.h"
#include "core/base/status.h"

namespace attendant {
namespace {

std::string CheckEven(const std::string& number) {
  const bool even = (number.back() - '0') % 2 == 0;
  return even ? "" : absl::StrCat("got ", number, ", want an even number");
}

}  // namespace

void AddApproximationFlags(CLI::App& verb, ApproximationFlags& flags) {
  constexpr char kGroup[] = "Approximate";
  CLI::Option* lsh =
      verb.add_option("--lsh", flags.lsh_rounds,
                      "Attend only within buckets, by this many rounds of "
                      "hashing (Reformer). Hashes directions, so it suits "
                      "--score cosine or keys of equal norm")
          ->check(CLI::Range(1, 16))
          ->group(kGroup);
  verb.add_option("--lsh-buckets", flags.lsh_buckets,
                  "Buckets in each round, an even number, capped at the number "
                  "of keys rounded up to an even number. Default: one for 64 "
                  "keys")
      ->check(CLI::Range(2, 4096))
      ->check(&CheckEven)
      ->needs(lsh)
      ->group(kGroup);
  verb.add_option("--lsh-seed", flags.lsh_seed,
                  "Seed of the random directions that define the buckets")
      ->type_name("INTEGER")
      ->check(Accepts(&ParseInteger))
      ->needs(lsh)
      ->capture_default_str()
      ->group(kGroup);
  CLI::Option* linformer =
      verb.add_option("--linformer", flags.linformer_rows,
                      "Attend to the means of this many segments (Linformer)")
          ->check(CLI::Range(1, 4096))
          ->excludes(lsh)
          ->group(kGroup);
  CLI::Option* random =
      verb.add_flag("--linformer-random", flags.linformer_random,
                    "Attend to random combinations of all tokens in place of "
                    "means; their norm grows with the number of tokens")
          ->needs(linformer)
          ->group(kGroup);
  verb.add_option("--linformer-seed", flags.linformer_seed,
                  "Seed of the random combinations")
      ->type_name("INTEGER")
      ->check(Accepts(&ParseInteger))
      ->needs(random)
      ->capture_default_str()
      ->group(kGroup);
}

absl::StatusOr<v1::Approximation> ToApproximation(
    const ApproximationFlags& flags) {
  v1::Approximation approximation;
  if (flags.lsh_rounds != 0) {
    v1::LshAttention& lsh = *approximation.mutable_lsh();
    lsh.set_round_count(flags.lsh_rounds);
    if (flags.lsh_buckets != 0) lsh.set_bucket_count(flags.lsh_buckets);
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t seed,
                               ParseInteger(flags.lsh_seed));
    lsh.set_seed(seed);
    return approximation;
  }
  v1::LinformerAttention& linformer = *approximation.mutable_linformer();
  linformer.set_row_count(flags.linformer_rows);
  if (flags.linformer_random) {
    linformer.set_reduction_kind(v1::REDUCTION_KIND_RANDOM);
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t seed,
                               ParseInteger(flags.linformer_seed));
    linformer.set_seed(seed);
  }
  return approximation;
}

}  // namespace attendant
