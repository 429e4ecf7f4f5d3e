// What each decoder offers to the benchmark: decode the bytes, free the result, answer how many nodes there were. Encoders
// decode the bytes at their first call and keep the tree; they answer the number of its nodes, or 0 if what they wrote
// has another size.
#pragma once

#include <cstddef>
#include <string>

std::size_t decode_view(const std::string& compact);
std::size_t decode_owned(const std::string& compact);
std::size_t decode_adapter(const std::string& compact);
std::size_t decode_apache(const std::string& compact);
std::size_t decode_json_view(const std::string& json);
std::size_t decode_json_owned(const std::string& json);
std::size_t decode_nlohmann(const std::string& json);
std::size_t encode_view(const std::string& compact);
std::size_t encode_owned(const std::string& compact);
std::size_t encode_adapter(const std::string& compact);
std::size_t encode_apache(const std::string& compact);
