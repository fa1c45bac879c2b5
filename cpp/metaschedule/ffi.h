/*!
 * \file metaschedule/ffi.h
 * \brief What is used of tvm-ffi's stable C interface, found at run time in the library that the
 * process has loaded: building needs no headers of it, and nothing is linked against it.
 *
 * The types are those of tvm/ffi/c_api.h in the releases that `Library` accepts. Fields of objects
 * are found by name in its reflection tables; the first use of every field checks what is assumed
 * here.
 */
#ifndef TLP_TVM_METASCHEDULE_FFI_H_
#define TLP_TVM_METASCHEDULE_FFI_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tlp_tvm {
namespace metaschedule {
namespace ffi {

/*! \brief Type indices that never change; those of other classes are given out at run time. */
enum TypeIndex : std::int32_t {
  kNone = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kRawStr = 8,
  kSmallStr = 11,
  kFirstObject = 64,
  kStr = 65,
  kArray = 71,
  kMap = 72,
};

struct Object {
  std::uint64_t reference_counts;
  std::int32_t type_index;
  std::uint32_t padding;
  void (*deleter)(void* self, int flags);
};

/*! \brief A value: a number as itself, a short text in place, or an object. */
struct Any {
  std::int32_t type_index = kNone;
  std::uint32_t small_size = 0;
  union {
    std::int64_t integer = 0;
    double real;
    const char* raw_text;
    const Object* object;
    char small_text[8];
  };
};
static_assert(sizeof(Object) == 24 && sizeof(Any) == 16, "as in c_api.h");

struct Bytes {
  const char* data;
  std::size_t size;
};

/*! \brief Follows the header of an Array. */
struct Sequence {
  const Any* items;
  std::int64_t size;
};

using Getter = int (*)(const void* field, Any* result);

struct FieldInfo {
  Bytes name, doc, metadata;
  std::int64_t flags, size, alignment, offset;
  Getter getter;
  void* setter;
  std::int64_t default_value[2];  ///< an Any
  std::int32_t static_type_index;
};

struct TypeInfo {
  std::int32_t type_index;
  std::int32_t depth;
  Bytes key;
  const TypeInfo** ancestors;
  std::uint64_t key_hash;
  std::int32_t field_count;
  std::int32_t method_count;
  const FieldInfo* fields;
  const void* methods;
  const void* metadata;
};

struct Version {
  std::uint32_t major, minor, patch;
};

class Library;

/*! \brief A field of a class, read in place where it is known how it is stored. */
class Field {
 public:
  Field(const Library* library, const char* type_key, const char* name);

  /*! \brief The value in `object`, which must be of the class; nothing is owned. */
  Any Read(const Object* object) const {
    if (!is_checked_.load(std::memory_order_relaxed)) Check(object);
    const char* const at = reinterpret_cast<const char*>(object) + info_->offset;
    if (storage_ == Storage::kAny) return *reinterpret_cast<const Any*>(at);
    if (storage_ == Storage::kReference) return OfReference(at);
    if (storage_ == Storage::kNumber) return OfNumber(at);
    return Get(at);
  }

  /*! \return The object in the field, itself not looked at; null where that is not known yet. */
  const Object* Peek(const Object* object) const {
    if (storage_ != Storage::kReference || !is_checked_.load(std::memory_order_relaxed)) {
      return nullptr;
    }
    const char* const at = reinterpret_cast<const char*>(object) + info_->offset;
    return *reinterpret_cast<const Object* const*>(at);
  }

 private:
  enum class Storage : std::uint8_t { kReference, kAny, kNumber, kOther };
  static Any OfReference(const char* at) {
    Any any;
    any.object = *reinterpret_cast<const Object* const*>(at);
    any.type_index = any.object == nullptr ? std::int32_t{kNone} : any.object->type_index;
    return any;
  }
  Any OfNumber(const char* at) const {
    Any any;
    any.type_index = info_->static_type_index;
    any.integer = *reinterpret_cast<const std::int64_t*>(at);
    return any;
  }
  Any OfPlace(const char* at) const {
    if (storage_ == Storage::kAny) return *reinterpret_cast<const Any*>(at);
    return storage_ == Storage::kReference ? OfReference(at) : OfNumber(at);
  }
  Any Get(const char* at) const;
  /*! \brief Compares what is read in place with what the field's own getter gives. */
  void Check(const Object* object) const;

  const Library* library_;
  const FieldInfo* info_ = nullptr;
  Storage storage_ = Storage::kOther;
  std::string name_;
  mutable std::atomic<bool> is_checked_{false};
};

/*! \brief The functions of one loaded libtvm_ffi. */
class Library {
 public:
  /*! \throws StateError when the library is not loaded, or is of a version that is not known. */
  explicit Library(const std::string& path);

  /*! \brief The index of a class. \throws StateError when there is none of that key. */
  std::int32_t IndexOf(const char* type_key) const;
  const TypeInfo* InfoOf(std::int32_t index) const { return get_type_info_(index); }
  /*! \return What to call a value in a message. */
  std::string NameOf(const Any& value) const;
  /*! \brief A function of TVM's global registry. \throws StateError when there is none. */
  const Object* FunctionOf(const char* name) const;
  /*! \brief Calls it. \throws StateError that says which function failed. */
  Any Call(const Object* function, const char* name, const Any* args, int count) const;
  /*! \brief Gives back what a call returned. */
  void Release(const Any& value) const {
    if (value.type_index >= kFirstObject) decrease_(const_cast<Object*>(value.object));
  }

 private:
  std::int32_t (*type_key_to_index_)(const Bytes* key, std::int32_t* index) = nullptr;
  const TypeInfo* (*get_type_info_)(std::int32_t index) = nullptr;
  int (*get_global_)(const Bytes* name, void** function) = nullptr;
  int (*call_)(void* function, const Any* args, std::int32_t count, Any* result) = nullptr;
  int (*decrease_)(void* object) = nullptr;
  void (*take_error_)(void** error) = nullptr;
  std::string path_;

  void DropError() const;
};

inline const Sequence& SequenceOf(const Object* array) {
  return *reinterpret_cast<const Sequence*>(array + 1);
}

/*! \brief A load that the compiler keeps, of an address that may be read. */
inline void Touch(const void* at) { (void)*static_cast<const volatile char*>(at); }

inline bool IsText(const Any& value) {
  return value.type_index == kSmallStr || value.type_index == kStr || value.type_index == kRawStr;
}
/*! \brief The text of a value that IsText; a short one lies in `value` itself. */
std::string_view TextOf(const Any& value);

inline Any AnyOf(const Object* object) {
  Any any;
  any.object = object;
  any.type_index = object->type_index;
  return any;
}

}  // namespace ffi
}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_FFI_H_
