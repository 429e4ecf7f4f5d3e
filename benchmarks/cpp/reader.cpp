// Reads a program: what compiling that costs is measured.
#include <cstdio>

#include "pt2wire/archive.h"

int main(int, char** argv) {
  const auto program = pt2wire::Archive::open(argv[1]).program();
  std::printf("%zu nodes, Argument takes %zu bytes\n", program->graph_module.graph.nodes.size(), sizeof(pt2wire::Argument));
}
