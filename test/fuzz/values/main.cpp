// SPDX-License-Identifier: Apache-2.0
// The differential fuzzer of programs as values: random programs through the library on meshes of up to eight ranks, and
// through a plain interpreter. Prints a failing seed with the program made small, and fails if an operation was never run.
#include <minimise.hpp>

#include <csignal>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace fuzz;

// Programs that failed once run always.
constexpr const char* fixed_programs[] = {
#include "fixed.txt"
};

struct options {
  long long programs = 2000;
  std::uint64_t seed = 1;
  double minutes = 0;
  long long failures = 3;  // as many are shown
  bool one = false, fixed = true, list = false, minimise = true, all_ops = true, verbose = false;
  const char* line = nullptr;
  choice with;
};

void usage() {
  std::puts(
      "fuzz_values [--programs N] [--seed S] [--minutes M] [--failures N] [--one SEED] [--without WHAT]...\n"
      "  programs from seed S on, at most N, at most M minutes; a failing one is made small and printed\n"
      "  --program LINE   one of fixed.txt, as --one\n"
      "  --one SEED       that program alone, printed with what the library makes of it\n"
      "  --without WHAT   partial-inputs, special, writes, gradients, moves, passes, integer-numbers, missing-adjoints,\n                   special-laws, fused-collectives\n"
      "  --no-fixed       not the seeds that failed once;  --no-minimise;  --any-ops: operations may be missing\n  --statements N: programs of at most N;  --verbose: counts of passes and operations");
}

bool parse(int argc, char** argv, options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const char* next = i + 1 < argc ? argv[i + 1] : nullptr;
    const auto is = [&](const char* name) { return a == name && next; };
    if (is("--programs")) o.programs = std::atoll(argv[++i]);
    else if (is("--seed")) o.seed = std::strtoull(argv[++i], nullptr, 0);
    else if (is("--minutes")) o.minutes = std::atof(argv[++i]);
    else if (is("--failures")) o.failures = std::atoll(argv[++i]);
    else if (is("--program")) o.one = true, o.line = argv[++i], o.programs = 1;
    else if (is("--statements")) o.with.statements = std::atoi(argv[++i]);
    else if (is("--one")) o.one = true, o.seed = std::strtoull(argv[++i], nullptr, 0), o.programs = 1;
    else if (is("--without")) {
      const std::string w = argv[++i];
      if (w == "partial-inputs") o.with.partial_inputs = false;
      else if (w == "special") o.with.special = false;
      else if (w == "writes") o.with.writes = false;
      else if (w == "gradients") o.with.gradients = false;
      else if (w == "moves") o.with.moves = false;
      else if (w == "passes") o.with.passes = false;
      else if (w == "integer-numbers") o.with.integer_numbers = false;
      else if (w == "special-laws") reference::laws_of_special_values = false, o.with.special = false;
      else if (w == "fused-collectives") o.with.fused_collectives = false;
      else if (w == "missing-adjoints") o.with.missing_adjoints = false;
      else return false;
    } else if (a == "--no-fixed") o.fixed = false;
    else if (a == "--no-minimise") o.minimise = false;
    else if (a == "--any-ops") o.all_ops = false;
    else if (a == "--verbose") o.verbose = true;
    else return false;
  }
  return true;
}

// What the library makes of it.
void show_graphs(const program& p) {
  assembly a;
  for (const statement& s : p.body)
    if (!a.admit(s, p)) return;
  a.finish(p.outputs);
  const made m = make(p, a);
  for (const auto& g : m.g)
    if (g) std::printf("%s\n", sw::to_text(*g).c_str());
}

// What runs now, for a program that ends the process.
char running_now[80];
void name_seed(int signal) {
  const auto ignored = write(STDOUT_FILENO, running_now, std::strlen(running_now));
  static_cast<void>(ignored);
  std::signal(signal, SIG_DFL);
  raise(signal);
}
void name_seed_of_crashes() {
  static char stack[1 << 16];  // fibres may have used up theirs
  stack_t own{};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  sigaltstack(&own, nullptr);
  struct sigaction a{};
  a.sa_handler = &name_seed;
  a.sa_flags = SA_ONSTACK | SA_RESETHAND;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(s, &a, nullptr);
}

const char* word(verdict::what w) {
  switch (w) {
    case verdict::what::fine: return "fine";
    case verdict::what::refused: return "refused";
    case verdict::what::broken: return "breaks a law";
    case verdict::what::thrown: return "throws";
    case verdict::what::differs: return "differs";
  }
  return "?";
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (!parse(argc, argv, o)) {
    usage();
    return 2;
  }
  name_seed_of_crashes();
  tally tally;
  statistics st;
  long long failures = 0, first_failure = -1;
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  const auto run = [&](std::uint64_t seed, const char* line) {
    program p;
    if (line) std::snprintf(running_now, sizeof running_now, "FAILED: a program of the fixed list ends the process\n");
    else std::snprintf(running_now, sizeof running_now, "FAILED: seed %" PRIu64 " ends the process\n", seed);
    if (!line) {
      p = generator(seed, o.with, tally, pass_count()).draw();
    } else if (!decode(line, p, short_name, pass_count())) {
      std::printf("FAILED: this is no program: %s\n", line);
      ++failures;
      return;
    }
    if (o.one) std::printf("seed %" PRIu64 "\n%s", seed, text_of(p, short_name).c_str());
    if (o.one) show_graphs(p);
    verdict v = check(p, st);
    ++st.programs;
    if (v.is == verdict::what::refused) {
      ++st.refused;
      ++st.refusals[v.text];
      if (o.one) std::printf("refused: %s\n", v.text.c_str());
      return;
    }
    if (v.is == verdict::what::fine) return;
    if (first_failure < 0) first_failure = st.programs;
    if (++failures > o.failures) return;
    if (line)
      std::printf("FAILED: a program of the fixed list, %s: %s\n%s", word(v.is), v.text.c_str(),
                  text_of(p, short_name).c_str());
    else std::printf("FAILED: seed %" PRIu64 ", program %lld, %s: %s\n", seed, st.programs, word(v.is), v.text.c_str());
    if (!o.minimise) return;
    tidy(p);
    const program small = minimiser(v.is).of(p);
    if (o.one) show_graphs(small);
    statistics none;
    v = check(small, none);
    std::printf("made small, it %s: %s\n%s%sfor fixed.txt, once it is mended:\n\"%s\",\n\n", word(v.is), v.text.c_str(),
                text_of(small, short_name).c_str(), lines_of(small).c_str(), encoded(small, short_name).c_str());
    std::fflush(stdout);
  };
  if (o.fixed && !o.one)
    for (const char* line : fixed_programs) run(0, line);
  const auto never_run = [&] {
    std::string never;
    for (int k = 0; k < static_cast<int>(op_code::count); ++k) {
      // writes become values before anything runs; what passes write depends on the passes that a run has
      if (st.executed[k] > 0 || static_cast<op_code>(k) == op_code::copy_ ||
          role_of(static_cast<op_code>(k)) == role::of_passes || role_of(static_cast<op_code>(k)) == role::of_modules ||
          role_of(static_cast<op_code>(k)) == role::of_types)
        continue;
      never += std::string(" ") + sw::name_of(static_cast<op_code>(k));
    }
    for (int k = 0; k < image_operation_count; ++k) {
      const sw::custom_operation& o = *image_operations[k];
      if (st.images[k] == 0) never += std::string(" ") + o.name.value;
      if (o.record.strided && st.channels_last[k] == 0) never += std::string(" ") + o.name.value + "(channels-last)";
    }
    return never;
  };
  // Chance may leave out a rare operation: of those that are missing more programs are asked, up to five times as many.
  const bool until_all = o.all_ops && !o.one && o.programs >= 2000;
  for (long long k = 0; k < o.programs || (until_all && k < 5 * o.programs && !never_run().empty()); ++k) {
    if (o.minutes > 0 && seconds() > 60 * o.minutes) break;
    if (failures >= o.failures && o.failures > 0) break;
    run(o.seed + static_cast<std::uint64_t>(k), o.line);
  }
  std::printf(
      "programs: %lld as values from seed %" PRIu64
      " in %.1f s, %lld refused, %lld elements compared (%lld unsure, %lld within a wide bound), %lld gradients, %lld updates, %lld iterated\n",
      st.programs, o.seed, seconds(), st.refused, st.elements, st.unsure, st.vague, st.gradients, st.updates, st.iterated);
  for (const auto& [text, count] : st.refusals) std::printf("  refused %lld: %s\n", count, text.c_str());
  if (o.verbose) {
    std::printf("  passes:");
    for (const auto& [pass, count] : st.passes) std::printf(" %s %lld", short_name(pass).c_str(), count);
    std::printf("\n  operations tried, admitted, run:");
    for (int k = 0; k < static_cast<int>(op_code::count); ++k)
      std::printf(" %s %lld/%lld/%lld", sw::name_of(static_cast<op_code>(k)), tally.tried[k], tally.admitted[k],
                  st.executed[k]);
    std::printf("\n  operations of images run, channels-last:");
    for (int k = 0; k < image_operation_count; ++k)
      std::printf(" %s %lld/%lld", image_operations[k]->name.value, st.images[k], st.channels_last[k]);
    std::printf("\n");
  }
  const std::string never = never_run();
  if (first_failure >= 0) std::printf("first failure: program %lld\n", first_failure);
  if (failures > 0) return 1;
  if (!never.empty() && o.all_ops && st.programs >= 2000) {
    std::printf("FAILED: never run:%s\n", never.c_str());
    return 1;
  }
  return 0;
}
