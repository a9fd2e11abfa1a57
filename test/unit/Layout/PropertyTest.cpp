// Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What must hold for every plan, over seeded random models and meshes: every
// element in exactly one place, and nothing in the padding.
#include "Build.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace dfa::layout;

namespace {

/// A source of small random numbers with the same values on every machine.
class Random {
public:
  explicit Random(uint32_t seed) : engine(seed) {}

  int64_t below(int64_t limit) {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(limit));
  }

  template <typename T> const T &pick(const std::vector<T> &from) {
    return from[static_cast<size_t>(below(int64_t(from.size())))];
  }

private:
  std::mt19937 engine;
};

/// Who owns each element of a parameter, filled in from the ranks' tables.
using Owners = std::map<int64_t, std::vector<int>>;

} // namespace

static std::vector<int64_t> randomShape(Random &random) {
  std::vector<int64_t> shape(static_cast<size_t>(random.below(6)));
  for (int64_t &size : shape)
    size = random.pick<int64_t>({0, 1, 1, 2, 3, 5, 7, 9, 16, 33});
  return shape;
}

static PlanInput randomInput(Random &random) {
  PlanInput input;
  input.mesh = {1 + random.below(3), 1 + random.below(7)};
  input.options.bucketBytes =
      random.pick<int64_t>({1, 200, 1000, 5000, 100000, 1 << 30});
  input.options.fillOrder = random.pick<FillOrder>(
      {FillOrder::Forward, FillOrder::Reverse, FillOrder::Explicit});
  input.classes = {f32Class("a"), mixedClass("b")};
  input.classes.push_back({"c",
                           {{"param", Format::F16}, {"state", Format::I8}},
                           Format::F16,
                           random.pick<int64_t>({1, 64, 256})});
  int64_t count = random.below(12);
  for (int64_t i = 0; i < count; ++i) {
    ParamSpec spec = param("p" + std::to_string(i), randomShape(random));
    Order order(spec.shape.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t d = order.size(); d > 1; --d)
      std::swap(order[d - 1], order[static_cast<size_t>(random.below(d))]);
    if (random.below(2) == 0)
      spec.order = order;
    else
      spec.strides = stridesFromOrder(spec.shape, order);
    spec.cls = static_cast<int32_t>(random.below(3));
    spec.epoch = random.below(4) == 0;
    spec.unit = random.below(4) == 0 ? 1 : -1;
    spec.flags = random.below(8) == 0 ? ParamFrozen : 0u;
    if (i > 0 && random.below(8) == 0) {
      std::string name = spec.name;
      int64_t other = random.below(i);
      spec = input.params[static_cast<size_t>(other)];
      spec.name = name;
      spec.sharedWith = other;
    }
    input.params.push_back(std::move(spec));
    if (random.below(2) == 0)
      input.options.explicitOrder.push_back(i);
  }
  return input;
}

/// Starts are aligned, parameters do not overlap, and the bucket is the sum of
/// its equal, aligned shards.
static void checkBuckets(const Plan &plan) {
  std::map<int32_t, int64_t> shardBase;
  std::set<int64_t> seen;
  for (size_t b = 0; b < plan.buckets().size(); ++b) {
    const Bucket &bucket = plan.buckets()[b];
    const ClassLayout &row =
        plan.classLayouts()[static_cast<size_t>(bucket.cls)];
    EXPECT_EQ(bucket.shardElements % row.alignment, 0);
    EXPECT_EQ(bucket.padded, bucket.shardElements * plan.mesh().shard);
    EXPECT_GE(bucket.padded, bucket.used);
    EXPECT_LT(bucket.padded - bucket.used,
              row.alignment * plan.mesh().shard + plan.mesh().shard);
    EXPECT_EQ(bucket.shardBase, shardBase[bucket.cls]);
    EXPECT_EQ(bucket.fullBase, bucket.shardBase * plan.mesh().shard);
    shardBase[bucket.cls] += bucket.shardElements;
    int64_t end = 0;
    for (int64_t i = bucket.sequenceBegin; i < bucket.sequenceEnd; ++i) {
      int64_t index = plan.sequence()[static_cast<size_t>(i)];
      const Placement &place = plan.placements()[static_cast<size_t>(index)];
      const ParamSpec &spec = plan.params()[static_cast<size_t>(index)];
      EXPECT_TRUE(seen.insert(index).second);
      EXPECT_EQ(place.bucket, int64_t(b));
      EXPECT_EQ(spec.cls, bucket.cls);
      EXPECT_EQ(spec.unit, bucket.unit);
      EXPECT_EQ(spec.epoch, bucket.epoch);
      EXPECT_EQ(place.segment, i - row.sequenceBegin);
      EXPECT_EQ(place.start % row.alignment, 0);
      EXPECT_GE(place.start, end);
      end = place.start + place.elements;
    }
    EXPECT_LE(end, std::max(bucket.padded, bucket.used));
  }
  for (size_t i = 0; i < plan.params().size(); ++i) {
    const ParamSpec &spec = plan.params()[i];
    bool own = spec.sharedWith == -1 && !(spec.flags & ParamFrozen);
    EXPECT_EQ(seen.count(int64_t(i)), own ? 1u : 0u) << spec.name;
  }
}

/// Adds one to the owner count of each element that `rows` cover, and checks
/// that no row leaves its segment or is longer than `limit`.
static void cover(const Plan &plan, const RankTables &tables, size_t cls,
                  Range range, const std::vector<dfa_rt_chunk_t> &rows,
                  int64_t limit, Owners &owners) {
  const ClassLayout &layout = plan.classLayouts()[cls];
  for (int64_t i = range.begin; i < range.end; ++i) {
    const dfa_rt_chunk_t &row = rows[static_cast<size_t>(i)];
    const Segment &segment = tables.segments[static_cast<size_t>(
        layout.sequenceBegin + int64_t(row.segment))];
    EXPECT_GT(row.length, 0u);
    EXPECT_LE(int64_t(row.length), limit);
    EXPECT_EQ(row.offset % 8, 0);
    EXPECT_LE(row.offset + int64_t(row.length), segment.elements);
    std::vector<int> &counts = owners[segment.param];
    for (int64_t e = 0; e < int64_t(row.length); ++e)
      ++counts[static_cast<size_t>(segment.paramOffset + row.offset + e)];
  }
}

static Owners nobody(const Plan &plan) {
  Owners owners;
  for (int64_t index : plan.sequence())
    owners[index].resize(static_cast<size_t>(
        plan.placements()[static_cast<size_t>(index)].elements));
  return owners;
}

static void expectOneEach(const Owners &owners) {
  for (const auto &[param, counts] : owners)
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 1),
              int64_t(counts.size()))
        << "parameter " << param;
}

/// Places in shard arrays that hold an element, over the ranks of one replica:
/// within the shard, aligned where a fragment starts, and used once.
static void checkShardPlaces(const Plan &plan, const RankTables &tables) {
  std::map<int32_t, std::vector<int>> used;
  for (const Segment &segment : tables.segments) {
    if (segment.elements == 0)
      continue;
    const Bucket &bucket = plan.buckets()[static_cast<size_t>(segment.bucket)];
    int64_t alignment =
        plan.classLayouts()[static_cast<size_t>(bucket.cls)].alignment;
    EXPECT_EQ(segment.shardOffset % alignment, 0);
    EXPECT_GE(segment.shardOffset, bucket.shardBase);
    EXPECT_LE(segment.shardOffset + segment.elements,
              bucket.shardBase + bucket.shardElements);
    // The same element seen from the full array.
    const Placement &place =
        plan.placements()[static_cast<size_t>(segment.param)];
    EXPECT_EQ(segment.fullOffset, bucket.fullBase + place.start);
    EXPECT_EQ(place.start + segment.paramOffset,
              tables.coordinate.shard * bucket.shardElements +
                  segment.shardOffset - bucket.shardBase);
    std::vector<int> &counts = used[bucket.cls];
    counts.resize(static_cast<size_t>(
        plan.classLayouts()[static_cast<size_t>(bucket.cls)].shardElements));
    for (int64_t e = 0; e < segment.elements; ++e)
      EXPECT_EQ(++counts[static_cast<size_t>(segment.shardOffset + e)], 1);
  }
}

static void checkFragments(const Plan &plan,
                           const std::vector<RankTables> &ranks) {
  for (int64_t index : plan.sequence()) {
    std::vector<Fragment> fragments = fragmentsOf(plan, index);
    const Placement &place = plan.placements()[static_cast<size_t>(index)];
    int64_t next = 0;
    for (const Fragment &fragment : fragments) {
      EXPECT_EQ(fragment.paramOffset, next);
      next += fragment.elements;
      const RankTables &tables = ranks[static_cast<size_t>(fragment.shard)];
      const ClassLayout &row = plan.classLayouts()[static_cast<size_t>(
          plan.params()[static_cast<size_t>(index)].cls)];
      const Segment &segment =
          tables
              .segments[static_cast<size_t>(row.sequenceBegin + place.segment)];
      EXPECT_EQ(segment.param, index);
      EXPECT_EQ(segment.elements, fragment.elements);
      EXPECT_EQ(segment.paramOffset, fragment.paramOffset);
      EXPECT_EQ(segment.shardOffset, fragment.shardOffset);
    }
    EXPECT_EQ(next, place.elements);
  }
}

TEST(Property, EveryElementInExactlyOnePlace) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Plan plan = planOf(randomInput(random));
    checkBuckets(plan);
    int64_t replica = random.below(plan.mesh().replicate);
    Owners chunkOwners = nobody(plan);
    Owners atomOwners = nobody(plan);
    std::vector<RankTables> ranks;
    for (int64_t shard = 0; shard < plan.mesh().shard; ++shard) {
      ranks.push_back(tablesOf(plan, replica * plan.mesh().shard + shard,
                               {random.pick<int64_t>({128, 512, 1024}),
                                random.pick<int64_t>({0, 512, 4096})}));
      const RankTables &tables = ranks.back();
      checkShardPlaces(plan, tables);
      for (size_t cls = 0; cls < plan.classes().size(); ++cls) {
        cover(plan, tables, cls, tables.classes[cls].chunks, tables.chunks,
              tables.chunkElements, chunkOwners);
        cover(plan, tables, cls, tables.classes[cls].atoms, tables.atoms,
              DFA_RT_ATOM_ELEMENTS, atomOwners);
      }
    }
    expectOneEach(chunkOwners);
    expectOneEach(atomOwners);
    checkFragments(plan, ranks);
    if (testing::Test::HasFailure())
      break;
  }
}

TEST(Property, AtomsStayOnTheParametersGrid) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<int64_t> sizes;
    for (int i = 0; i < 5; ++i)
      sizes.push_back(random.below(60000));
    Plan plan = planOf(vectors(sizes, {1, 1 + random.below(5)}));
    for (int64_t rank = 0; rank < plan.mesh().shard; ++rank) {
      RankTables tables = tablesOf(plan, rank);
      int64_t next = 0;
      for (const Segment &segment : tables.segments) {
        EXPECT_EQ(segment.firstAtom, next);
        next += segment.atoms;
        for (int64_t a = 0; a < segment.atoms; ++a) {
          const dfa_rt_chunk_t &atom =
              tables.atoms[static_cast<size_t>(segment.firstAtom + a)];
          int64_t first = segment.paramOffset + atom.offset;
          // Only the fragment's first atom may start inside a grid cell.
          if (a > 0) {
            EXPECT_EQ(first % DFA_RT_ATOM_ELEMENTS, 0);
          }
          EXPECT_EQ(first / DFA_RT_ATOM_ELEMENTS,
                    (first + int64_t(atom.length) - 1) / DFA_RT_ATOM_ELEMENTS);
        }
      }
      EXPECT_EQ(next, int64_t(tables.atoms.size()));
    }
  }
}

TEST(Property, OneRanksAtomsDoNotDependOnBucketSize) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::vector<int64_t>> results;
    for (int64_t bytes : {1, 4000, 1 << 30}) {
      Random random(seed);
      PlanInput input = randomInput(random);
      input.mesh = {1, 1};
      input.options.bucketBytes = bytes;
      Plan plan = planOf(std::move(input));
      RankTables tables = tablesOf(plan, 0);
      std::vector<int64_t> result;
      for (const ClassLayout &row : plan.classLayouts())
        for (int64_t i = row.sequenceBegin; i < row.sequenceEnd; ++i) {
          const Segment &segment = tables.segments[static_cast<size_t>(i)];
          result.insert(result.end(),
                        {segment.param, segment.firstAtom, segment.atoms});
        }
      for (const dfa_rt_chunk_t &atom : tables.atoms)
        result.insert(result.end(), {atom.offset, int64_t(atom.length),
                                     int64_t(atom.segment)});
      results.push_back(std::move(result));
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

TEST(Property, FullChunksCoverEachBucketOnce) {
  for (uint32_t seed = 1000; seed < 1100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Plan plan = planOf(randomInput(random));
    Owners owners = nobody(plan);
    for (size_t b = 0; b < plan.buckets().size(); ++b) {
      Expected<std::vector<dfa_rt_chunk_t>> chunks =
          buildFullChunks(plan, int64_t(b), 512);
      ASSERT_TRUE(chunks.ok()) << chunks.message();
      const ClassLayout &row =
          plan.classLayouts()[static_cast<size_t>(plan.buckets()[b].cls)];
      for (const dfa_rt_chunk_t &chunk : *chunks) {
        int64_t index = plan.sequence()[static_cast<size_t>(
            row.sequenceBegin + int64_t(chunk.segment))];
        for (int64_t e = 0; e < int64_t(chunk.length); ++e)
          ++owners[index][static_cast<size_t>(chunk.offset + e)];
      }
    }
    expectOneEach(owners);
  }
}
