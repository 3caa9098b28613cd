// Corrects the mass of keys that are known only by code with a few keys that
// are scored from floats. These are drawn in proportion to their weights by
// code. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_TAIL_SAMPLE_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_TAIL_SAMPLE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// The sums of exp(logit by code) over blocks of 16 keys, from the first block
// on.
//
// The sum of exp(logit) over all keys is the mean, over draws of a key i with
// probability p_i, of exp(logit_i) / p_i, however bad the codes are, as long as
// p_i is known and not 0 (importance sampling; Owen 2013, ch. 9). If p_i is
// proportional to the weight by code, the ratio varies only by the code's
// error. Not thread-safe.
class TailSample {
 public:
  // One drawn block; `uniform` selects one of its keys.
  struct Draw {
    std::int64_t block = 0;
    double log_probability = 0;  // of the block
    double uniform = 0;          // in [0, 1)
  };

  void Start() {
    sums_.clear();
    chunks_.clear();
  }

  // Adds the next `count` keys; exps[i] is exp(logit - max). All chunks but the
  // last consist of whole blocks.
  void Add(const float* exps, std::int64_t count, float max);
  // Removes keys that were added with these logits by code. `positions` ascend.
  void Remove(std::span<const std::int32_t> positions,
              std::span<const float> logits);

  // Log of the sum of the remaining keys; -infinity if there are none.
  double LogSum() const;

  // Draws `count` blocks in proportion to their sums: one in each of `count`
  // equal parts of the total (stratified), so that every block is drawn as
  // often as its share says, to within two. Places within the parts are
  // independent of each other, whatever pattern the order of the blocks has,
  // and of those of other seeds. The same sums and seed give the same draws.
  // Draws nothing if nothing is left.
  void DrawBlocks(std::int64_t count, std::uint64_t seed,
                  std::vector<Draw>& draws) const;

 private:
  // Keys that were added in one call; the sums of their blocks are relative to
  // exp(max).
  struct Chunk {
    std::int64_t first_block = 0;
    float max = 0;
  };

  // The end of the blocks of a chunk.
  std::size_t EndOf(std::size_t chunk) const;
  double SumOf(std::size_t first_block, std::size_t end_block) const;

  std::vector<float> sums_;
  std::vector<Chunk> chunks_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_TAIL_SAMPLE_H_
