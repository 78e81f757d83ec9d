#include "device/amdsim/machine.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "base/error.h"
#include "base/random.h"
#include "device/amdsim/wave.h"

namespace strata::amdsim {
namespace {

constexpr uint32_t kPoison = 0xdeadbeefu;

uint64_t argument_value(const std::string& kind, const Launch& launch) {
  const LaunchShape& shape = launch.shape;
  const Dim& grid = shape.grid;
  const Dim& block = shape.block;
  struct Named {
    const char* kind;
    int64_t value;
  };
  const Named known[] = {{"hidden_block_count_x", grid.x},
                         {"hidden_block_count_y", grid.y},
                         {"hidden_block_count_z", grid.z},
                         {"hidden_group_size_x", block.x},
                         {"hidden_group_size_y", block.y},
                         {"hidden_group_size_z", block.z},
                         {"hidden_grid_dims", 3},
                         {"hidden_dynamic_lds_size", shape.shared},
                         {"hidden_private_base", static_cast<int64_t>(kPrivateBase >> 32)},
                         {"hidden_shared_base", static_cast<int64_t>(kSharedBase >> 32)}};
  for (const Named& one : known)
    if (kind == one.kind) return static_cast<uint64_t>(one.value);
  return 0;  // remainders, offsets, and services of a host that kernels here do not use
}

std::vector<unsigned char> argument_block(const Launch& launch) {
  const Kernel& kernel = *launch.kernel;
  std::vector<unsigned char> block(std::max<size_t>(kernel.argument_bytes, 8) + 64);
  bool given = false;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind == "by_value") {
      if (given || argument.size != launch.argument_bytes)
        throw Error(ErrorKind::Device,
                    "the kernel takes " + std::to_string(argument.size) + " bytes of arguments, " +
                        std::to_string(launch.argument_bytes) + " are given",
                    std::string(launch.what) + ": kernel " + kernel.name);
      given = true;
      std::memcpy(block.data() + argument.offset, launch.arguments, launch.argument_bytes);
    } else {
      const uint64_t value = argument_value(argument.kind, launch);
      std::memcpy(block.data() + argument.offset, &value, std::min<size_t>(argument.size, sizeof(value)));
    }
  }
  return block;
}

void check_kernel(const Launch& launch) {
  const Kernel& kernel = *launch.kernel;
  auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::Device, message, std::string(launch.what) + ": kernel " + kernel.name);
  };
  // Rounding to nearest, subnormal numbers kept: what the interpreter computes with.
  if ((kernel.resources1 >> 12 & 0xffu) != 0xf0u) refuse("its float mode is unknown to the interpreter");
  const bool wave32 = (kernel.properties >> 10 & 1u) != 0;
  if (wave32 != (lanes_of(launch.program->target()) == 32)) refuse("its waves have another size than the target's");
  const uint64_t shared = uint64_t{kernel.shared_bytes} + launch.shape.shared;
  if (shared > LocalMemory::kMost)
    refuse(std::to_string(shared) + " bytes of shared memory are asked for, a work-group has " +
           std::to_string(LocalMemory::kMost));
}

// One thread's work-groups.
class GroupRunner {
 public:
  GroupRunner(const Launch& launch, std::vector<unsigned char>& arguments, const std::vector<Region>& regions,
              AccessLog& log)
      : launch_(launch), arguments_(arguments), regions_(regions), accesses_(log) {
    const Dim& block = launch.shape.block;
    threads_ = block.x * block.y * block.z;
    const int lanes = lanes_of(launch.program->target());
    waves_.resize(static_cast<size_t>((threads_ + lanes - 1) / lanes));
    const Dim& grid = launch.shape.grid;
    const bool alone = waves_.size() == 1 && grid.x * grid.y * grid.z == 1;
    for (size_t k = 0; k < waves_.size(); ++k) {
      Wave& wave = waves_[k];
      prepare_wave(wave, launch.program->target(), launch.kernel->scratch_bytes);
      wave.id = static_cast<uint8_t>(k);
      wave.local = &local_;
      wave.regions = &regions_;
      wave.accesses = alone ? nullptr : &accesses_;
      wave.program = launch.program;
      wave.kernel = launch.kernel->name.c_str();
    }
  }

  void run(int64_t group) {
    const Dim& grid = launch_.shape.grid;
    const int64_t x = group % grid.x, y = group / grid.x % grid.y, z = group / grid.x / grid.y;
    local_.start(launch_.kernel->shared_bytes + launch_.shape.shared);
    for (Wave& wave : waves_) start(wave, x, y, z);
    group_ = group;
    barriers_ = 0;
    name_waves();
    Random random(launch_.seed * 0x9e3779b9u + static_cast<uint64_t>(group));
    order_.resize(waves_.size());
    for (size_t k = 0; k < order_.size(); ++k) order_[k] = k;
    for (bool more = true; more;) {
      for (size_t k = order_.size(); k-- > 1;)
        std::swap(order_[k], order_[static_cast<size_t>(random.below(static_cast<int64_t>(k) + 1))]);
      for (const size_t k : order_) run_wave(waves_[k], launch_.instruction_limit);
      more = meet();
    }
    for (const Wave& wave : waves_) instructions += wave.instructions;
  }

  uint64_t instructions = 0;
  std::set<uint32_t> met;  // addresses of barriers

 private:
  // Waves stand at a barrier or have ended; true: they go on.
  bool meet() {
    const Wave *waits = nullptr, *ended = nullptr;
    for (const Wave& wave : waves_) (wave.state == WaveState::Ended ? ended : waits) = &wave;
    if (waits == nullptr) return false;
    if (ended != nullptr)
      waits->fail("the wave waits at a barrier, wave " + std::to_string(ended->id) + " has ended without coming to it");
    for (Wave& wave : waves_) wave.state = WaveState::Running;
    if (waves_.size() > 1) met.insert(waits->current->address);
    local_.barrier();
    ++barriers_;
    name_waves();
    return true;
  }
  void name_waves() {
    for (Wave& wave : waves_) wave.accessor = AccessLog::accessor(group_, barriers_, wave.id);
  }

  void start(Wave& wave, int64_t x, int64_t y, int64_t z) {
    const Kernel& kernel = *launch_.kernel;
    const auto rows = static_cast<ptrdiff_t>(std::min<uint32_t>(kernel.vector_registers, kAccumulators));
    std::fill(wave.v.begin(), wave.v.begin() + rows * wave.lanes, kPoison);
    std::fill(wave.undefined.begin(), wave.undefined.end(), ~uint64_t{0});
    for (auto& pending : wave.pending) std::fill(pending.begin(), pending.end(), 0u);
    std::fill(wave.scratch_undefined.begin(), wave.scratch_undefined.end(), ~uint64_t{0});
    std::fill(std::begin(wave.s), std::end(wave.s), kPoison);
    std::fill(std::begin(wave.s_undefined), std::end(wave.s_undefined), ~0u);
    std::fill(std::begin(wave.s_pending), std::end(wave.s_pending), 0u);
    std::fill(std::begin(wave.unsure), std::end(wave.unsure), uint64_t{0});
    wave.waits = {};
    wave.scc = false;
    wave.scc_undefined = true;
    wave.signalled = false;
    wave.state = WaveState::Running;
    wave.instructions = 0;
    wave.pc = static_cast<uint32_t>(std::max(launch_.program->index_at(kernel.entry), 0));
    const int64_t first = int64_t{wave.id} * wave.lanes;
    const int64_t count = std::min<int64_t>(wave.lanes, threads_ - first);
    wave.write_scalar64(kExec, count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1);
    thread_ids(wave, first);
    scalar_start(wave, x, y, z);
  }

  void thread_ids(Wave& wave, int64_t first) const {
    const Dim& block = launch_.shape.block;
    for (int l = 0; l < wave.lanes; ++l) {
      const int64_t t = first + l;
      const int64_t ids = t % block.x | t / block.x % block.y << 10 | t / block.x / block.y << 20;
      wave.row(0)[l] = static_cast<uint32_t>(ids);
    }
    wave.undefined[0] = ~wave.exec;
  }

  // What the packet processor leaves in scalar registers, in the order of the AMDGPU ABI.
  void scalar_start(Wave& wave, int64_t x, int64_t y, int64_t z) const {
    const Kernel& kernel = *launch_.kernel;
    const auto arguments = reinterpret_cast<uint64_t>(arguments_.data());
    int reg = 0;
    constexpr int kWords[] = {4, 2, 2, 2, 2, 2, 1};
    for (int bit = 0; bit < 7; ++bit) {
      if ((kernel.properties >> bit & 1) == 0) continue;
      if (bit == 3) wave.write_scalar64(reg, arguments);
      reg += kWords[bit];
    }
    const int preloaded = kernel.preload & 127, from = kernel.preload >> 7;
    for (int k = 0; k < preloaded && reg + k < kVcc; ++k) {
      uint32_t word = 0;
      const size_t at = static_cast<size_t>(from + k) * 4;
      if (at + 4 <= arguments_.size()) std::memcpy(&word, arguments_.data() + at, 4);
      wave.write_scalar(reg + k, word);
    }
    const uint32_t resources = kernel.resources2;
    reg = static_cast<int>(resources >> 1 & 31u);
    if (is_gfx12(wave.target)) {
      wave.write_scalar(kTrap + 9, static_cast<uint32_t>(x));
      wave.write_scalar(kTrap + 7, static_cast<uint32_t>(y | z << 16));
      return;
    }
    const int64_t ids[] = {x, y, z};
    for (int k = 0; k < 3; ++k)
      if ((resources >> (7 + k) & 1u) != 0) wave.write_scalar(reg++, static_cast<uint32_t>(ids[k]));
  }

  const Launch& launch_;
  std::vector<unsigned char>& arguments_;
  RegionCache regions_;
  AccessView accesses_;
  LocalMemory local_;
  int64_t group_ = 0;
  uint32_t barriers_ = 0;
  int64_t threads_ = 0;
  std::vector<Wave> waves_;
  std::vector<size_t> order_;
};

}  // namespace

void run_exchange(Wave& wave, const Instruction& first, const Instruction& second) {
  // Both read what was there before either writes.
  std::vector<uint32_t> before, result;
  const int lanes = wave.lanes;
  const int reg = first.dst.reg;
  auto copy = [&](std::vector<uint32_t>& to) { to.assign(wave.row(reg), wave.row(reg) + lanes); };
  copy(before);
  const uint64_t undefined_before = wave.undefined[static_cast<size_t>(reg)];
  first.run(wave, first);
  flow(wave, first);
  copy(result);
  const uint64_t undefined_result = wave.undefined[static_cast<size_t>(reg)];
  std::copy(before.begin(), before.end(), wave.row(reg));
  wave.undefined[static_cast<size_t>(reg)] = undefined_before;
  second.run(wave, second);
  flow(wave, second);
  std::copy(result.begin(), result.end(), wave.row(reg));
  wave.undefined[static_cast<size_t>(reg)] = undefined_result;
}

void run_instruction(Wave& wave, const Instruction& i) {
  i.run(wave, i);
  flow(wave, i);
}

void prepare_wave(Wave& wave, Target target, uint32_t scratch_bytes) {
  wave.target = target;
  wave.lanes = lanes_of(target);
  wave.full = wave.lanes == 64 ? ~uint64_t{0} : 0xffffffffu;
  const size_t rows = is_gfx9(target) ? 2 * kAccumulators : kAccumulators;
  wave.v.assign(rows * static_cast<size_t>(wave.lanes), kPoison);
  wave.undefined.assign(rows, ~uint64_t{0});
  for (auto& pending : wave.pending) pending.assign(rows, 0);
  const size_t words = (scratch_bytes + 3) / 4;
  wave.scratch.assign(words * static_cast<size_t>(wave.lanes), kPoison);
  wave.scratch_undefined.assign(words, ~uint64_t{0});
}

void run_wave(Wave& wave, uint64_t instruction_limit) {
  const Program& program = *wave.program;
  while (wave.state == WaveState::Running) {
    const Instruction& i = program[wave.pc];
    wave.current = &i;
    wave.pc = i.next;
    if (++wave.instructions > instruction_limit)
      wave.fail("the wave has run " + std::to_string(instruction_limit) + " instructions and has not ended");
    check_pending(wave, i);
    if (i.pair == 2) {
      const Instruction& second = program[i.next];
      check_pending(wave, second);
      wave.pc = second.next;
      run_exchange(wave, i, second);
      continue;
    }
    run_instruction(wave, i);
  }
}

uint64_t run_launch(const Launch& launch, const Regions& regions, ThreadPool& pool) {
  check_kernel(launch);
  const Dim& grid = launch.shape.grid;
  const int64_t groups = grid.x * grid.y * grid.z;
  if (groups == 0) return 0;
  std::vector<unsigned char> arguments = argument_block(launch);
  std::vector<Region> known = regions.all();
  auto add = [&known](const void* memory, uint64_t bytes, bool writable) {
    const auto begin = reinterpret_cast<uint64_t>(memory);
    known.push_back({begin, begin + bytes, writable});
  };
  add(arguments.data(), arguments.size(), false);
  const CodeObject& object = launch.program->object();
  add(object.memory.data(), object.bytes, false);
  std::sort(known.begin(), known.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });

  AccessLog log;
  std::atomic<int64_t> next{0};
  std::atomic<uint64_t> instructions{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const int64_t workers = std::min<int64_t>(pool.threads(), groups);
  pool.run(workers, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t worker = begin; worker < end; ++worker) {
      try {
        GroupRunner runner(launch, arguments, known, log);
        for (int64_t group = next++; group < groups; group = next++) runner.run(group);
        instructions += runner.instructions;
        if (launch.met == nullptr) continue;
        const std::lock_guard lock(mutex);
        launch.met->merge(runner.met);
      } catch (...) {
        next = groups;
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  });
  if (failure) std::rethrow_exception(failure);
  return instructions;
}

}  // namespace strata::amdsim
