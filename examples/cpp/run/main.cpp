// Runs a program of a .pt2 archive with libtorch: no Python, no code made for the program, only boxed calls of operators.
//
//     run MODEL.pt2 INPUTS.pt OUTPUTS.pt [INPUTS.pt OUTPUTS.pt]... [--name NAME] [--seed N] [--skip-unknown-guards]
//
// INPUTS.pt is a list of the leaves of the call's arguments, by torch.save; OUTPUTS.pt gets (outputs, inputs afterwards,
// buffers afterwards) for torch.load. Further pairs are further calls. What cannot be run is named before anything runs.
#include <ATen/Context.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "files.h"
#include "program.h"

namespace {

constexpr char usage[] =
    "usage: run MODEL.pt2 INPUTS.pt OUTPUTS.pt [INPUTS.pt OUTPUTS.pt]... [--name NAME] [--seed N] [--skip-unknown-guards]\n"
    "       run --batch    does this for every line of standard input, arguments separated by tabs\n";

struct Options {
  std::string name = "model";
  std::optional<std::uint64_t> seed;
  bool skip_unknown_guards = false;
  std::vector<std::string> files;  // the model, then inputs and outputs of each call
};

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    if (*argument == "--skip-unknown-guards") {
      options.skip_unknown_guards = true;
      continue;
    }
    const bool has_value = *argument == "--name" || *argument == "--seed";
    if (!has_value) {
      options.files.push_back(*argument);
    } else if (argument + 1 == arguments.end()) {
      throw pt2wire::Error(usage);
    } else if (*argument++ == "--name") {
      options.name = *argument;
    } else {
      options.seed = std::strtoull(argument->c_str(), nullptr, 10);
    }
  }
  if (options.files.size() < 3 || options.files.size() % 2 == 0) throw pt2wire::Error(usage);
  return options;
}

void run_program(const std::vector<std::string>& arguments) {
  const Options options = parse(arguments);
  pt2wire::ArchiveOptions mapping;
  mapping.private_writes = true;
  run::Program program(pt2wire::Archive::open(options.files[0], mapping), options.name, options.skip_unknown_guards);
  for (std::size_t i = 1; i != options.files.size(); i += 2) {
    run::Values inputs = run::read_inputs(options.files[i]);
    if (options.seed) at::manual_seed(*options.seed);
    run::Values outputs = program(inputs);
    run::write_results(options.files[i + 1], std::move(outputs), std::move(inputs), program.buffers());
  }
}

/// Nothing if it went well, or what went wrong.
std::string attempt(const std::vector<std::string>& arguments) {
  try {
    run_program(arguments);
    return {};
  } catch (const pt2wire::Error& error) {
    return error.what();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// A line for each line of standard input: `ok`, or the error, its line ends as \n.
void run_batch() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    std::vector<std::string> arguments;
    for (std::string field; std::getline(fields, field, '\t');) arguments.push_back(field);
    std::string answer = attempt(arguments);
    for (std::size_t at = 0; (at = answer.find('\n', at)) != std::string::npos; at += 2) answer.replace(at, 1, "\\n");
    std::cout << (answer.empty() ? "ok" : answer) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--batch"}) {
    run_batch();
    return 0;
  }
  const std::string problem = attempt(arguments);
  if (!problem.empty()) std::cerr << problem << "\n";
  return problem.empty() ? 0 : 1;
}
