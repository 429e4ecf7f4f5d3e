// Part of the example `run`. How a caller's arguments nest, for the names that guards have for the inputs: `L['x'][0]['key']`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
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
      result.text = quoted_text();
    } else if (take("[")) {
      result.kind = Json::Kind::list;
      list("]", [&] { result.items.push_back(value(depth + 1)); });
    } else if (take("{")) {
      result.kind = Json::Kind::object;
      list("}", [&] {
        result.keys.push_back(quoted_text());
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
};

/// A step into a dictionary: `['key']`. What is neither letter, digit nor underscore is spelled by its bytes, so that each key has
/// one step, and none looks like several.
inline std::string key_step(std::string_view key) {
  std::string step = "['";
  for (const char letter : key) {
    if (is_letter(letter)) {
      step += letter;
    } else {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(letter));
      step += escape;
    }
  }
  return step + "']";
}

/// A step by what is no text, as Python and JSON spell it: `[3]`, `[-1.5]`, `[True]`.
inline std::string other_key_step(std::string_view key) {
  static const std::map<std::string_view, std::string_view> names{
      {"true", "True"}, {"false", "False"}, {"null", "None"}, {"NaN", "nan"}, {"Infinity", "inf"}, {"-Infinity", "-inf"}};
  const auto found = names.find(key);
  return "[" + std::string(found == names.end() ? key : found->second) + "]";
}

/// How arguments nest: a leaf, or a container with what it holds.
struct TreeSpec {
  /// The fields of each class of named tuples.
  using Fields = std::map<std::string, std::vector<std::string>, std::less<>>;
  using Steps = std::vector<std::optional<std::string>>;

  bool is_leaf = true;
  std::vector<TreeSpec> parts;
  Steps steps;  ///< into each part; nothing where a class or a key has no known name

  static TreeSpec read(const pt2wire::ModuleCallSignature& signature, const Fields& fields) {
    if (!signature.exact_in_spec) {
      const Json json = JsonReader::read(signature.in_spec);
      if (json.items.size() != 2) fail("a tree spec is a version and a container, found others");
      return of(json.items[1], fields);
    }
    std::size_t position = 0;
    return of(*signature.exact_in_spec, position, fields, 0);
  }

  std::size_t leaves() const {
    std::size_t count = is_leaf ? 1 : 0;
    for (const TreeSpec& part : parts) count += part.leaves();
    return count;
  }

 private:
  static TreeSpec of(const Json& json, const Fields& fields) {
    TreeSpec spec;
    const Json& type = json.at("type");
    spec.is_leaf = type.kind != Json::Kind::text;
    if (spec.is_leaf) return spec;
    for (const Json& part : json.at("children_spec").items) spec.parts.push_back(of(part, fields));
    const Json& context = json.at("context");
    switch (kind_of(type.text)) {
      case Kind::sequence: spec.steps = numbered(spec.parts.size()); break;
      case Kind::dictionary: spec.steps = steps_by(JsonReader::read(context.text).items); break;
      case Kind::default_dictionary: spec.steps = steps_by(context.at("dict_context").items); break;
      case Kind::named_tuple: spec.steps = steps_by_field(context.text, fields); break;
      case Kind::other: spec.steps.resize(spec.parts.size()); break;
    }
    return spec.checked();
  }

  template <class Nodes>
  static TreeSpec of(const Nodes& nodes, std::size_t& position, const Fields& fields, int depth) {
    constexpr int deepest = 200;
    if (depth > deepest) fail("a tree spec is nested too deeply");
    if (position == nodes.size()) fail("a tree spec has not as many nodes as its containers have children");
    TreeSpec spec;
    const pt2wire::TreeSpecNode& node = nodes[position++];
    spec.is_leaf = node.type.empty();
    for (std::int64_t i = 0; i < node.children; ++i) spec.parts.push_back(of(nodes, position, fields, depth + 1));
    if (spec.is_leaf) return spec;
    const auto context = [&]() -> const pt2wire::Value& {
      if (!node.context) fail("a container of a tree spec has no context");
      return *node.context;
    };
    switch (kind_of(node.type)) {
      case Kind::sequence: spec.steps = numbered(spec.parts.size()); break;
      case Kind::dictionary: spec.steps = steps_by(context().as_list()); break;
      case Kind::default_dictionary:
        if (context().as_tuple().size() != 2) fail("a defaultdict in a tree spec has a factory and keys, found others");
        spec.steps = steps_by(context().as_tuple()[1].as_list());
        break;
      case Kind::named_tuple: spec.steps = steps_by_field(context().as_string(), fields); break;
      case Kind::other: spec.steps.resize(spec.parts.size()); break;
    }
    return spec.checked();
  }

  TreeSpec checked() {
    if (steps.size() != parts.size()) fail("a container of a tree spec has not as many children as keys");
    return std::move(*this);
  }

  enum class Kind { sequence, dictionary, default_dictionary, named_tuple, other };
  static Kind kind_of(std::string_view type) {
    static const std::map<std::string_view, Kind> kinds{
        {"builtins.dict", Kind::dictionary},
        {"builtins.list", Kind::sequence},
        {"builtins.tuple", Kind::sequence},
        {"collections.OrderedDict", Kind::dictionary},
        {"collections.defaultdict", Kind::default_dictionary},
        {"collections.deque", Kind::sequence},
        {"collections.namedtuple", Kind::named_tuple},
        {"torch.Size", Kind::sequence},
        {"torch.fx.immutable_collections.immutable_dict", Kind::dictionary},
        {"torch.fx.immutable_collections.immutable_list", Kind::sequence},
    };
    const auto found = kinds.find(type);
    return found == kinds.end() ? Kind::other : found->second;
  }

  static Steps numbered(std::size_t count) {
    Steps steps;
    for (std::size_t i = 0; i != count; ++i) steps.push_back("[" + std::to_string(i) + "]");
    return steps;
  }

  static Steps steps_by_field(std::string_view name, const Fields& fields) {
    const auto found = fields.find(name);
    if (found == fields.end()) fail("a tree spec has a named tuple whose fields the file does not say");
    Steps steps;
    for (const std::string& field : found->second) steps.push_back("." + field);
    return steps;
  }

  template <class Keys>
  static Steps steps_by(const Keys& keys) {
    Steps steps;
    for (const auto& key : keys) steps.push_back(step_by(key));
    return steps;
  }

  static std::optional<std::string> step_by(const Json& key) {
    if (key.kind == Json::Kind::text) return key_step(key.text);
    return key.kind == Json::Kind::other ? std::optional(other_key_step(key.text)) : std::nullopt;
  }

  static std::optional<std::string> step_by(const pt2wire::Value& key) {
    using Tag = pt2wire::Value::Tag;
    switch (key.tag()) {
      case Tag::as_string: return key_step(key.as_string());
      case Tag::as_int: return other_key_step(std::to_string(key.as_int()));
      case Tag::as_bool: return other_key_step(key.as_bool() ? "True" : "False");
      case Tag::as_none: return other_key_step("None");
      default: return std::nullopt;
    }
  }
};

/// The inputs of a program by the names that its guards have for them.
class InputNames {
 public:
  InputNames(const pt2wire::ModuleCallSignature& signature, const TreeSpec::Fields& fields) {
    const TreeSpec call = TreeSpec::read(signature, fields);
    if (call.parts.size() != 2) fail("the tree spec is none of arguments and keywords");
    std::vector<const TreeSpec*> parts;
    TreeSpec::Steps steps;
    for (const TreeSpec& part : call.parts[0].parts) {
      steps.push_back(key_step("arg_" + std::to_string(parts.size())));
      parts.push_back(&part);
    }
    for (const TreeSpec& part : call.parts[1].parts) parts.push_back(&part);
    steps.insert(steps.end(), call.parts[1].steps.begin(), call.parts[1].steps.end());
    const auto& given = signature.forward_arg_names;
    if (given && given->size() != 0) {
      if (given->size() != parts.size()) fail("the tree spec has not as many arguments as there are names");
      for (std::size_t i = 0; i != parts.size(); ++i) steps[i] = key_step((*given)[i]);
      if (std::set(steps.begin(), steps.end()).size() != steps.size()) fail("two arguments have one name");
    }
    for (std::size_t i = 0; i != parts.size(); ++i) {
      if (!steps[i]) fail("the tree spec has keywords that are no texts");
      walk(spellings(*steps[i]), *parts[i]);
    }
    for (std::size_t i = 0; i != count_; ++i) found_["L['flat_args'][" + std::to_string(i) + "]"] = i;
  }

  std::size_t size() const { return count_; }

  /// Which input that is; nothing in containers of classes of which nobody here knows how their contents are called. Throws `Error`
  /// for what is no input.
  std::optional<std::size_t> find(const std::string& name) const {
    const auto found = found_.find(name);
    if (found != found_.end()) return found->second;
    const bool is_hidden = std::any_of(opaque_.begin(), opaque_.end(), [&](const std::string& container) {
      return name.size() > container.size() && name.compare(0, container.size(), container) == 0 &&
             (name[container.size()] == '.' || name[container.size()] == '[');
    });
    if (!is_hidden) fail("a guard on " + run::quoted(name) + ", which is no input");
    return std::nullopt;
  }

 private:
  /// An argument that is called `x_3`, which may be of `*x`: PyTorch knows both spellings.
  static std::vector<std::string> spellings(const std::string& step) {
    std::vector<std::string> texts{"L" + step};
    const std::string name = step.substr(2, step.size() - 4);
    const std::size_t digits = name.find_last_not_of("0123456789");
    const bool numbered = digits != std::string::npos && digits != 0 && digits + 1 < name.size() && name[digits] == '_';
    if (numbered) {
      const std::size_t number = std::min(name.find_first_not_of('0', digits + 1), name.size() - 1);
      texts.push_back("L['" + name.substr(0, digits) + "'][" + name.substr(number) + "]");
    }
    return texts;
  }

  void walk(const std::vector<std::string>& texts, const TreeSpec& spec) {
    if (spec.is_leaf) {
      for (const std::string& text : texts) found_[text] = count_;
      ++count_;
      return;
    }
    for (std::size_t i = 0; i != spec.parts.size(); ++i) {
      if (!spec.steps[i]) {
        opaque_.insert(texts.begin(), texts.end());
        count_ += spec.parts[i].leaves();
        continue;
      }
      std::vector<std::string> longer;
      for (const std::string& text : texts) longer.push_back(text + *spec.steps[i]);
      walk(longer, spec.parts[i]);
    }
  }

  std::map<std::string, std::size_t> found_;
  std::set<std::string> opaque_;
  std::size_t count_ = 0;
};

}  // namespace run
