// What each decoder offers to the benchmark: decode the bytes, free the result, answer how many nodes there were.
#pragma once

#include <cstddef>
#include <string>

std::size_t decode_view(const std::string& compact);
std::size_t decode_apache(const std::string& compact);
std::size_t decode_nlohmann(const std::string& json);
