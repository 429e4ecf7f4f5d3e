// Part of the example `run`. Inputs and outputs as files that torch.save and torch.load write and read.
#pragma once

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import_read.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/storage_context.h>

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "values.h"
#include "weights.h"

namespace run {

/// Reads what `torch.save([...], path)` wrote: a list or tuple of tensors, numbers, texts and None. Tensors that share a storage
/// there share one here, as a program may change it.
inline Values read_inputs(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) throw Error("cannot read the file", Error::no_offset, path);
  try {
    caffe2::serialize::PyTorchStreamReader reader(&file);
    const IValue value = torch::jit::readArchiveAndTensors(
        "data", "", "", std::nullopt, std::nullopt, std::nullopt, reader, torch::jit::Unpickler::defaultTypeParser,
        std::make_shared<torch::jit::DeserializationStorageContext>());
    if (value.isTuple()) return value.toTupleRef().elements().vec();
    return items_of(value);
  } catch (const c10::Error& error) {
    throw Error(std::string("libtorch cannot load it: ") + error.what_without_backtrace(), Error::no_offset, path);
  }
}

/// Tensors as a file can hold them: libtorch writes storages by address, and so each with one dtype; and by a function that
/// torch.load does not call if conjugations or negations are pending.
class Writable {
 public:
  IValue operator()(IValue value) {
    if (!value.isTensor()) return value;
    at::Tensor tensor = value.toTensor().resolve_conj().resolve_neg();
    const c10::ScalarType dtype = dtype_in_files(tensor.scalar_type());
    if (dtype != tensor.scalar_type()) tensor = tensor.view(dtype);
    const auto [seen, is_new] = dtypes_.emplace(tensor.storage().data(), dtype);
    return seen->second == dtype ? tensor : on(copy(tensor.storage(), dtype), tensor);
  }

 private:
  /// One copy of a storage for each further dtype: views of that dtype go on sharing it.
  const at::Storage& copy(const at::Storage& storage, c10::ScalarType dtype) {
    const auto [found, is_new] = copies_.emplace(std::pair(storage.data(), dtype), at::Storage());
    if (is_new) {
      const at::Tensor bytes = at::empty({static_cast<std::int64_t>(storage.nbytes())}, at::kByte);
      std::memcpy(bytes.mutable_data_ptr(), storage.data(), storage.nbytes());
      found->second = bytes.storage();
    }
    return found->second;
  }

  /// The same view, of another storage.
  static at::Tensor on(const at::Storage& storage, const at::Tensor& tensor) {
    return at::empty({0}, tensor.options()).set_(storage, tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }

  std::map<const void*, c10::ScalarType> dtypes_;
  std::map<std::pair<const void*, c10::ScalarType>, at::Storage> copies_;
};

/// What `torch.load(path, weights_only=True)` reads: `(outputs, inputs, buffers)`, where `inputs` are those of the call as it
/// left them, and `buffers` are pairs of name and tensor.
inline void write_results(const std::string& path, Values outputs, Values inputs, const Tensors& buffers) {
  // Tuples only: of lists and dictionaries, libtorch's pickles say the type by a function that torch.load does not call.
  Writable writable;
  const auto tuple = [&](Values values) {
    for (IValue& value : values) value = writable(std::move(value));
    return IValue(c10::ivalue::Tuple::create(std::move(values)));
  };
  Values pairs;
  for (const auto& [name, tensor] : buffers) pairs.push_back(tuple({name, tensor}));
  const IValue results = tuple({tuple(std::move(outputs)), tuple(std::move(inputs)), tuple(std::move(pairs))});
  const std::vector<char> bytes = torch::jit::pickle_save(results);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw Error("cannot write the file", Error::no_offset, path);
}

}  // namespace run
