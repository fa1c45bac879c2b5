#include "metaschedule/ffi.h"

#include <dlfcn.h>

#include <cstring>
#include <string_view>

#include "core/error.h"

namespace tlp_tvm {
namespace metaschedule {
namespace ffi {
namespace {

/*!
 * \brief Whose structs these are, Array and Map among them: their headers were compared. Nothing
 * promises that those of the next release are the same, so each has to be looked at first.
 */
constexpr std::uint32_t kMajor = 0;
constexpr std::uint32_t kMinor = 1;
constexpr std::uint32_t kLastPatch = 16;

constexpr char kCure[] = "; install apache-tvm-ffi 0.1.14.post1, or a tlp_tvm that knows this one";

std::string_view View(const Bytes& bytes) { return {bytes.data, bytes.size}; }

template <typename Function>
void Resolve(void* library, const std::string& path, const char* name, Function* function) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw StateError(path + ": expected tvm-ffi's C interface, found no " + name + kCure);
  }
  *function = reinterpret_cast<Function>(symbol);
}

}  // namespace

std::string_view TextOf(const Any& value) {
  if (value.type_index == kSmallStr) return {value.small_text, value.small_size};
  if (value.type_index == kRawStr) return value.raw_text;
  return View(*reinterpret_cast<const Bytes*>(value.object + 1));
}

Library::Library(const std::string& path) : path_(path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    throw StateError(path +
                     ": expected tvm-ffi's library to be loaded already, found it is not; import "
                     "tvm first");
  }
  void (*get_version)(Version*) = nullptr;
  Resolve(library, path, "TVMFFIGetVersion", &get_version);
  Resolve(library, path, "TVMFFITypeKeyToIndex", &type_key_to_index_);
  Resolve(library, path, "TVMFFIGetTypeInfo", &get_type_info_);
  Resolve(library, path, "TVMFFIFunctionGetGlobal", &get_global_);
  Resolve(library, path, "TVMFFIFunctionCall", &call_);
  Resolve(library, path, "TVMFFIObjectDecRef", &decrease_);
  Resolve(library, path, "TVMFFIErrorMoveFromRaised", &take_error_);
  Version version{};
  get_version(&version);
  if (version.major != kMajor || version.minor != kMinor || version.patch > kLastPatch) {
    throw StateError(path + ": expected tvm-ffi 0.1.0 to 0.1." + std::to_string(kLastPatch) +
                     ", found " + std::to_string(version.major) + "." +
                     std::to_string(version.minor) + "." + std::to_string(version.patch) + kCure);
  }
  // The tables are where they are expected if a class that never moves is there by its name.
  const TypeInfo* const array = get_type_info_(kArray);
  if (array == nullptr || array->type_index != kArray || View(array->key) != "ffi.Array") {
    throw StateError(path + ": expected tvm-ffi's table of types, found another layout" + kCure);
  }
}

void Library::DropError() const {
  void* error = nullptr;
  take_error_(&error);
  if (error != nullptr) decrease_(error);
}

std::int32_t Library::IndexOf(const char* type_key) const {
  const Bytes key{type_key, std::strlen(type_key)};
  std::int32_t index = -1;
  if (type_key_to_index_(&key, &index) != 0) {
    DropError();
    throw StateError(path_ + ": expected a TVM with the class " + type_key +
                     ", found none; import tvm.s_tir.meta_schedule of a TVM 0.25 to 0.27 first");
  }
  return index;
}

std::string Library::NameOf(const Any& value) const {
  switch (value.type_index) {
    case kNone:
      return "none";
    case kInt:
      return std::to_string(value.integer);
    default:
      break;
  }
  if (IsText(value)) return "\"" + std::string(TextOf(value)) + "\"";
  const TypeInfo* const info = value.type_index < 0 ? nullptr : get_type_info_(value.type_index);
  return info == nullptr ? "type index " + std::to_string(value.type_index)
                         : std::string(View(info->key));
}

const Object* Library::FunctionOf(const char* name) const {
  const Bytes bytes{name, std::strlen(name)};
  void* function = nullptr;
  if (get_global_(&bytes, &function) != 0) DropError();
  if (function == nullptr) {
    throw StateError(path_ + ": expected a TVM with the function " + name +
                     ", found none; import tvm.s_tir.meta_schedule of a TVM 0.25 to 0.27 first");
  }
  return static_cast<const Object*>(function);
}

Any Library::Call(const Object* function, const char* name, const Any* args, int count) const {
  Any result;
  if (call_(const_cast<Object*>(function), args, count, &result) != 0) {
    DropError();
    throw StateError(std::string("expected ") + name + " of TVM to answer, found it failed");
  }
  return result;
}

Field::Field(const Library* library, const char* type_key, const char* name)
    : library_(library), name_(std::string(type_key) + "." + name) {
  const TypeInfo* const type = library->InfoOf(library->IndexOf(type_key));
  for (std::int32_t i = 0; i < type->field_count; ++i) {
    if (View(type->fields[i].name) == name) info_ = &type->fields[i];
  }
  if (info_ == nullptr) {
    throw StateError("expected the class " + std::string(type_key) + " to have a field " + name +
                     ", found none; use a TVM 0.25 to 0.27");
  }
  if (info_->size == sizeof(void*) && info_->static_type_index >= kFirstObject) {
    storage_ = Storage::kReference;
  } else if (info_->size == sizeof(Any) && info_->static_type_index < 0) {
    storage_ = Storage::kAny;
  } else if (info_->size == sizeof(std::int64_t) &&
             (info_->static_type_index == kInt || info_->static_type_index == kFloat)) {
    storage_ = Storage::kNumber;
  } else {
    is_checked_ = true;  // always read through the getter
  }
}

Any Field::Get(const char* at) const {
  Any result;
  if (info_->getter(at, &result) != 0 || result.type_index >= kFirstObject) {
    throw StateError("expected the field " + name_ + " to be a number, found another value");
  }
  return result;
}

void Field::Check(const Object* object) const {
  const char* const at = reinterpret_cast<const char*>(object) + info_->offset;
  const Any in_place = OfPlace(at);
  Any own;
  const bool is_read = info_->getter(at, &own) == 0;
  const bool is_same = is_read && own.type_index == in_place.type_index &&
                       own.small_size == in_place.small_size && own.integer == in_place.integer;
  if (is_read) library_->Release(own);
  if (!is_same) {
    throw StateError("expected the field " + name_ +
                     " to be stored as tvm-ffi 0.1 does, found another layout; install "
                     "apache-tvm-ffi 0.1.14.post1, or use the json route");
  }
  is_checked_.store(true, std::memory_order_relaxed);
}

}  // namespace ffi
}  // namespace metaschedule
}  // namespace tlp_tvm
