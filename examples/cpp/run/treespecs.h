// Part of the example `run`. How a caller's arguments nest, for the names that guards have for the inputs: `L['x'][0]['key']`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cursor.h"

namespace run {

/// As much of JSON as tree specs have.
struct Json {
  enum class Kind { text, other, list, object };
  Kind kind = Kind::other;
  std::string text;  ///< of a text its characters; of a number, `true` and `null` as they are written
  std::vector<Json> items;
  std::vector<std::string> keys;  ///< of an object, one for each item

  const Json& at(std::string_view key) const {
    for (std::size_t i = 0; i != keys.size(); ++i) {
      if (keys[i] == key) return items[i];
    }
    fail("the tree spec has no " + quoted(key));
  }
};

class JsonReader : TextCursor {
 public:
  static Json read(std::string_view text) {
    JsonReader reader(text);
    Json result = reader.value(0);
    reader.expect_end();
    return result;
  }

 private:
  explicit JsonReader(std::string_view text) : TextCursor(text, "tree spec", " \t\n\r") {}

  Json value(int depth) {
    constexpr int deepest = 200;
    if (depth > deepest) fail("a tree spec is nested too deeply");
    Json result;
    if (next() == '"') {
      result.kind = Json::Kind::text;
      result.text = string();
    } else if (take("[")) {
      result.kind = Json::Kind::list;
      list("]", [&] { result.items.push_back(value(depth + 1)); });
    } else if (take("{")) {
      result.kind = Json::Kind::object;
      list("}", [&] {
        result.keys.push_back(string());
        expect(":");
        result.items.push_back(value(depth + 1));
      });
    } else {
      result.text = std::string(before(",]} \n"));
    }
    return result;
  }

  template <class Item>
  void list(std::string_view end, Item item) {
    if (take(end)) return;
    do item();
    while (take(","));
    expect(end);
  }

  std::string string() {
    expect("\"");
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char letter = text_[at_++];
      if (letter != '\\') {
        result += letter;
        continue;
      }
      static const std::map<char, char> escapes{{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'n', '\n'}, {'t', '\t'}};
      const auto found = at_ == text_.size() ? escapes.end() : escapes.find(text_[at_++]);
      if (found == escapes.end()) fail("a tree spec has a text with an escape that is not supported");
      result += found->second;
    }
    expect("\"");
    return result;
  }
};

/// The inputs of a program by the names that its guards have for them.
class InputNames {
 public:
  /// Names for all but what lies in containers of other classes than Python's own: for these, nobody here knows steps.
  static std::map<std::string, std::size_t> of(const pt2wire::ModuleCallSignature& signature) {
    InputNames names;
    const Json call = JsonReader::read(signature.in_spec).items.at(1);
    const Json& arguments = children(call).at(0);
    const Json& keywords = children(call).at(1);
    std::vector<std::pair<std::string, const Json*>> parts;
    for (const Json& part : children(arguments)) parts.emplace_back("arg_" + std::to_string(parts.size()), &part);
    const Json keys = JsonReader::read(keywords.at("context").text);
    for (std::size_t i = 0; i != children(keywords).size(); ++i) parts.emplace_back(keys.items.at(i).text, &children(keywords)[i]);
    const auto& given = signature.forward_arg_names;
    if (given && given->size() != 0) {
      if (given->size() != parts.size()) fail("the tree spec has not as many arguments as there are names");
      for (std::size_t i = 0; i != parts.size(); ++i) parts[i].first = std::string((*given)[i]);
    }
    for (const auto& [name, part] : parts) {
      std::vector<std::string> texts{"L['" + name + "']"};
      const std::size_t digits = name.find_last_not_of("0123456789");  // PyTorch knows both spellings of `*args`
      const bool numbered = digits != std::string::npos && digits != 0 && digits + 1 < name.size() && name[digits] == '_';
      if (numbered) {
        const std::size_t number = std::min(name.find_first_not_of('0', digits + 1), name.size() - 1);
        texts.push_back("L['" + name.substr(0, digits) + "'][" + name.substr(number) + "]");
      }
      names.walk(texts, *part);
    }
    for (std::size_t i = 0; i != names.count_; ++i) names.found_["L['flat_args'][" + std::to_string(i) + "]"] = i;
    return std::move(names.found_);
  }

 private:
  static const std::vector<Json>& children(const Json& spec) { return spec.at("children_spec").items; }

  void walk(const std::vector<std::string>& texts, const Json& spec) {
    const Json& type = spec.at("type");
    if (type.kind != Json::Kind::text) {
      for (const std::string& text : texts) found_[text] = count_;
      ++count_;
      return;
    }
    const std::vector<std::string> steps = steps_into(type.text, spec);
    const std::vector<Json>& parts = children(spec);
    for (std::size_t i = 0; i != parts.size(); ++i) {
      std::vector<std::string> longer;
      for (const std::string& text : steps.size() == parts.size() ? texts : std::vector<std::string>()) longer.push_back(text + steps[i]);
      walk(longer, parts[i]);
    }
  }

  static std::vector<std::string> steps_into(const std::string& type, const Json& spec) {
    std::vector<std::string> steps;
    if (type == "builtins.list" || type == "builtins.tuple") {
      for (std::size_t i = 0; i != children(spec).size(); ++i) steps.push_back("[" + std::to_string(i) + "]");
    } else if (type == "builtins.dict" || type == "collections.OrderedDict") {
      for (const Json& key : JsonReader::read(spec.at("context").text).items) {
        steps.push_back(key.kind == Json::Kind::text ? "['" + key.text + "']" : "[" + key.text + "]");
      }
    }
    return steps;
  }

  std::map<std::string, std::size_t> found_;
  std::size_t count_ = 0;
};

}  // namespace run
