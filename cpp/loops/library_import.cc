#include "loops/library_import.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace tlp_tvm {
namespace loops {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kSlotKinds[] = {R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
#elif defined(__aarch64__)
constexpr std::uint32_t kSlotKinds[] = {R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT};
#endif

/*! \brief A library that this process has loaded already. */
class Loaded {
 public:
  explicit Loaded(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {}
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  /*! \return nullptr where it is not loaded. */
  void* handle() const { return handle_; }

 private:
  void* handle_;
};

/*! \brief The parts of a loaded library's dynamic section that name what it imports. */
struct Imports {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * relocations = nullptr;
  std::size_t relocation_bytes = 0;
  const ElfW(Rela) * calls = nullptr;
  std::size_t call_bytes = 0;
};

Imports ImportsOf(const link_map& map) {
  Imports found;
  found.base = map.l_addr;
  const auto at = [&map](const ElfW(Dyn) & entry) {
    // The loader has made these addresses absolute; where it has not, they are below the base.
    const ElfW(Addr) address = entry.d_un.d_ptr;
    return address < map.l_addr ? address + map.l_addr : address;
  };
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        found.symbols = reinterpret_cast<const ElfW(Sym)*>(at(*entry));
        break;
      case DT_STRTAB:
        found.names = reinterpret_cast<const char*>(at(*entry));
        break;
      case DT_RELA:
        found.relocations = reinterpret_cast<const ElfW(Rela)*>(at(*entry));
        break;
      case DT_RELASZ:
        found.relocation_bytes = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        found.calls = reinterpret_cast<const ElfW(Rela)*>(at(*entry));
        break;
      case DT_PLTRELSZ:
        found.call_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return found;
}

bool IsSlot(std::uint32_t kind) {
#if defined(__x86_64__) || defined(__aarch64__)
  for (const std::uint32_t known : kSlotKinds) {
    if (kind == known) return true;
  }
#endif
  return false;
}

/*! \brief Adds the places in a table that hold the address of what has this name. */
void AddSlots(const Imports& imports, const ElfW(Rela) * table, std::size_t bytes,
              const std::string& name, std::vector<std::atomic<void*>*>* slots) {
  if (table == nullptr || imports.symbols == nullptr || imports.names == nullptr) return;
  for (std::size_t i = 0; i < bytes / sizeof(*table); ++i) {
    if (!IsSlot(static_cast<std::uint32_t>(ELF64_R_TYPE(table[i].r_info)))) continue;
    const ElfW(Sym) & symbol = imports.symbols[ELF64_R_SYM(table[i].r_info)];
    if (name != imports.names + symbol.st_name) continue;
    slots->push_back(reinterpret_cast<std::atomic<void*>*>(imports.base + table[i].r_offset));
  }
}

/*! \brief Writes to a place that the loader may have made read-only; it stays writable. */
bool Write(std::atomic<void*>* slot, void* address) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(slot) / page * page;
  if (mprotect(reinterpret_cast<void*>(begin), page, PROT_READ | PROT_WRITE) != 0) return false;
  slot->store(address, std::memory_order_release);
  return true;
}

}  // namespace

void* FunctionOf(const std::string& library, const std::string& name) {
  const Loaded loaded(library);
  return loaded.handle() == nullptr ? nullptr : dlsym(loaded.handle(), name.c_str());
}

bool ReplaceImport(const std::string& library, const std::string& name, void* address) {
  const Loaded loaded(library);
  link_map* map = nullptr;
  if (loaded.handle() == nullptr ||
      dlinfo(loaded.handle(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0)
    return false;
  const Imports imports = ImportsOf(*map);
  std::vector<std::atomic<void*>*> slots;
  AddSlots(imports, imports.relocations, imports.relocation_bytes, name, &slots);
  AddSlots(imports, imports.calls, imports.call_bytes, name, &slots);
  bool replaced = false;
  for (std::atomic<void*>* slot : slots) replaced = Write(slot, address) || replaced;
  return replaced;
}

}  // namespace loops
}  // namespace tlp_tvm
